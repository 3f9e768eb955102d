"""Alert rules, dashboards and queries of the guide: of metrics and labels that exist. Each rule is tried both ways."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.telemetry.metrics import METRICS
from tests import dashboards
from tests.metric_tables import PAGE

FOLDER = Path(__file__).parents[3] / "deploy/prometheus"
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
TESTS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
LABELS = {metric.name: {label.name for label in metric.labels} for metric in METRICS}
GIVEN = {"job", "instance", "le"}
"""Labels that Prometheus adds."""


def queries() -> list[str]:
    written = re.findall(r"(?m)^\| [^|`]+ \| `([^`]*touchstone_[^`]*)` \|$", PAGE.read_text())
    assert len(written) > 5
    return [*(rule["expr"] for rule in RULES.values()), *written, *(query for _, query in dashboards.queries())]


@pytest.mark.parametrize("query", queries())
def test_metrics_and_labels_of_queries_exist(query: str) -> None:
    for found in re.finditer(r"(touchstone_\w+?)(?:_bucket|_count|_sum)?\b(?!\w)(?:\{([^}]*)\})?", query):
        assert found[1] in LABELS, found[1]
        asked = set(re.findall(r"(\w+)\s*[=!]", found[2] or ""))
        assert asked <= LABELS[found[1]] | GIVEN, found[0]
    grouped = {label.strip() for labels in re.findall(r"(?:by|on) \(([^)]*)\)", query) for label in labels.split(",")}
    assert grouped <= set().union(*LABELS.values()) | GIVEN


@pytest.mark.parametrize("name", dashboards.BOARDS)
def test_the_file_of_a_dashboard_is_what_is_built(name: str) -> None:
    assert (dashboards.FOLDER / f"{name}.json").read_text() == dashboards.built(name), "Run: make docs"


def test_every_metric_is_on_a_dashboard() -> None:
    asked = " ".join(query for _, query in dashboards.queries())
    # Which units an evaluator has is told by the queue's units; answers of all tokens by those of endpoints.
    left = {"touchstone_evaluator_units", "touchstone_output_tokens_stored_total"}
    left |= {"touchstone_ingest_pending_messages", "touchstone_nats_unacknowledged_messages"}
    assert {metric.name for metric in METRICS if metric.name not in asked} == left


def test_each_panel_says_what_it_shows_and_has_its_own_title() -> None:
    for name, (_, rows) in dashboards.BOARDS.items():
        panels = [question for questions in rows.values() for question in questions]
        assert len({panel.title for panel in panels}) == len(panels), name
        assert all(panel.about.endswith(".") and panel.queries for panel in panels), name


def test_each_rule_is_tried_with_what_sets_it_off_and_with_what_does_not() -> None:
    for quiet in (True, False):
        tried = {
            one["alertname"]
            for test in TESTS
            for one in test["alert_rule_test"]
            if bool(one.get("exp_alerts")) is not quiet
        }
        assert tried == {*RULES}


def test_each_rule_says_how_bad_it_is_and_what_to_do() -> None:
    for name, rule in RULES.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"].keys() == {"summary", "description"}, name


def test_promtool_finds_the_rules_right() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt install prometheus)")
    for arguments in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([promtool, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
