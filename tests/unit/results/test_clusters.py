"""Intervals of items that hang together: quantiles, coverage, and what averages make of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from services.results import aggregation, scores
from services.results.aggregation import TaskData
from services.results.averages import average
from services.results.influence import ClusterCells, joint_draws
from services.results.intervals import clustered_interval, score_interval, t95
from services.results.scores import Lost, Scores
from services.results.statistics import Cell, Estimate, Floats
from touchstone.v1.suite_pb2 import MetricSpec

ACCURACY = MetricSpec(metric="accuracy")
EXACT = MetricSpec(metric="em", rule=MetricSpec.RULE_MEAN, statistic="correct")


def clustered(table: Floats) -> Scores:
    """One row per cluster, one column per item of it."""
    clusters, size = table.shape
    sums = table.sum(axis=1)
    return Scores(
        n=table.size,
        total=sums.sum(),
        low=sums.sum(),
        high=sums.sum(),
        clusters=np.arange(clusters),
        sizes=np.full(clusters, float(size)),
        sums=sums,
    )


def hanging_together(rng: np.random.Generator, p: float, clusters: int, size: int) -> Floats:
    """Right and wrong answers whose rate differs from passage to passage; intra-cluster correlation 1/5."""
    rates = rng.beta(4 * p, 4 * (1 - p), (clusters, 1))
    return (rng.random((clusters, size)) < rates).astype(float)


def holds(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def test_students_quantile_equals_scipys_for_every_number_of_degrees() -> None:
    degrees = [*range(1, 330), 1000, 100_000]
    expected = [float(stats.t.ppf(0.975, d)) for d in degrees]
    assert [t95(d) for d in degrees] == pytest.approx(expected, abs=1e-9)


def test_the_score_interval_is_wilsons() -> None:
    for right, n in ((0, 7), (3, 30), (29, 30), (30, 30), (812, 1000)):
        interval = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
        assert score_interval(right / n, n) == pytest.approx((interval.low, interval.high), abs=1e-12)


@pytest.mark.parametrize(("clusters", "size"), [(12, 8), (40, 8), (83, 12)])
def test_clustered_intervals_cover_95_percent_where_naive_ones_do_not(clusters: int, size: int) -> None:
    rng = np.random.default_rng(8)
    inside = naive = trials = 0
    for p in (0.1, 0.3, 0.5, 0.8, 0.92):
        for _ in range(300):
            found = clustered(hanging_together(rng, p, clusters, size))
            inside += holds(scores.estimate(found, Lost(), clustered=True), p)
            naive += holds(scores.estimate(found, Lost(), clustered=False), p)
            trials += 1
    assert 0.93 <= inside / trials <= 0.975
    assert naive / trials < 0.86


def test_a_clustered_f1_interval_covers_its_true_value() -> None:
    rng = np.random.default_rng(3)
    spec = MetricSpec(metric="f1a", positive_label="y")
    kinds = [("y", "y"), ("y", "n"), ("n", "y"), ("n", "n")]
    truth = 2 * 0.35 / (2 * 0.35 + 0.15 + 0.1)
    inside = 0
    for _ in range(250):
        shares = rng.dirichlet(np.array([0.35, 0.15, 0.1, 0.4]) * 6, 60)
        counts = np.array([rng.multinomial(10, row) for row in shares], dtype=float)
        cells = [Cell(r, p, r == p, total) for (r, p), total in zip(kinds, counts.sum(axis=0), strict=True)]
        clusters, places = (index.ravel() for index in np.indices(counts.shape))
        members = ClusterCells(clusters, places, counts.ravel())
        data = TaskData("t", cells, members, clustered=True)
        inside += holds(aggregation.measure(data, [spec], 10).estimates["f1a"], truth)
    assert 0.92 <= inside / 250 <= 0.98


def test_a_perfect_clustered_score_has_an_interval_as_if_each_cluster_were_one_observation() -> None:
    found = scores.estimate(clustered(np.ones((20, 5))), Lost(), clustered=True)
    assert (found.value, found.stderr, found.high) == (1.0, 0.0, 1.0)
    assert found.low == pytest.approx(score_interval(1.0, 20, t95(19))[0])
    assert (found.low or 1) < 0.9


def test_one_cluster_tells_nothing_about_the_spread() -> None:
    found = scores.estimate(clustered(np.array([[1.0, 0.0, 1.0]])), Lost(), clustered=True)
    assert found.value == pytest.approx(2 / 3)
    assert (found.stderr, found.low, found.high) == (None, None, None)


def test_a_clustered_interval_stays_within_the_metrics_range_and_is_symmetric_where_there_is_none() -> None:
    low, high = clustered_interval(0.97, 0.03, 15, (-1.0, 1.0))
    assert -1 < low < 0.97 < high < 1
    assert clustered_interval(5.0, 1.0, 16, None) == pytest.approx((5 - t95(15), 5 + t95(15)))


def test_students_interval_of_a_mean_is_scipys() -> None:
    values = np.random.default_rng(1).random(50)
    found = Scores(
        n=50, total=values.sum(), least=values.min(), most=values.max(), variance=values.var(ddof=1), binary=False
    )
    estimate = scores.estimate(found, Lost(), clustered=False)
    expected = stats.t.interval(0.95, 49, values.mean(), stats.sem(values))
    assert (estimate.low, estimate.high) == pytest.approx(expected, abs=1e-12)
    assert estimate.stderr == pytest.approx(stats.sem(values), abs=1e-12)


def test_the_average_of_two_metrics_that_move_as_one_is_as_uncertain_as_either() -> None:
    found = clustered(hanging_together(np.random.default_rng(2), 0.6, 80, 6))
    data = TaskData("record", scores={"accuracy": found, "em": found}, clustered=True)
    measured = aggregation.measure(data, [ACCURACY, EXACT])
    single = measured.estimates["em"].stderr or 0
    both = average([[measured]])
    assert both is not None
    assert both.stderr == pytest.approx(single, rel=0.03)
    assert single > math.sqrt(0.6 * 0.4 / 480) * 1.2


def test_joint_draws_have_the_clustered_covariance() -> None:
    rng = np.random.default_rng(4)
    moves = rng.normal(size=(200, 3)) @ np.array([[1, 0.8, 0], [0, 0.6, 0], [0, 0, 0.5]]) / 2000
    names = ("a", "b", "c")
    drawn = joint_draws(
        dict.fromkeys(names, 0.5),
        {name: (np.arange(200), moves[:, i]) for i, name in enumerate(names)},
        dict.fromkeys(names, (0.0, 1.0)),
        40_000,
        rng,
    )
    expected = moves.T @ moves
    np.testing.assert_allclose(np.cov([drawn[n] for n in names]), expected, atol=0.03 * expected.max())


def test_a_perfect_metric_leaves_its_doubt_in_the_average() -> None:
    data = TaskData("t", scores={"accuracy": clustered(np.ones((30, 4)))}, clustered=True)
    drawn = aggregation.measure(data, [ACCURACY]).draws["accuracy"]
    assert 0.9 < np.percentile(drawn, 2.5) < 0.95


def test_the_same_clusters_give_the_same_numbers_again() -> None:
    data = TaskData("t", scores={"accuracy": clustered(np.eye(6))}, clustered=True)
    first, second = (aggregation.measure(data, [ACCURACY], 100) for _ in range(2))
    assert first.estimates == second.estimates
    np.testing.assert_array_equal(first.draws["accuracy"], second.draws["accuracy"])
