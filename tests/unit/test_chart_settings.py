"""values.schema.json names every setting that the services read."""

from __future__ import annotations

import json

from services import __version__
from tests.chart.rendered import CHART
from tests.chart_schema import SCHEMA, SECRETS, settable, written


def test_the_schema_has_the_settings_of_the_code() -> None:
    assert SCHEMA.read_text() == written(json.loads(SCHEMA.read_text())), "Run: python -m tests.chart_schema"


def test_settings_are_found() -> None:
    found = settable()
    assert {"TOUCHSTONE_RESULTS_MAX_BYTES", "TOUCHSTONE_WRONG_TOKENS"} <= set(found["all"])
    assert {"TOUCHSTONE_RUNNING_JOBS", "TOUCHSTONE_JOB_TIME_S"} <= set(found["scheduler"])
    assert set(found["gateway"] + found["results"]) >= SECRETS
    assert "TOUCHSTONE_AUTH" not in [name for names in found.values() for name in names]


def test_the_chart_installs_this_version() -> None:
    assert f'appVersion: "{__version__}"' in (CHART / "Chart.yaml").read_text()


def test_values_files_are_listed_in_the_guide() -> None:
    guide = (CHART.parents[1] / "docs/kubernetes.md").read_text()
    for file in (CHART / "values").iterdir():
        assert f"`values/{file.name}`" in guide
