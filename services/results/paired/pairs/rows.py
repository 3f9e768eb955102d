"""The rows by which runs on the same items are compared. Pure.

A row represents units that are equal in everything counted and independent of the rest: items, or one cluster of items
(a passage, an item with several answers). Models are identified by index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from services.results.statistics.metric_values import Floats, Ints


@dataclass(frozen=True, slots=True)
class Means:
    """A metric that is the mean of a score in [0, 1] over units: items, or groups of items.

    `sums` (rows, models) are the totals of the scores of the units in one row, `sizes` (rows,) is how many they are; 1
    if a row represents single items.
    """

    sums: Floats
    sizes: Floats

    @property
    def models(self) -> int:
        return int(self.sums.shape[1])


@dataclass(frozen=True, slots=True)
class Confusion:
    """A metric of the confusion matrix, for independent items.

    `references` (rows,) and `predictions` (rows, models) are indices of `labels`; -1 means no answer. `name` is one of
    statistics.TABLES, `positive` the label counted as positive by binary F1.
    """

    name: str
    positive: str
    labels: tuple[str, ...]
    references: Ints
    predictions: Ints

    @property
    def models(self) -> int:
        return int(self.predictions.shape[1])


@dataclass(frozen=True, slots=True)
class ClusteredConfusion:
    """The same with rows that are clusters of items.

    `shares` (models, rows, cells) says how many of the cluster's items are in each cell of (reference, prediction);
    each of several answers counts its part. A prediction of None means no answer.
    """

    name: str
    positive: str
    cells: tuple[tuple[str, str | None], ...]
    shares: Floats

    @property
    def models(self) -> int:
        return len(self.shares)


@dataclass(frozen=True, slots=True)
class Column:
    """One model's predicted numbers with the right ones; `rows` are the rows that the pairs belong to."""

    values: Floats
    targets: Floats
    rows: Ints


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson or Spearman; one column per model."""

    name: str
    columns: tuple[Column, ...]

    @property
    def models(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Cost:
    """Latency or cost of single items, above 0, (rows, models). The difference is the log of the ratio A / B.

    `statistic` is "mean", "p50" or "p95".
    """

    values: Floats
    statistic: str

    @property
    def models(self) -> int:
        return int(self.values.shape[1])


Metric = Means | Confusion | ClusteredConfusion | Correlation | Cost


@dataclass(frozen=True, slots=True)
class TaskRows:
    """A task's items that all models have in common.

    Every metric describes the same rows in the same order, each of which counts `counts` (rows,) times; 1 if rows are
    clusters, and for correlations and costs. `clustered`: items share passages, or have several answers. Metrics in
    `beside` are not part of the task's score.
    """

    task: str
    counts: Floats
    metrics: Mapping[str, Metric]
    clustered: bool = False
    beside: frozenset[str] = field(default_factory=frozenset)

    def names(self, metric: str = "") -> list[str]:
        """The metrics that an average uses: all of the task's score, or the named one."""
        if metric:
            return [metric] if metric in self.metrics else []
        return [name for name in self.metrics if name not in self.beside]


def binary_rows(masks: Ints, counts: Ints, models: int) -> tuple[Floats, Means]:
    """Rows of a metric of right and wrong from patterns: bit i of a mask is set where model i is right.

    Returns the rows' counts and the metric. At most 63 models.
    """
    right = (masks[:, None] >> np.arange(models)) & 1
    return counts.astype(float), Means(right.astype(float), np.ones(len(masks)))


def is_binary(metric: Metric) -> bool:
    """Whether a metric counts independent units that are right or wrong."""
    return (
        isinstance(metric, Means)
        and bool((metric.sizes == 1).all())
        and bool(((metric.sums == 0) | (metric.sums == 1)).all())
    )
