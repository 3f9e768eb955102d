"""Averages over tasks whose items hang together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from services.results.scores import aggregation
from services.results.scores.aggregation import TaskData
from services.results.scores.influence import ClusterCells
from services.results.scores.suite_score import average
from services.results.statistics.metric_values import Cell
from tests.unit.results.scores.clusters import clustered, hanging_together, holds
from touchstone.v1.suite_pb2 import MetricSpec

ACCURACY = MetricSpec(metric="accuracy")
EXACT = MetricSpec(metric="em", rule=MetricSpec.RULE_MEAN, statistic="correct")


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


def test_the_average_of_two_metrics_that_move_as_one_is_as_uncertain_as_either() -> None:
    found = clustered(hanging_together(np.random.default_rng(2), 0.6, 80, 6))
    data = TaskData("record", scores={"accuracy": found, "em": found}, clustered=True)
    measured = aggregation.measure(data, [ACCURACY, EXACT])
    single = measured.estimates["em"].stderr or 0
    both = average([[measured]])
    assert both is not None
    assert both.stderr == pytest.approx(single, rel=0.03)
    assert single > math.sqrt(0.6 * 0.4 / 480) * 1.2


def test_a_perfect_metric_leaves_its_doubt_in_the_average() -> None:
    data = TaskData("t", scores={"accuracy": clustered(np.ones((30, 4)))}, clustered=True)
    drawn = aggregation.measure(data, [ACCURACY]).draws["accuracy"]
    assert 0.9 < np.percentile(drawn, 2.5) < 0.95


def test_the_same_clusters_give_the_same_numbers_again() -> None:
    data = TaskData("t", scores={"accuracy": clustered(np.eye(6))}, clustered=True)
    first, second = (aggregation.measure(data, [ACCURACY], 100) for _ in range(2))
    assert first.estimates == second.estimates
    np.testing.assert_array_equal(first.draws["accuracy"], second.draws["accuracy"])
