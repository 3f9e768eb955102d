"""All pairs of systems at once are as each pair alone, and their tests reject as seldom as they say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from services.results.paired.corrections import holm
from services.results.paired.scenario_differences import all_pairs, rank_ranges, to_one
from services.results.statistics.metric_values import Floats

NAN = float("nan")


def drawn(systems: int, scenarios: int, seed: int = 1) -> Floats:
    """Systems of different quality; a fifth of the scores is missing."""
    chance = np.random.default_rng(seed)
    scores = np.clip(chance.random((systems, scenarios)) + np.linspace(0, 0.3, systems)[:, None], 0, 1)
    scores[chance.random(scores.shape) < 0.2] = NAN
    return scores


def test_each_pair_is_tested_on_its_common_scenarios_by_students_t() -> None:
    scores = drawn(5, 40)
    found = all_pairs(scores)
    expected, p = [], []
    for a, b in combinations(range(5), 2):
        common = ~np.isnan(scores[a] + scores[b])
        expected.append(float((scores[a] - scores[b])[common].mean()))
        p.append(float(stats.ttest_rel(scores[a][common], scores[b][common]).pvalue))
    assert found.values.tolist() == pytest.approx(expected)
    assert found.adjusted.tolist() == pytest.approx(holm(p))
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == list(combinations(range(5), 2))


def test_no_p_is_below_what_the_signs_of_the_scenarios_that_differ_can_show() -> None:
    scores = np.zeros((2, 12))
    scores[1, :3] = 0.5
    # Three scenarios differ alike: 2 of 8 signs.
    assert all_pairs(scores).adjusted.tolist() == [pytest.approx(0.25)]
    scores[1, 1:3] = 0
    assert all_pairs(scores).adjusted.tolist() == [1.0]
    assert all_pairs(np.array([[0.0, 0.0], [1.0, 1.0]])).adjusted.tolist() == [0.5]
    assert all_pairs(np.full((2, 5), 0.5)).adjusted.tolist() == [1.0]


def test_pairs_with_fewer_than_two_common_scenarios_stay_outside() -> None:
    found = all_pairs(np.array([[0.1, 0.2, NAN], [NAN, 0.4, 0.5], [0.3, 0.5, 0.7]]))
    assert np.isnan(found.adjusted).tolist() == [True, False, False]
    assert not len(all_pairs(np.ones((1, 5))).values)


def test_differences_to_one_system_have_its_sign_and_an_interval() -> None:
    scores = np.array([[1.0, 1.0, 0.5, 0.5], [0.5, 0.0, 0.5, 0.0], [NAN, NAN, NAN, 0.0]])
    found = to_one(scores, 0)
    assert found.values[:2].tolist() == [0.0, -0.5]
    assert np.isnan(found.values[2])
    assert found.n.tolist() == [4, 4, 1]
    # Differences are −0.5, −1, 0 and −0.5: their variance is 1/6, and three of four differ.
    width = (1 / 24 * (1 + (1 - 3 / 4) / 3)) ** 0.5
    half = float(stats.t.ppf(0.975, 3)) * width
    assert (found.low[1], found.high[1]) == pytest.approx((max(-1, -0.5 - half), -0.5 + half))
    assert found.low[0] < 0 < found.high[0]


def test_ranks_are_after_all_that_are_better_and_before_all_that_are_worse() -> None:
    scores = np.repeat([[0.9], [0.85], [0.2]], 30, axis=1) + np.random.default_rng(3).normal(0, 0.05, (3, 30))
    scores[1] = scores[0] + np.random.default_rng(4).normal(0, 0.05, 30)
    assert rank_ranges(3, all_pairs(scores)) == [(1, 2), (1, 2), (3, 3)]


@pytest.mark.parametrize("levels", [2, 5])
def test_equal_systems_are_seldom_told_apart(levels: int) -> None:
    """Scores of few levels, as judges give them; a false difference among 45 pairs in 5 % of draws at most."""
    chance = np.random.default_rng(5)
    shown = 0
    for _ in range(400):
        scenarios = chance.integers(0, levels, (1, 20))
        moved = np.clip(scenarios + chance.integers(-1, 2, (10, 20)), 0, levels - 1) / (levels - 1)
        shown += bool((all_pairs(moved).adjusted <= 0.05).any())
    assert shown / 400 <= 0.05
