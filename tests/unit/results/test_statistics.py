"""Point values against scikit-learn and scipy, and what the intervals are worth."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from services.results import aggregation, resampling, scores, statistics
from services.results.aggregation import Pairs, TaskData
from services.results.averages import average
from services.results.intervals import score_interval
from services.results.scores import Lost
from services.results.statistics import Cell, Floats
from touchstone.v1.suite_pb2 import MetricSpec

LABELS = ("no", "yes", "maybe")
NONE = "(no answer)"

answers = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None])), min_size=1, max_size=60)
binary_answers = st.lists(st.tuples(st.sampled_from(LABELS[:2]), st.sampled_from([*LABELS[:2], None])), min_size=1)
numbers = st.lists(
    st.tuples(st.integers(-50, 50).map(lambda i: i / 8), st.integers(0, 20).map(lambda i: i / 4)),
    min_size=2,
    max_size=80,
)


def cells(pairs: Sequence[tuple[str, str | None]]) -> list[Cell]:
    return [Cell(r, p, r == p, count) for (r, p), count in Counter(pairs).items()]


def measure(data: TaskData, *names: str, positive: str = "yes", resamples: int = 200) -> aggregation.Measured:
    return aggregation.measure(data, [MetricSpec(metric=n, positive_label=positive) for n in names], resamples)


def plain_pairs(values: Floats, targets: Floats) -> Pairs:
    """One answered pair per item."""
    n = len(values)
    return Pairs(values, targets, np.ones(n, bool), np.arange(n), n)


@given(answers)
@settings(max_examples=150, deadline=None)
def test_matthews_correlation_equals_scikit_learn_with_no_answer_as_a_third_label(
    pairs: list[tuple[str, str | None]],
) -> None:
    references = [r for r, _ in pairs]
    predictions = [NONE if p is None else p for _, p in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sk.matthews_corrcoef(references, predictions)
    assert statistics.matthews_correlation(cells(pairs)) == pytest.approx(expected, abs=1e-9)


@given(binary_answers)
@settings(max_examples=150, deadline=None)
def test_f1_equals_scikit_learn_with_unanswered_items_on_the_wrong_side(pairs: list[tuple[str, str | None]]) -> None:
    references = [r for r, _ in pairs]
    predictions = [p if p is not None else {"yes": "no", "no": "yes"}[r] for r, p in pairs]
    expected = sk.f1_score(references, predictions, pos_label="yes", labels=["no", "yes"], zero_division=0)
    assert statistics.f1(cells(pairs), "yes") == pytest.approx(expected, abs=1e-9)


def test_an_unparsed_negative_is_a_false_positive_and_an_unparsed_positive_a_false_negative() -> None:
    right = [Cell("yes", "yes", True, 2), Cell("no", "no", True, 2)]
    assert statistics.f1(right, "yes") == 1
    assert statistics.f1([*right, Cell("no", None, False, 1)], "yes") == pytest.approx(4 / 5)
    assert statistics.f1([*right, Cell("yes", None, False, 1)], "yes") == pytest.approx(4 / 5)


@given(answers)
@settings(max_examples=150, deadline=None)
def test_macro_f1_equals_scikit_learn_over_the_labels_that_occur(pairs: list[tuple[str, str | None]]) -> None:
    references = [r for r, _ in pairs]
    predictions = [NONE if p is None else p for _, p in pairs]
    labels = sorted({*references, *predictions} - {NONE})
    expected = sk.f1_score(references, predictions, labels=labels, average="macro", zero_division=0)
    assert statistics.macro_f1(cells(pairs)) == pytest.approx(expected, abs=1e-9)


@given(answers)
@settings(max_examples=100, deadline=None)
def test_accuracy_equals_scikit_learn_with_unanswered_items_wrong(pairs: list[tuple[str, str | None]]) -> None:
    found = measure(TaskData("t", cells(pairs)), "accuracy").estimates["accuracy"]
    expected = sk.accuracy_score([r for r, _ in pairs], [NONE if p is None else p for _, p in pairs])
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.n == len(pairs)


@given(numbers)
@settings(max_examples=100, deadline=None)
def test_correlations_equal_scipy_or_say_why_there_is_none(pairs: list[tuple[float, float]]) -> None:
    values, targets = (np.array(column) for column in zip(*pairs, strict=True))
    data = TaskData("t", pairs=plain_pairs(values, targets))
    found = measure(data, "pearson", "spearman").estimates
    if np.ptp(values) == 0 or np.ptp(targets) == 0:
        assert found["pearson"].value is None
        assert "are equal" in found["pearson"].undefined_reason
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found["pearson"].value == pytest.approx(stats.pearsonr(values, targets).statistic, abs=1e-9)
        assert found["spearman"].value == pytest.approx(stats.spearmanr(values, targets).statistic, abs=1e-9)


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
        assert drawn["matthews_correlation"][i] == pytest.approx(statistics.matthews_correlation(scaled), abs=1e-6)
        assert drawn["f1"][i] == pytest.approx(statistics.f1(scaled, "yes"), abs=1e-6)
        assert drawn["macro_f1"][i] == pytest.approx(statistics.macro_f1(scaled), abs=1e-6)


def test_wilson_intervals_cover_close_to_95_percent_on_average_over_p() -> None:
    coverage = []
    for n in (30, 71, 277):
        for p in np.linspace(0.05, 0.95, 19):
            counts = np.arange(n + 1)
            inside = np.array([low <= p <= high for low, high in (score_interval(k / n, n) for k in counts)])
            coverage.append(float(stats.binom.pmf(counts, n, p)[inside].sum()))
    assert 0.94 <= np.mean(coverage) <= 0.96
    assert min(coverage) > 0.90


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


def test_the_same_items_give_the_same_interval_in_any_order_of_cells() -> None:
    table = cells([("yes", "yes")] * 9 + [("no", "yes")] * 4 + [("no", None)] * 2 + [("maybe", "no")] * 5)
    names = ("accuracy", "f1", "matthews_correlation")
    assert measure(TaskData("t", table), *names).estimates == measure(TaskData("t", table[::-1]), *names).estimates


def test_bounds_move_unanswered_and_lost_items_from_all_wrong_to_all_right() -> None:
    table = [Cell("yes", "yes", True, 60), Cell("no", "yes", False, 20), Cell("no", None, False, 20)]
    accuracy = scores.of_cells(table)
    assert scores.estimate(accuracy, Lost(), clustered=False).bounds == (0.6, 0.8)
    assert scores.estimate(accuracy, Lost(units=100), clustered=False).bounds == (0.3, 0.9)
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


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="bleu"):
        measure(TaskData("t"), "bleu")


def test_bootstrap_of_a_large_task_stays_within_memory_and_time() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=58_000)
    targets = values + rng.normal(size=58_000)
    found = measure(TaskData("t", pairs=plain_pairs(values, targets)), "pearson", resamples=40)
    estimate = found.estimates["pearson"]
    assert estimate.low is not None
    assert estimate.low < 0.7071 < (estimate.high or 0)
    assert (estimate.stderr or 1) == pytest.approx((1 - 0.5) / np.sqrt(58_000), rel=0.5)
