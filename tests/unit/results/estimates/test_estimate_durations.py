"""How long a run takes."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.estimates.estimate import Pace, duration
from services.results.estimates.totals import Interval
from tests.unit.results.estimates.pilots import CHANCE, lognormal


def test_a_limit_a_minute_counts_where_it_takes_longer() -> None:
    seconds, calls = np.full(20, 2.0), np.full(20, 1.5)
    assert duration(seconds, calls, 1000, Pace(10, 100)) == Interval(900, 900, 900)
    assert duration(seconds, calls, 1000, Pace(10, 100_000)).value == pytest.approx(200, abs=2)


def test_all_calls_at_once_take_as_long_as_the_longest() -> None:
    seconds = lognormal(100)
    found = duration(seconds, np.ones(100), 10, Pace(64))
    # Of the same calls: those of another draw may be a third longer.
    drawn = [CHANCE.choice(seconds, 10).max() for _ in range(2000)]
    assert found.value == pytest.approx(float(np.median(drawn)), rel=0.5)
