"""Resampled correlations and tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from services.results.scores.aggregation import TaskData
from services.results.statistics import metric_values, resampling
from services.results.statistics.metric_values import Cell
from tests.unit.results.statistics.tables import cells, measure, plain_pairs


def test_resampled_correlations_equal_scipy_on_the_resample_itself() -> None:
    """The weighted form with counted midranks is the same number as correlating the drawn rows."""
    rng = np.random.default_rng(5)
    values, targets = rng.integers(0, 6, 40).astype(float), rng.integers(0, 5, 40).astype(float)
    drawn = resampling.draw_pairs(values, targets, np.arange(40), ["pearson", "spearman"], 50, np.random.default_rng(9))
    picks = np.random.default_rng(9).integers(0, 40, (50, 40))
    pearson = [stats.pearsonr(values[rows], targets[rows]).statistic for rows in picks]
    spearman = [stats.spearmanr(values[rows], targets[rows]).statistic for rows in picks]
    np.testing.assert_allclose(drawn["pearson"], pearson, atol=1e-9)
    np.testing.assert_allclose(drawn["spearman"], spearman, atol=1e-9)


def test_resampled_cells_follow_the_point_formulas() -> None:
    """Each draw is a table of shares: the formulas for counts must give the same on it."""
    table = [
        Cell("yes", "yes", True, 30),
        Cell("yes", "no", False, 7),
        Cell("no", "no", True, 20),
        Cell("no", None, False, 3),
    ]
    drawn = resampling.draw_cells(
        table,
        {"matthews_correlation": "", "f1": "yes", "accuracy": "", "macro_f1": ""},
        40,
        np.random.default_rng(1),
    )
    grid = [
        Cell("no", "no", True, 20),
        Cell("no", "yes", False, 0),
        Cell("no", None, False, 3),
        Cell("yes", "no", False, 7),
        Cell("yes", "yes", True, 30),
    ]
    shares = np.random.default_rng(1).standard_gamma(np.array([c.count + 0.5 for c in grid]), (40, 5))
    for i, row in enumerate(shares):
        scaled = [Cell(c.reference, c.prediction, c.correct, round(1e9 * s)) for c, s in zip(grid, row, strict=True)]
        assert drawn["matthews_correlation"][i] == pytest.approx(metric_values.matthews_correlation(scaled), abs=1e-6)
        assert drawn["f1"][i] == pytest.approx(metric_values.f1(scaled, "yes"), abs=1e-6)
        assert drawn["macro_f1"][i] == pytest.approx(metric_values.macro_f1(scaled), abs=1e-6)


def test_the_same_items_give_the_same_interval_in_any_order_of_cells() -> None:
    table = cells([("yes", "yes")] * 9 + [("no", "yes")] * 4 + [("no", None)] * 2 + [("maybe", "no")] * 5)
    names = ("accuracy", "f1", "matthews_correlation")
    assert measure(TaskData("t", table), *names).estimates == measure(TaskData("t", table[::-1]), *names).estimates


def test_bootstrap_of_a_large_task_stays_within_memory_and_time() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=58_000)
    targets = values + rng.normal(size=58_000)
    found = measure(TaskData("t", pairs=plain_pairs(values, targets)), "pearson", resamples=40)
    estimate = found.estimates["pearson"]
    assert estimate.low is not None
    assert estimate.low < 0.7071 < (estimate.high or 0)
    assert (estimate.stderr or 1) == pytest.approx((1 - 0.5) / np.sqrt(58_000), rel=0.5)
