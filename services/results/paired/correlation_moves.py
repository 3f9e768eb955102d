"""How far single rows move a correlation. Pure."""

from __future__ import annotations

import numpy as np

from services.results import statistics
from services.results.paired.rows import Column, Correlation
from services.results.statistics import Floats


def of_columns(metric: Correlation, rows: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Values (models,), what each row adds to them (rows, models), and why a value is undefined and taken as 0."""
    values, added, reasons = np.zeros(metric.models), np.zeros((rows, metric.models)), []
    for place, column in enumerate(metric.columns):
        reason = statistics.undefined_correlation(column.values, column.targets)
        if not reason:
            values[place] = correlate(metric.name, column)
            moved = _influence(metric.name, column, values[place])
            added[:, place] = np.bincount(column.rows, moved, rows) + values[place] / rows
        reasons.append(reason)
    return values, added, tuple(reasons)


def correlate(name: str, column: Column) -> float:
    """Of a column that has a correlation."""
    function = statistics.pearson if name == statistics.PEARSON else statistics.spearman
    return function(column.values, column.targets)


def _influence(name: str, column: Column, value: float) -> Floats:
    """What each pair moves a correlation by; adds up to 0.

    Spearman's is Pearson's of the ranks, and what the pair moves the others' ranks by.
    """
    x, y = column.values, column.targets
    if name == statistics.PEARSON:
        return _pearson_influence(_standard(x), _standard(y), value)
    ranks_x, ranks_y = statistics.midranks(x), statistics.midranks(y)
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
