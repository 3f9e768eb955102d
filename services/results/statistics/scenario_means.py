"""Means over scenarios of scores within [0, 1]. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from services.results.statistics.intervals import clustered_interval
from services.results.statistics.metric_values import Floats

_SPAN = (0.0, 1.0)
_DIGITS = 12
_ROUNDING = 10.0**-_DIGITS


@dataclass(frozen=True, slots=True)
class Mean:
    """With its 95 % interval; `n` counts scenarios."""

    value: float
    low: float
    high: float
    n: int


def means(scores: Floats) -> list[Mean | None]:
    """Of each row of `scores` (rows, scenarios), NaN where a scenario has none; None for rows without any.

    The interval is Wilson's at the number of independent scenarios that would have this standard error, with Student's
    quantile. One scenario says nothing about others.
    """
    known = ~np.isnan(scores)
    filled = np.where(known, scores, 0.0)
    n = known.sum(axis=1)
    values = filled.sum(axis=1) / np.maximum(n, 1)
    squares = np.where(known, (filled - values[:, None]) ** 2, 0.0).sum(axis=1)
    # Of the mean.
    variances = squares / np.maximum(n - 1, 1) / np.maximum(n, 1)
    return [
        _mean(value, variance, count) if count else None
        for value, variance, count in zip(values.tolist(), variances.tolist(), n.tolist(), strict=True)
    ]


def mean_of_means(scores: Floats) -> Mean | None:
    """The mean over the rows of `scores` (rows, scenarios) of each row's mean; None where a row has no score. All
    rows' scores of one scenario depend on each other."""
    known = ~np.isnan(scores)
    n = known.sum(axis=1, keepdims=True)
    if not n.all():
        return None
    filled = np.where(known, scores, 0.0)
    values = filled.sum(axis=1, keepdims=True) / n
    # How far each scenario moves the mean.
    moved = (np.where(known, filled - values, 0.0) / n).mean(axis=0)
    count = int(known.any(axis=0).sum())
    variance = float(moved @ moved) * count / max(count - 1, 1)
    return _mean(float(values.mean()), variance, count)


def _mean(value: float, variance: float, n: int) -> Mean:
    # Equal scores in another order have equal means.
    value = min(1.0, max(0.0, round(value, _DIGITS)))
    if n < 2:
        return Mean(value, *_SPAN, n)
    stderr = math.sqrt(variance) if variance > _ROUNDING**2 else 0.0
    low, high = clustered_interval(value, stderr, n, _SPAN)
    return Mean(value, max(0.0, min(value, low)), min(1.0, max(value, high)), n)
