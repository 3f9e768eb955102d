"""The metrics that tasks name. The results service computes them from items."""

from __future__ import annotations

from touchstone.v1.suite_pb2 import MetricSpec

ACCURACY = MetricSpec(metric="accuracy")
MATTHEWS = MetricSpec(metric="matthews_correlation")
PEARSON = MetricSpec(metric="pearson")
SPEARMAN = MetricSpec(metric="spearman")


def f1(positive_label: str) -> MetricSpec:
    """Binary F1 with this label as the positive class."""
    return MetricSpec(metric="f1", positive_label=positive_label)
