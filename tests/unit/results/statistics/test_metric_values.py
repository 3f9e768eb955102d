"""Point values against scikit-learn and scipy, and what the intervals are worth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from services.results.scores.aggregation import TaskData
from services.results.statistics import metric_values
from services.results.statistics.metric_values import Cell
from tests.parts import NIGHTLY
from tests.unit.results.statistics.tables import cells, measure, plain_pairs

LABELS = ("no", "yes", "maybe")
NONE = "(no answer)"
answers = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from([*LABELS, None])), min_size=1, max_size=60)
binary_answers = st.lists(st.tuples(st.sampled_from(LABELS[:2]), st.sampled_from([*LABELS[:2], None])), min_size=1)
numbers = st.lists(
    st.tuples(st.integers(-50, 50).map(lambda i: i / 8), st.integers(0, 20).map(lambda i: i / 4)),
    min_size=2,
    max_size=80,
)


@given(answers)
@settings(max_examples=150 if NIGHTLY else 40, deadline=None)
def test_matthews_correlation_equals_scikit_learn_with_no_answer_as_a_third_label(
    pairs: list[tuple[str, str | None]],
) -> None:
    references = [r for r, _ in pairs]
    predictions = [NONE if p is None else p for _, p in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sk.matthews_corrcoef(references, predictions)
    assert metric_values.matthews_correlation(cells(pairs)) == pytest.approx(expected, abs=1e-9)


@given(binary_answers)
@settings(max_examples=150 if NIGHTLY else 40, deadline=None)
def test_f1_equals_scikit_learn_with_unanswered_items_on_the_wrong_side(pairs: list[tuple[str, str | None]]) -> None:
    references = [r for r, _ in pairs]
    predictions = [p if p is not None else {"yes": "no", "no": "yes"}[r] for r, p in pairs]
    expected = sk.f1_score(references, predictions, pos_label="yes", labels=["no", "yes"], zero_division=0)
    assert metric_values.f1(cells(pairs), "yes") == pytest.approx(expected, abs=1e-9)


def test_an_unparsed_negative_is_a_false_positive_and_an_unparsed_positive_a_false_negative() -> None:
    right = [Cell("yes", "yes", True, 2), Cell("no", "no", True, 2)]
    assert metric_values.f1(right, "yes") == 1
    assert metric_values.f1([*right, Cell("no", None, False, 1)], "yes") == pytest.approx(4 / 5)
    assert metric_values.f1([*right, Cell("yes", None, False, 1)], "yes") == pytest.approx(4 / 5)


@given(answers)
@settings(max_examples=150 if NIGHTLY else 40, deadline=None)
def test_macro_f1_equals_scikit_learn_over_the_labels_that_occur(pairs: list[tuple[str, str | None]]) -> None:
    references = [r for r, _ in pairs]
    predictions = [NONE if p is None else p for _, p in pairs]
    labels = sorted({*references, *predictions} - {NONE})
    expected = sk.f1_score(references, predictions, labels=labels, average="macro", zero_division=0)
    assert metric_values.macro_f1(cells(pairs)) == pytest.approx(expected, abs=1e-9)


@given(answers)
@settings(max_examples=100 if NIGHTLY else 40, deadline=None)
def test_accuracy_equals_scikit_learn_with_unanswered_items_wrong(pairs: list[tuple[str, str | None]]) -> None:
    found = measure(TaskData("t", cells(pairs)), "accuracy").estimates["accuracy"]
    expected = sk.accuracy_score([r for r, _ in pairs], [NONE if p is None else p for _, p in pairs])
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert found.n == len(pairs)


@given(numbers)
@settings(max_examples=100 if NIGHTLY else 40, deadline=None)
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


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="bleu"):
        measure(TaskData("t"), "bleu")
