"""How often the intervals of an estimate hold what the run then takes."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
import pytest

from services.results.estimates.estimate import Pace, duration
from services.results.estimates.totals import total
from services.results.statistics.metric_values import Floats

pytestmark = pytest.mark.calibration

WORLDS = 3_000
RUNS = 500
Draw = Callable[[np.random.Generator, int], Floats]


def lognormal(sigma: float) -> Draw:
    return lambda rng, count: np.maximum(1.0, np.round(np.exp(rng.normal(5, sigma, count))))


def capped(rng: np.random.Generator, count: int) -> Floats:
    return np.minimum(256.0, lognormal(1.0)(rng, count))


def two_humps(rng: np.random.Generator, count: int) -> Floats:
    return np.maximum(1.0, np.where(rng.random(count) < 0.2, rng.normal(800, 100, count), rng.normal(40, 8, count)))


def exponential(rng: np.random.Generator, count: int) -> Floats:
    return np.maximum(1.0, np.round(rng.exponential(150, count)))


def coverage(draw: Draw, pilot: int, items: int, seed: int) -> float:
    rng = np.random.default_rng((seed, pilot, items))
    held = 0
    for _ in range(WORLDS):
        everything = draw(rng, items)
        found = total(everything[:pilot], items)
        held += found.low <= everything.sum() <= found.high
    return held / WORLDS


@pytest.mark.parametrize("sigma", [0.3, 0.6, 1.0, 1.2])
@pytest.mark.parametrize("pilot", [30, 100])
@pytest.mark.parametrize("items", [500, 5_000])
def test_intervals_of_lognormal_tokens_hold_93_to_97_percent(sigma: float, pilot: int, items: int) -> None:
    assert 0.93 <= coverage(lognormal(sigma), pilot, items, int(10 * sigma)) <= 0.97


@pytest.mark.parametrize("draw", [capped, two_humps, exponential])
@pytest.mark.parametrize("pilot", [30, 100])
def test_intervals_of_other_tokens_hold_92_percent_or_more(draw: Draw, pilot: int) -> None:
    assert coverage(draw, pilot, 1_000, 1) >= 0.92


@pytest.mark.parametrize("sigma", [0.3, 1.0])
@pytest.mark.parametrize(("pilot", "items", "at_once"), [(30, 500, 16), (100, 2_000, 64)])
def test_intervals_of_durations_hold_90_to_98_percent(sigma: float, pilot: int, items: int, at_once: int) -> None:
    """Against a run with as many places, each of which takes the next call when it is free."""
    rng = np.random.default_rng((int(10 * sigma), pilot))
    held = 0
    for _ in range(RUNS):
        found = duration(rng.lognormal(0, sigma, pilot), np.ones(pilot), items, Pace(at_once))
        held += found.low <= _lasts(rng.lognormal(0, sigma, items), at_once) <= found.high
    assert 0.9 <= held / RUNS <= 0.98


def _lasts(seconds: Floats, places: int) -> float:
    free = list(seconds[:places])
    heapq.heapify(free)
    for one in seconds[places:]:
        heapq.heapreplace(free, free[0] + one)
    return float(max(free))
