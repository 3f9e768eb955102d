"""Totals of a whole run from a sample of its items."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.estimates.estimate import Pace, by_ratio, duration, weighted
from services.results.estimates.totals import Interval, total
from tests.unit.results.estimates.pilots import CHANCE, lognormal


def test_items_that_were_seen_are_no_doubt() -> None:
    sample = lognormal(40)
    assert total(sample, 40) == Interval(sample.sum(), sample.sum(), sample.sum())
    near, far = total(sample, 42), total(sample, 5000)
    assert (near.high - near.low) / near.value < (far.high - far.low) / far.value / 3
    anew = total(sample, 40, anew=True)
    assert anew.low < anew.value < anew.high


@pytest.mark.parametrize("size", [2, 5, 11, 12, 30, 200])
@pytest.mark.parametrize("items", [1, 3, 100, 100_000])
def test_an_interval_holds_its_value_and_nothing_below_0(size: int, items: int) -> None:
    for sample in (lognormal(size, 3.0), CHANCE.poisson(0.5, size).astype(float), np.zeros(size)):
        found = total(sample, items)
        assert 0 <= found.low <= found.value <= found.high < np.inf
        lasting = duration(sample, np.ones(size), items, Pace(8, 60))
        assert 0 <= lasting.low <= lasting.value <= lasting.high < np.inf


def test_differences_between_tasks_are_no_chance() -> None:
    tasks = np.array(["t"] * 20 + ["u"] * 20, dtype=object)
    values = np.concatenate([CHANCE.normal(10, 1, 20), CHANCE.normal(1000, 1, 20)])
    sizes = {"t": 300, "u": 100}
    sample = weighted(values, tasks, sizes)
    assert sample.mean() == pytest.approx(0.75 * values[:20].mean() + 0.25 * values[20:].mean())
    assert sample.std() < 2
    one_each = weighted(np.array([10.0, 1000.0]), np.array(["t", "u"], dtype=object), sizes)
    assert one_each.mean() == pytest.approx(257.5)


def test_a_ratio_is_taken_where_it_explains_something() -> None:
    sizes = lognormal(50)
    noise = CHANCE.normal(0, 1, 50)
    sample = by_ratio(sizes / 4 + noise, sizes, 200.0)
    assert sample.mean() == pytest.approx(200 * (sizes / 4 + noise).mean() / sizes.mean())
    assert sample.std() < 3
    level = 100 + noise
    assert by_ratio(level, sizes, 200.0) is level
