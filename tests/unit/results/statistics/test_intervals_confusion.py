"""Intervals of metrics of the confusion matrix."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.random import default_rng

from services.results.statistics import metric_values
from services.results.statistics.intervals import confusion_interval, score_interval
from services.results.statistics.metric_values import Cell
from tests.recompute import NO_ANSWER, chi_square_interval

METRICS = ("matthews_correlation", "macro_f1", "f1")
Table = list[list[int]]
"""Counts by label, and by answer; a last column beyond the labels is no answer."""
TABLES: dict[str, Table] = {
    "even": [[100, 5], [8, 250]],
    "all right": [[40, 0], [0, 60]],
    "all wrong": [[0, 40], [60, 0]],
    "constant": [[0, 20], [0, 80]],
    "near-constant": [[2, 98], [4, 296]],
    "unread": [[300, 4, 1], [60, 36, 3]],
    "rare label": [[96, 2], [1, 1]],
    "three labels": [[20, 2, 1], [3, 22, 1], [1, 1, 3]],
    "CB": [[23, 1, 0, 0], [2, 24, 0, 1], [1, 2, 2, 0]],
}
SLOW = ("even", "unread", "constant", "near-constant", "rare label", "three labels", "CB")


def cells(table: Table) -> list[Cell]:
    labels = [f"label {place}" for place in range(len(table))]
    return [
        Cell(labels[y], labels[p] if p < len(labels) else None, y == p, float(count))
        for (y, p), count in np.ndenumerate(np.array(table))
        if count
    ]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "table",
    [
        # The optimiser takes seconds for some: `make calibration` runs them.
        pytest.param(table, id=name, marks=[pytest.mark.calibration] if name in SLOW else [])
        for name, table in TABLES.items()
    ],
)
def test_an_interval_is_what_an_optimiser_finds(metric: str, table: Table) -> None:
    made = cells(table)
    references = [cell.reference for cell in made for _ in range(round(cell.count))]
    predictions = [cell.prediction or NO_ANSWER for cell in made for _ in range(round(cell.count))]
    low, high = confusion_interval(made, metric, "label 1")
    assert (low, high) == pytest.approx(chi_square_interval(metric, references, predictions, "label 1"), abs=1e-3)
    assert low < high
    assert low <= metric_values.confusion_metric(metric, "label 1")(made) <= high
    assert confusion_interval(made[::-1], metric, "label 1") == (low, high)


@pytest.mark.parametrize(("right", "n"), [(50, 50), (49, 50), (30, 40), (0, 20), (900, 1000)])
def test_f1_without_true_negatives_has_wilsons_interval_of_the_share_right(right: int, n: int) -> None:
    """Then TP among TP + FP + FN is the share of right answers s, and F1 is 2s/(1 + s)."""
    low, high = confusion_interval(cells([[right, n - right], [0, 0]]), "f1", "label 0")
    wilson = score_interval(right / n, n)
    assert (low, high) == pytest.approx([2 * end / (1 + end) for end in wilson], abs=1e-6)


def test_a_positive_label_that_neither_occurs_nor_is_said_leaves_f1_open() -> None:
    assert confusion_interval(cells([[30, 0], [0, 0]]), "f1", "label 1") == pytest.approx((0, 1))


@pytest.mark.parametrize("metric", METRICS[:2])
def test_one_label_alone_tells_little_of_another(metric: str) -> None:
    low, high = confusion_interval([Cell("yes", "yes", True, 30)], metric, "")
    assert low < 0.5
    assert high == pytest.approx(1)


def test_exchanged_answers_negate_the_matthews_correlation() -> None:
    for one, other in (([[2, 98], [4, 296]], [[98, 2], [296, 4]]), ([[9, 1], [2, 8]], [[1, 9], [8, 2]])):
        low, high = confusion_interval(cells(one), "matthews_correlation", "")
        turned = confusion_interval(cells(other), "matthews_correlation", "")
        assert turned == pytest.approx((-high, -low), abs=1e-5)


@pytest.mark.parametrize("metric", METRICS[:2])
@pytest.mark.parametrize("labels", [16, 17, 60])
def test_many_labels_have_an_interval_with_width_also_when_all_is_right(metric: str, labels: int) -> None:
    low, high = confusion_interval(cells((4 * np.eye(labels, dtype=int)).tolist()), metric, "")
    assert 0.9 < low < 1
    assert high == pytest.approx(1)
    drawn = Counter(map(tuple, default_rng(3).integers(0, labels, (300, 2)).tolist()))
    chance = [Cell(f"{y:02}", f"{p:02}", y == p, float(count)) for (y, p), count in drawn.items()]
    low, high = confusion_interval(chance, metric, "")
    assert low < metric_values.confusion_metric(metric, "")(chance) < high
    assert high - low < 0.25
