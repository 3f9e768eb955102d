"""The metrics that tasks name. The results service computes them from items."""

from __future__ import annotations

from touchstone.v1.suite_pb2 import MetricSpec

ACCURACY = MetricSpec(metric="accuracy")
MACRO_F1 = MetricSpec(metric="macro_f1")
MATTHEWS = MetricSpec(metric="matthews_correlation")
PEARSON = MetricSpec(metric="pearson")
SPEARMAN = MetricSpec(metric="spearman")
# For tasks whose scorer compares texts or numbers.
EXACT_MATCH = MetricSpec(metric="exact_match", rule=MetricSpec.RULE_MEAN, statistic="correct")

# For tasks whose choices are texts of different lengths, in log-likelihood mode: the choice with the highest
# log-probability per character, or per byte.
ACC_NORM = MetricSpec(metric="acc_norm", rule=MetricSpec.RULE_MEAN, statistic="correct_norm")
ACC_BYTES = MetricSpec(metric="acc_bytes", rule=MetricSpec.RULE_MEAN, statistic="correct_bytes")


def f1(positive_label: str) -> MetricSpec:
    """Binary F1 with this label as the positive class."""
    return MetricSpec(metric="f1", positive_label=positive_label)


def beside(metric: MetricSpec) -> MetricSpec:
    """The metric, reported and not scored."""
    shown = MetricSpec()
    shown.CopyFrom(metric)
    shown.beside = True
    return shown


def repeated(answers: int) -> tuple[MetricSpec, ...]:
    """Metrics that several answers per item add, reported and not scored: pass@k (any of them right) and maj@k (their
    vote)."""
    return (
        MetricSpec(metric=f"pass@{answers}", rule=MetricSpec.RULE_ANY, statistic="correct", beside=True),
        MetricSpec(metric=f"maj@{answers}", rule=MetricSpec.RULE_MAJORITY, statistic="correct", beside=True),
    )
