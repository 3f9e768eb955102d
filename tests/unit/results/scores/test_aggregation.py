"""Metrics of a task and scores of a suite, with intervals and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.scores import means
from services.results.scores.aggregation import TaskData
from services.results.scores.means import Lost
from services.results.scores.suite_score import average
from services.results.statistics.metric_values import Cell
from tests.unit.results.statistics.tables import measure, plain_pairs


def test_a_perfect_small_task_still_has_an_interval_with_width_that_holds_the_score() -> None:
    data = TaskData("cb", [Cell("yes", "yes", True, 20), Cell("no", "no", True, 30)])
    found = measure(data, "accuracy", "f1", "matthews_correlation", resamples=2000).estimates
    for estimate in found.values():
        assert estimate.value == 1.0
        assert estimate.low is not None
        assert estimate.low < 0.97
        assert estimate.high == 1.0


def test_interval_of_f1_covers_a_high_true_score() -> None:
    """At n = 100 and accuracy .98 a percentile bootstrap covers 86 %."""
    rng = np.random.default_rng(3)
    shares = np.array([0.49, 0.01, 0.01, 0.49])
    truth = 2 * 0.49 / (2 * 0.49 + 0.02)
    hits = 0
    for trial in range(200):
        tp, fn, fp, tn = (int(count) for count in rng.multinomial(100, shares))
        table = [
            Cell("y", "y", True, tp),
            Cell("y", "n", False, fn),
            Cell("n", "y", False, fp),
            Cell("n", "n", True, tn),
        ]
        found = measure(TaskData(f"t{trial}", table), "f1", positive="y", resamples=400).estimates["f1"]
        hits += found.low is not None and found.high is not None and found.low <= truth <= found.high
    assert hits >= 184


def test_bounds_move_unanswered_and_lost_items_from_all_wrong_to_all_right() -> None:
    table = [Cell("yes", "yes", True, 60), Cell("no", "yes", False, 20), Cell("no", None, False, 20)]
    accuracy = means.of_cells(table)
    assert means.estimate(accuracy, Lost(), clustered=False).bounds == (0.6, 0.8)
    assert means.estimate(accuracy, Lost(units=100), clustered=False).bounds == (0.3, 0.9)
    whole = measure(TaskData("t", table), "f1", "matthews_correlation").estimates
    assert whole["f1"].bounds == pytest.approx((0.75, 120 / 140))
    low, high = whole["matthews_correlation"].bounds or (0, 0)
    assert low < high
    assert measure(TaskData("t", table, lost=1), "f1").estimates["f1"].bounds is None


def test_bounds_equal_the_value_when_every_item_was_answered() -> None:
    table = [Cell("yes", "yes", True, 60), Cell("no", "yes", False, 20)]
    for estimate in measure(TaskData("t", table), "accuracy", "f1", "matthews_correlation").estimates.values():
        assert estimate.bounds == (estimate.value, estimate.value)
    pairs = plain_pairs(np.array([1.0, 2, 4]), np.array([1.0, 3, 3.5]))
    estimate = measure(TaskData("t", pairs=pairs), "pearson").estimates["pearson"]
    assert estimate.bounds == (estimate.value, estimate.value)


def test_the_suite_score_averages_metrics_within_a_task_and_counts_a_group_once() -> None:
    half = measure(TaskData("a", [Cell("y", "y", True, 50), Cell("y", "n", False, 50)]), "accuracy", positive="y")
    full = measure(
        TaskData("b", [Cell("y", "y", True, 100), Cell("n", "n", True, 100)]), "accuracy", "f1", positive="y"
    )
    none = measure(TaskData("c", [Cell("y", "n", False, 10)]), "accuracy", positive="y")
    grouped = average([[full], [half, none]])
    assert grouped is not None
    assert grouped.value == pytest.approx((1 + (0.5 + 0) / 2) / 2)
    assert grouped.n == 310
    alone = average([[full], [half, none]], "f1")
    assert alone is not None
    assert alone.value == 1.0


def test_an_undefined_correlation_counts_as_zero_in_the_average_with_its_reason() -> None:
    flat = measure(TaskData("a", pairs=plain_pairs(np.ones(5), np.arange(5.0))), "pearson", "spearman")
    full = measure(TaskData("b", [Cell("y", "y", True, 100)]), "accuracy")
    found = average([[flat], [full]])
    assert found is not None
    assert found.value == 0.5
    assert found.undefined_reason == "all predictions are equal"


def test_there_is_no_suite_score_while_a_task_has_no_items() -> None:
    full = measure(TaskData("b", [Cell("y", "y", True, 100)]), "accuracy")
    assert average([[full], [measure(TaskData("a"), "accuracy")]]) is None
    assert average([[full], [measure(TaskData("a"), "pearson")]]) is None


def test_the_suite_interval_has_the_spread_of_independent_tasks() -> None:
    tasks = [
        measure(TaskData(f"t{i}", [Cell("y", "y", True, 300), Cell("y", "n", False, 100)]), "accuracy", resamples=4000)
        for i in range(4)
    ]
    found = average([[task] for task in tasks])
    assert found is not None
    assert found.stderr == pytest.approx(np.sqrt(0.75 * 0.25 / 400 / 4), rel=0.1)
