"""Means that a rare large difference may move although none was seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import default_rng

from services.results.sequential.unseen import Sample
from services.results.statistics.distributions import incomplete_beta, normal_tail


def sample(differences: list[float]) -> Sample:
    values = np.array(differences, dtype=float)
    return Sample(values / len(values), np.full(len(values), 1 / len(values)))


@pytest.mark.parametrize(("right", "items"), [(3, 10), (5, 10), (40, 100), (20, 20)])
@pytest.mark.parametrize("error", [0.2, 0.025, 1e-4])
def test_for_right_and_wrong_it_is_clopper_and_pearsons_interval(right: int, items: int, error: float) -> None:
    low, high = sample([1.0] * right + [-1.0] * (items - right)).interval(error)
    # Twice the share minus one.
    assert float(incomplete_beta(right, items - right + 1, (low + 1) / 2)) == pytest.approx(error / 2, rel=0.1)
    if right < items:
        above = float(incomplete_beta(right + 1, items - right, (high + 1) / 2))
        assert 1 - above == pytest.approx(error / 2, rel=0.1)
    else:
        assert high == pytest.approx(1, abs=1e-3)


def test_weights_are_those_of_random_ones() -> None:
    rng = default_rng(3)
    values, units = rng.uniform(-0.2, 0.3, 12), rng.uniform(0.3, 1.0, 12)
    made = Sample(values / units.sum(), units / units.sum())
    for claim in (-0.3, -0.2, -0.1):
        moves = np.append(made.values - claim * made.units, -(1 + claim) * made.units @ made.units)
        share = float((rng.exponential(size=(200_000, 13)) @ moves <= 0).mean())
        assert float(normal_tail(made.evidence(claim, above=True))) == pytest.approx(share, abs=0.005)
    mirrored = Sample(-made.values, made.units)
    assert made.evidence(0.2, above=False) == mirrored.evidence(-0.2, above=True)
    assert made.interval(0.1) == tuple(-end for end in mirrored.interval(0.1)[::-1])


def test_differences_that_are_all_alike_show_little() -> None:
    low, high = sample([0.01] * 20).interval(0.05)
    assert (low < -0.1, high > 0.15) == (True, True)
    # With 1,000 of them, one in a hundred that is as bad as can be would have been seen.
    low, high = sample([0.01] * 1000).interval(0.05)
    assert (0.004 < low < 0.01, 0.01 < high < 0.016) == (True, True)


def test_many_draws_take_no_time() -> None:
    values = default_rng(4).normal(0.02, 0.3, 14_000).clip(-1, 1)
    low, high = sample(values.tolist()).interval(0.05)
    half = 1.96 * float(values.std()) / np.sqrt(14_000)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=3e-4)


@pytest.mark.parametrize("error", [0.2, 0.01])
def test_what_is_shown_is_outside_the_interval(error: float) -> None:
    made = sample(default_rng(5).normal(0.05, 0.3, 80).clip(-1, 1).tolist())
    low, high = made.interval(error)
    for claim in (-0.4, -0.1, 0.0, 0.1, 0.4):
        assert made.shows(claim, error, above=True) == (claim < low)
        assert made.shows(claim, error, above=False) == (claim > high)
