"""What kind of metric a specification asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from services.results.statistics import metric_values
from touchstone.v1 import job_pb2
from touchstone.v1.suite_pb2 import MetricSpec

GROUP_RULES = frozenset({MetricSpec.RULE_ALL, MetricSpec.RULE_EQUAL})
"""Units are groups of items."""
ANSWER_RULES = frozenset({MetricSpec.RULE_ANY, MetricSpec.RULE_MAJORITY})
"""Whether a single answer may decide about its item."""


def is_accuracy(spec: MetricSpec) -> bool:
    return not spec.rule and spec.metric == metric_values.ACCURACY


def is_mean(spec: MetricSpec) -> bool:
    """Whether a metric is the mean of a score over items or groups of items."""
    return bool(spec.rule) or spec.metric == metric_values.ACCURACY


def is_confusion(spec: MetricSpec) -> bool:
    """Whether a metric needs the confusion matrix."""
    return not spec.rule and spec.metric in metric_values.CONFUSION_METRICS


def is_correlation(spec: MetricSpec) -> bool:
    return not spec.rule and spec.metric in metric_values.CORRELATIONS


def counts(specs: Sequence[MetricSpec]) -> list[MetricSpec]:
    """The metrics that make up the task's score."""
    return [spec for spec in specs if not spec.beside]


def of_single_items(task: job_pb2.TaskPlan) -> MetricSpec | None:
    """By what single items are compared: the task's first metric that is a mean over items, or whether they are right.
    None for tasks without scores of single items, such as correlations, and for tasks that are not scored."""
    if task.beside:
        return None
    counted = counts(task.metrics)
    for spec in counted:
        if is_accuracy(spec) or spec.rule == MetricSpec.RULE_MEAN:
            return spec
    right = any(is_confusion(spec) or spec.rule == MetricSpec.RULE_ALL for spec in counted)
    return MetricSpec(metric=metric_values.ACCURACY) if right else None


def check(specs: Sequence[MetricSpec]) -> None:
    """Raises ValueError for metrics that cannot be computed."""
    if len({spec.metric for spec in specs}) < len(specs):
        raise ValueError("two metrics have the same name")
    for spec in specs:
        if not spec.rule and spec.metric not in metric_values.METRICS:
            raise ValueError(f"unknown metric {spec.metric!r}")
        if spec.rule not in MetricSpec.Rule.values():
            raise ValueError(f"metric {spec.metric!r} has an unknown rule")
        if spec.rule in GROUP_RULES and not spec.over:
            raise ValueError(f"metric {spec.metric!r} does not say how it groups items")
        if spec.rule and spec.rule != MetricSpec.RULE_EQUAL and not spec.statistic:
            raise ValueError(f"metric {spec.metric!r} does not say which statistic it reads")
        if any(mark in spec.statistic + spec.over for mark in '"\\'):
            raise ValueError(f"metric {spec.metric!r} names a statistic with a quotation mark or a backslash")
