"""Intervals of items that hang together: quantiles, coverage, and what averages make of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from services.results.scores import means
from services.results.scores.means import Lost, Scores
from services.results.statistics.intervals import score_interval, t95
from tests.unit.results.scores.clusters import clustered, hanging_together, holds


@pytest.mark.parametrize(("clusters", "size"), [(12, 8), (40, 8), (83, 12)])
def test_clustered_intervals_cover_95_percent_where_naive_ones_do_not(clusters: int, size: int) -> None:
    rng = np.random.default_rng(8)
    inside = naive = trials = 0
    for p in (0.1, 0.3, 0.5, 0.8, 0.92):
        for _ in range(300):
            found = clustered(hanging_together(rng, p, clusters, size))
            inside += holds(means.estimate(found, Lost(), clustered=True), p)
            naive += holds(means.estimate(found, Lost(), clustered=False), p)
            trials += 1
    assert 0.93 <= inside / trials <= 0.975
    assert naive / trials < 0.86


def test_a_perfect_clustered_score_has_an_interval_as_if_each_cluster_were_one_observation() -> None:
    found = means.estimate(clustered(np.ones((20, 5))), Lost(), clustered=True)
    assert (found.value, found.stderr, found.high) == (1.0, 0.0, 1.0)
    assert found.low == pytest.approx(score_interval(1.0, 20, t95(19))[0])
    assert (found.low or 1) < 0.9


def test_one_cluster_tells_nothing_about_the_spread() -> None:
    found = means.estimate(clustered(np.array([[1.0, 0.0, 1.0]])), Lost(), clustered=True)
    assert found.value == pytest.approx(2 / 3)
    assert (found.stderr, found.low, found.high) == (None, None, None)


def test_students_interval_of_a_mean_is_scipys() -> None:
    values = np.random.default_rng(1).random(50)
    found = Scores(
        n=50, total=values.sum(), least=values.min(), most=values.max(), variance=values.var(ddof=1), binary=False
    )
    estimate = means.estimate(found, Lost(), clustered=False)
    expected = stats.t.interval(0.95, 49, values.mean(), stats.sem(values))
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=1e-12)
    assert estimate.stderr == pytest.approx(stats.sem(values), abs=1e-12)
