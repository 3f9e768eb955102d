"""How long a run would be running, from latencies of single calls. Pure.

Simulated, as no formula gives the end of the last of many calls. If latencies look lognormal, they are drawn from that
distribution, with its two parameters as uncertain as the pilot leaves them; otherwise they are drawn from the pilot's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from services.results.estimates.totals import Interval, looks_normal, total
from services.results.statistics.metric_values import Floats

_DRAWS, _SEED = 1_000, 7
_FEW = 12
"""Below this number, the spread of the logarithms is used as it is: a draw of it would be arbitrary."""
_MOST_AT_ONCE = 256
"""The most concurrent calls in the simulation of a run's end."""
_MOST_SECONDS = 1_000
_SHORTEST_S, _LONGEST = 1e-6, 40.0


@dataclass(frozen=True, slots=True)
class Pace:
    """At most `at_once` calls at a time, 1 or more, and `per_minute` calls per minute, 0 for any number."""

    at_once: int
    per_minute: int = 0


def duration(seconds: Floats, calls: Floats, answers: int, pace: Pace) -> Interval:
    """The duration of this many answers, of which some, 2 or more, took these seconds and calls each.

    A free slot takes the next answer at once, so the work is spread evenly until none waits; then the call in each slot
    ends. A call that is met at a random moment tends to be a long one. If the limit per minute takes longer, that
    counts.
    """
    places = min(pace.at_once, answers)
    # Evenly over their lengths: more draws would only take longer.
    drawn = _drawn(np.sort(seconds)[:: 1 + len(seconds) // _MOST_SECONDS], answers, places)
    low, high = (float(end) for end in np.percentile(drawn, [2.5, 97.5]))
    value = float(np.median(drawn))
    if pace.per_minute:
        limited = total(calls, answers, anew=True).times(60 / pace.per_minute)
        value, low, high = max(value, limited.value), max(low, limited.low), max(high, limited.high)
    return Interval(value, low, high)


def _drawn(seconds: Floats, answers: int, places: int) -> Floats:
    rng = np.random.default_rng(_SEED)
    shape = (_DRAWS, min(places, _MOST_AT_ONCE))
    logs = np.log(np.maximum(seconds, _SHORTEST_S))
    if len(seconds) < _FEW or looks_normal(logs):
        mean, spread = _figures(logs, rng)
        if answers <= places:
            each = _exp(mean + spread * rng.standard_normal(shape))
            return np.asarray(each.max(axis=1))
        variance = spread**2
        of_work = np.log1p(np.expm1(np.minimum(variance, 50.0)) / answers)
        work = answers * _exp(mean + (variance - of_work) / 2 + np.sqrt(of_work) * rng.standard_normal((_DRAWS, 1)))
        under_way = _exp(mean + variance + spread * rng.standard_normal(shape))
    else:
        again = rng.choice(seconds, (_DRAWS, len(seconds)))
        if answers <= places:
            return np.asarray(_each(again, shape, rng).max(axis=1))
        error = again.std(axis=1, keepdims=True) * math.sqrt(answers)
        work = np.maximum(answers * again.mean(axis=1, keepdims=True) + error * rng.standard_normal((_DRAWS, 1)), 0.0)
        under_way = _each(again, shape, rng, by_length=True)
    left: Floats = under_way * rng.random(shape)
    drawn: Floats = work[:, 0] / places + left.max(axis=1) - left.mean(axis=1)
    return drawn


def _figures(logs: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of mean and standard deviation, as columns."""
    n = len(logs)
    variance = np.full((_DRAWS, 1), logs.var(ddof=1))
    chi_square = rng.chisquare(n - 1, (_DRAWS, 1)) / (n - 1)
    mean = logs.mean() + np.sqrt(variance / n / chi_square) * rng.standard_normal((_DRAWS, 1))
    spread: Floats = np.sqrt(variance if n < _FEW else variance / chi_square)
    return mean, spread


def _exp(logs: Floats) -> Floats:
    """With only a few values, some draws are arbitrary."""
    return np.asarray(np.exp(np.minimum(logs, _LONGEST)))


def _each(values: Floats, shape: tuple[int, int], rng: np.random.Generator, *, by_length: bool = False) -> Floats:
    """Some values of every row, drawn with equal weight or by their length."""
    weights = np.cumsum(values if by_length else np.ones_like(values), axis=1)
    weights = weights / np.maximum(weights[:, -1:], _SHORTEST_S)
    # Rows stacked, so that one search serves all.
    rows = np.arange(shape[0])[:, None]
    found = np.searchsorted((weights + rows).ravel(), (rng.random(shape) + rows).ravel())
    places = np.minimum(found.reshape(shape) - rows * values.shape[1], values.shape[1] - 1)
    chosen: Floats = np.take_along_axis(values, places, axis=1)
    return chosen
