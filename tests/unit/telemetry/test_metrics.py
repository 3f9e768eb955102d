"""Metrics are named as Prometheus wants, their labels are few, and the guide lists them all."""

from __future__ import annotations

import ast
import re

import pytest

from services.telemetry import metrics
from services.telemetry.instruments import Counter, Gauge, Histogram, Instrument
from services.telemetry.metrics import METRICS, SERVICES
from tests.metric_tables import PAGE, names, renewed, tables
from tests.unit.test_structure import nodes, relative, sources

PERSONAL = {"job", "job_id", "user", "owner", "model", "task", "item", "dataset", "token", "address", "path", "url"}
RESERVED = {"job", "instance", "le", "quantile"}
OPEN = {"endpoint", "route", "status", "method", "code", "stream", "consumer", "version", "service"}
"""Labels without a list of values: what is configured or declared gives them."""
WRONG_UNITS = re.compile(r"_(ms|millis|milliseconds|us|minutes|hours|days|kb|mb|kilobytes|megabytes|percent)(_|$)")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_labels_and_units_follow_the_conventions(metric: Instrument) -> None:  # type: ignore[type-arg]
    name = metric.name
    assert re.fullmatch(r"touchstone(_[a-z]+)+", name)
    assert not WRONG_UNITS.search(name)
    assert name.endswith("_total") == isinstance(metric, Counter)
    assert name.endswith("_seconds") == (isinstance(metric, Histogram) or "seconds" in metric.about.lower())
    assert isinstance(metric, Counter | Gauge | Histogram)
    assert not re.search(r"_(count|sum|bucket|created|gauge|counter|histogram)$", name)
    labels = [label.name for label in metric.labels]
    assert len(labels) == len(set(labels)) <= 3
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", label) for label in labels)
    assert not {*labels} & (RESERVED | PERSONAL)
    assert not any(f"_{label}_" in f"_{name}_" for label in labels if label != "service")
    assert metric.about
    assert not metric.about.endswith(".")
    assert metric.services
    assert {*metric.services} <= {*SERVICES}


def test_every_name_is_used_once() -> None:
    found = [metric.name for metric in METRICS]
    assert len(found) == len(set(found)) > 25


def test_labels_are_bounded() -> None:
    """By their values, or by names of what is configured or declared; the latter come first."""
    for metric in METRICS:
        listed = [bool(label.values) for label in metric.labels]
        assert listed == sorted(listed), metric.name
        for label in metric.labels:
            assert label.values or label.name in OPEN, (metric.name, label.name)
            assert len(label.values) <= 13


def test_every_metric_is_recorded_somewhere_and_nowhere_under_another_name() -> None:
    used = {
        node.attr
        for path in sources("services")
        if not relative(path).startswith("services/telemetry/")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "metrics"
    }
    made = {name for name, value in vars(metrics).items() if isinstance(value, Instrument)}
    assert made - used == {"BUILD"}, "nothing records them"
    importing = [
        relative(path)
        for path in sources("services")
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom) and "prometheus_client" in ast.unparse(node)
    ]
    assert {path.rpartition("/")[0] for path in importing} == {"services/telemetry"}


def test_the_guide_lists_every_metric_and_label() -> None:
    page = PAGE.read_text()
    assert names(page) == tables()
    assert renewed(page) == page, "Renew it: make docs"
    assert [metric.name for metric in METRICS if f"| `{metric.name}` |" not in page] == []
