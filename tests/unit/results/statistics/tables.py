"""Tables of answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from services.results.scores import aggregation
from services.results.scores.aggregation import Pairs, TaskData
from services.results.statistics.metric_values import Cell, Floats
from touchstone.v1.suite_pb2 import MetricSpec


def cells(pairs: Sequence[tuple[str, str | None]]) -> list[Cell]:
    return [Cell(r, p, r == p, count) for (r, p), count in Counter(pairs).items()]


def measure(data: TaskData, *names: str, positive: str = "yes", resamples: int = 200) -> aggregation.Measured:
    return aggregation.measure(data, [MetricSpec(metric=n, positive_label=positive) for n in names], resamples)


def plain_pairs(values: Floats, targets: Floats) -> Pairs:
    """One answered pair per item."""
    n = len(values)
    return Pairs(values, targets, np.ones(n, bool), np.arange(n), n)
