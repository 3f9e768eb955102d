"""What every row adds to a metric's difference, for variances without draws. Pure.

A mean's rows add their own differences. The other metrics are smooth functions of counts or moments, so that a row
adds, to first order, the function's derivative (the delta method).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.results.paired.pairs.confusion_grid import grid_of
from services.results.paired.pairs.difference import Pairs
from services.results.paired.pairs.rows import ClusteredConfusion, Column, Confusion, Correlation, Means
from services.results.statistics import metric_values
from services.results.statistics.metric_values import Floats, Ints

ScoreMetric = Means | Confusion | ClusteredConfusion | Correlation
"""The metrics that may be part of a task's score."""


@dataclass(frozen=True, slots=True)
class Contributions:
    """Values of models, or of pairs of them, with one column each.

    `values` (columns,) are the metric's values or differences, `rows` (rows, columns) what the rows add up to. A row
    counts `counts` (rows,) times. `n` counts what the metric is taken over, items or groups. `reasons` say why a value
    is undefined, and counted as 0; "" if it is defined.
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
    """The contributions for each model; `alike`: what rows would add to the metric of the mean of all tables."""
    if isinstance(metric, Means):
        units = float(metric.sizes @ counts)
        rows = metric.sums / units if units else np.zeros_like(metric.sums)
        reasons = ("" if units else "no items",) * metric.models
        # Whole numbers of right answers add up exactly in any order, so exchanging two models negates a difference.
        values = counts @ metric.sums / units if units else np.zeros(metric.models)
        return Contributions(values, rows, counts, round(units), reasons)
    if isinstance(metric, Correlation):
        values, rows, reasons = of_columns(metric, len(counts))
        return Contributions(values, rows, counts, len(counts), reasons)
    grid = grid_of(metric, counts)
    n = round(float(grid.totals[0].sum()))
    reasons = ("" if n else "no items",) * metric.models
    return Contributions(grid.values, grid.moves(pooled=alike), counts, n, reasons)


def units_of(metric: ScoreMetric, counts: Floats) -> float:
    """What a metric is taken over: items, or groups of them."""
    if isinstance(metric, Means):
        return float(metric.sizes @ counts)
    if isinstance(metric, ClusteredConfusion):
        # Models that are not compared have no shares.
        return float(metric.shares.sum(axis=(1, 2)).max(initial=0.0))
    return float(counts.sum())


def mean(parts: Sequence[Contributions]) -> Contributions:
    """The mean of several metrics of the same rows; the first one's `n` counts, as others may be taken over groups."""
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
    """The indices of all A, and of all B."""
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def of_columns(metric: Correlation, rows: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Values (models,), what each row adds to them (rows, models), and why a value is undefined and counted as 0."""
    values, added, reasons = np.zeros(metric.models), np.zeros((rows, metric.models)), []
    for place, column in enumerate(metric.columns):
        reason = metric_values.undefined_correlation(column.values, column.targets)
        if not reason:
            values[place] = correlate(metric.name, column)
            moved = _influence(metric.name, column, values[place])
            added[:, place] = np.bincount(column.rows, moved, rows) + values[place] / rows
        reasons.append(reason)
    return values, added, tuple(reasons)


def correlate(name: str, column: Column) -> float:
    """Contributions to a column that has a correlation."""
    function = metric_values.pearson if name == metric_values.PEARSON else metric_values.spearman
    return function(column.values, column.targets)


def _influence(name: str, column: Column, value: float) -> Floats:
    """How far each pair moves a correlation; adds up to 0.

    Spearman's is Pearson's of the ranks, plus the effect of the pair on the others' ranks.
    """
    x, y = column.values, column.targets
    if name == metric_values.PEARSON:
        return _pearson_influence(_standard(x), _standard(y), value)
    ranks_x, ranks_y = metric_values.midranks(x), metric_values.midranks(y)
    u, v = _standard(ranks_x), _standard(ranks_y)
    # A further pair at (x, y) raises the rank of every larger x by one, and of equal ones by a half.
    moved = _mean_above(x, v - value * u) / ranks_x.std() + _mean_above(y, u - value * v) / ranks_y.std()
    whole: Floats = _pearson_influence(u, v, value) + moved - moved.mean()
    return whole


def _pearson_influence(u: Floats, v: Floats, value: float) -> Floats:
    moved = (u * v - value / 2 * (u * u + v * v)) / len(u)
    centred: Floats = moved - moved.mean()
    return centred


def _standard(column: Floats) -> Floats:
    standard: Floats = (column - column.mean()) / column.std()
    return standard


def _mean_above(column: Floats, weights: Floats) -> Floats:
    """For each number the sum of the weights of larger ones, and half that of equal ones, over their count."""
    distinct, place = np.unique(column, return_inverse=True)
    totals = np.bincount(place, weights, len(distinct))
    above: Floats = (totals.sum() - np.cumsum(totals) + totals / 2)[place] / len(column)
    return above
