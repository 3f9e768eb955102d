"""What every row adds to a metric's difference: the way to variances without draws. Pure.

A mean's rows add their own differences. The other metrics are smooth functions of counts or moments, so that a row
adds, to first order, the function's derivative (the delta method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.results.paired import correlation_moves
from services.results.paired.difference import Pairs
from services.results.paired.rows import ClusteredTable, Correlation, Means, Table
from services.results.paired.table_grid import grid_of
from services.results.statistics import Floats, Ints

ScoreMetric = Means | Table | ClusteredTable | Correlation
"""What may be part of a task's score."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """Of models, or of pairs of them, with one column each.

    `values` (columns,) are the metric's values or differences, `rows` (rows, columns) what the rows add up to. A row
    stands for `counts` (rows,) alike. `n` counts what the metric is taken over, items or groups. `reasons` say why a
    value is undefined, and taken as 0; "" where it is defined.
    """

    values: Floats
    rows: Floats
    counts: Floats
    n: int
    reasons: tuple[str, ...]

    @property
    def units(self) -> float:
        """Independent units."""
        return float(self.counts.sum())


def of_pairs(metric: ScoreMetric, counts: Floats, pairs: Pairs) -> Contributions:
    """A − B of each pair."""
    a, b = sides(pairs)
    single = of_models(metric, counts)
    reasons = tuple("; ".join(sorted({single.reasons[i], single.reasons[j]} - {""})) for i, j in pairs)
    rows = single.rows[:, a] - single.rows[:, b]
    return Contributions(single.values[a] - single.values[b], rows, counts, single.n, reasons)


def of_models(metric: ScoreMetric, counts: Floats, *, alike: bool = False) -> Contributions:
    """Of each model by itself; `alike`: what rows would add to the metric of the mean of all tables."""
    if isinstance(metric, Means):
        units = float(metric.sizes @ counts)
        rows = metric.sums / units if units else np.zeros_like(metric.sums)
        reasons = ("" if units else "no items",) * metric.models
        # Whole numbers of right answers add up exactly, in any order: exchanging two models negates a difference.
        values = counts @ metric.sums / units if units else np.zeros(metric.models)
        return Contributions(values, rows, counts, round(units), reasons)
    if isinstance(metric, Correlation):
        values, rows, reasons = correlation_moves.of_columns(metric, len(counts))
        return Contributions(values, rows, counts, len(counts), reasons)
    grid = grid_of(metric, counts)
    n = round(float(grid.totals[0].sum()))
    reasons = ("" if n else "no items",) * metric.models
    return Contributions(grid.values, grid.moves(pooled=alike), counts, n, reasons)


def units_of(metric: ScoreMetric, counts: Floats) -> float:
    """What a metric is taken over: items, or groups of them."""
    if isinstance(metric, Means):
        return float(metric.sizes @ counts)
    if isinstance(metric, ClusteredTable):
        # Models that are not compared have no shares.
        return float(metric.shares.sum(axis=(1, 2)).max(initial=0.0))
    return float(counts.sum())


def mean(parts: Sequence[Contributions]) -> Contributions:
    """Of several metrics of the same rows; the first one's `n` counts, as others may be taken over groups."""
    if len(parts) == 1:
        return parts[0]
    reasons = zip(*(part.reasons for part in parts), strict=True)
    return replace(
        parts[0],
        values=np.mean([part.values for part in parts], axis=0),
        rows=np.mean([part.rows for part in parts], axis=0),
        reasons=tuple("; ".join(sorted({*each} - {""})) for each in reasons),
    )


def sides(pairs: Pairs) -> tuple[Ints, Ints]:
    """The places of all A, and of all B."""
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
