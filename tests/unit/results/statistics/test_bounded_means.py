"""The interval of a mean of scores within [0, 1]."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from services.results.statistics.bounded_means import Spread, spread
from services.results.statistics.intervals import score_interval
from services.results.statistics.metric_values import Floats


def shares(hits: int, n: int) -> Floats:
    return np.repeat([1.0, 0.0], [hits, n - hits])


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (1, 20), (7, 20), (20, 20), (30, 200), (199, 200)])
def test_for_shares_it_is_wilsons(hits: int, n: int) -> None:
    scores = shares(hits, n)
    down, up = spread(scores, scores, 0).ends(n, np.inf)

    assert (hits / n + down, hits / n + up) == pytest.approx(score_interval(hits / n, n), abs=1e-9)


def test_a_draw_of_most_items_is_worth_more() -> None:
    scores = shares(70, 100)
    down, up = spread(scores, scores, 0).ends(100, 125)

    assert (0.7 + down, 0.7 + up) == pytest.approx(score_interval(0.7, 500), abs=1e-9)
    assert spread(scores, scores, 0).ends(100, 100) == (0.0, 0.0)


def test_for_many_scores_without_skew_it_is_students() -> None:
    scores = 0.5 + 0.1 * stats.norm.ppf((np.arange(1_000) + 0.5) / 1_000)
    down, up = spread(scores, scores, 0).ends(1_000, np.inf)
    half = stats.t.ppf(0.975, 998) * scores.std() / 1_000**0.5

    assert -down == pytest.approx(up, rel=1e-6)
    assert up == pytest.approx(half, rel=0.005)


@pytest.mark.parametrize("excess", [2.0, 3.1, 7.7, 19.3, 60.0])
def test_the_degrees_of_freedom_are_those_of_the_variance(excess: float) -> None:
    degrees = max(1.0, min(48, 2 * 48 / excess))
    quantile = Spread(0.01, 0.0, 0.0, excess)._quantile(50)
    exact = stats.t.ppf(0.975, degrees)

    assert exact - 1e-9 <= quantile <= (1.2 if degrees < 2 else 1.02) * exact


def test_an_interval_reaches_further_to_the_side_of_the_rare_scores() -> None:
    scores = shares(2, 40)
    down, up = spread(scores, scores, 0).ends(40, np.inf)

    assert up > 1.5 * -down


def test_assumed_items_have_the_moments_of_jumps_to_the_ends() -> None:
    """Nothing is left of the scores, so that the moments are the assumed items' alone."""
    scores = shares(14, 20)
    found = spread(np.zeros(20), scores, 5)
    variance = 0.7 * 0.3

    assert found.variance == pytest.approx(5 * variance / 25)
    assert (found.down, found.up) == pytest.approx((-0.7, 0.3))
    fourth = 5 * variance * (0.7**3 + 0.3**3) / 25
    third = 5 * variance * (0.3 - 0.7) / 25
    unknown = fourth - found.variance**2 - third**2 / found.variance
    assert found.excess == pytest.approx(unknown / found.variance**2)


def test_jumps_can_be_given() -> None:
    found = spread(np.zeros(20), np.ones(20), 5, (-1.0, 1.0))

    assert found == Spread(0.0, 1.0, -1.0, 0.0)
    down, up = found.ends(20, np.inf)
    assert -down == up == pytest.approx(1 - score_interval(1, 20)[0])
