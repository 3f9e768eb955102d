"""Every values file gives objects that Kubernetes takes and that fit together."""

from __future__ import annotations

import helm_python as helm
import pytest

from tests.chart.checks import faults
from tests.chart.rendered import CHART, NAMESPACE, values_files

FILES = values_files()


def test_there_is_a_file_for_each_way() -> None:
    assert {"default", "small", "gpu", "keda", "monitoring", "tls"} <= set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_a_values_file_has_no_faults(file: str) -> None:
    report = helm.lint(CHART, FILES[file], strict=True, namespace=NAMESPACE)
    assert report["errors"] == []
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert list(faults(FILES[file])) == []
