"""Latency and cost of models on the same items: bootstrap of the log of their ratio. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from services.results.paired.moments import POWER
from services.results.paired.pairs.difference import Difference, Pairs, Terms
from services.results.paired.pairs.rows import Cost
from services.results.statistics.distributions import normal_quantile
from services.results.statistics.metric_values import Floats

_CHUNK = 2_000_000
"""Numbers in memory at a time, in each of a few arrays."""
_DRAWS = 20_000_000
"""Items drawn at most in all; larger tasks get fewer resamples, at least `_FEWEST`."""
_FEWEST = 500
_QUANTILES = {"p50": 0.5, "p95": 0.95}


def differences(cost: Cost, pairs: Pairs, terms: Terms, seed: Sequence[int]) -> list[Difference]:
    """Logs of the ratios A / B. A margin says nothing about them."""
    n = len(cost.values)
    if n < 2:
        return [Difference(None, n, undefined_reason="fewer than two items")] * len(pairs)
    logs, drawn = log_statistics(cost), log_draws(cost, terms.resamples, np.random.default_rng(seed))
    power = normal_quantile(1 - terms.alpha / 2) + normal_quantile(POWER)
    return [_difference(logs[a] - logs[b], drawn[:, a] - drawn[:, b], n, terms.alpha, power) for a, b in pairs]


def _difference(value: float, drawn: Floats, n: int, alpha: float, power: float) -> Difference:
    drawn, error = np.sort(drawn), float(np.std(drawn))
    # Draws without interpolation, so that exchanging the models negates the ends exactly.
    cut = int(alpha / 2 * len(drawn))
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(
        value=float(value),
        n=n,
        stderr=error,
        low=float(drawn[cut]),
        high=float(drawn[-1 - cut]),
        p=min(1.0, 2 * (beyond + 1) / (len(drawn) + 1)),
        test="paired bootstrap of the log ratio",
        smallest=power * error,
    )


def log_statistics(cost: Cost) -> Floats:
    """Log of each model's mean or quantile, (models,)."""
    logs: Floats = np.log(_statistic(cost, np.ones((1, len(cost.values)))))[0]
    return logs


def log_draws(cost: Cost, resamples: int, rng: np.random.Generator) -> Floats:
    """The same of resampled items, (resamples, models): every model on the same ones."""
    n = len(cost.values)
    left = min(resamples, max(_FEWEST, _DRAWS // n))
    step, draws = max(1, _CHUNK // n), []
    while left > 0:
        size = min(step, left)
        picks = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(float)
        draws.append(np.log(_statistic(cost, counts)))
        left -= size
    return np.concatenate(draws)


def _statistic(cost: Cost, counts: Floats) -> Floats:
    """(resamples, models) of items that occur `counts` (resamples, rows) times. The quantile q of n numbers is between
    the positions around q (n − 1), as in numpy."""
    if cost.statistic not in _QUANTILES:
        mean: Floats = counts @ cost.values / counts.sum(axis=1, keepdims=True)
        return mean
    n = len(cost.values)
    place = _QUANTILES[cost.statistic] * (n - 1)
    found = np.empty((len(counts), cost.values.shape[1]))
    for model, column in enumerate(cost.values.T):
        order = np.argsort(column, kind="stable")
        before = np.cumsum(counts[:, order], axis=1)
        below, above = (column[order][(before > target).argmax(axis=1)] for target in (np.floor(place), np.ceil(place)))
        found[:, model] = below + (place % 1) * (above - below)
    return found
