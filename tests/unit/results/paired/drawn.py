"""Drawn answers, and bootstraps of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.results.paired.differences import task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.paired.pairs.rows import TaskRows
from services.results.statistics.metric_values import Floats, Ints

PAIR = [(0, 1)]


def difference(task: TaskRows, metric: str, terms: Terms | None = None) -> Difference:
    return task_differences([task], PAIR, terms or Terms())[0][metric][0]


def exchanged(
    rng: np.random.Generator, draws: int, score: Callable[[Any], Floats], a: npt.NDArray[Any], b: npt.NDArray[Any]
) -> Floats:
    """Differences of a score of (draws, items) after exchanging the answers to random items."""
    swap = rng.random((draws, len(a))) < 0.5
    return score(np.where(swap, b, a)) - score(np.where(swap, a, b))


def agrees(found: Difference, moved: Floats) -> None:
    assert found.value is not None
    expected = float(np.mean(np.abs(moved) >= abs(found.value) - 1e-12))
    error = np.sqrt(max(expected, 1 / len(moved)) / len(moved))
    assert found.p == pytest.approx(expected, rel=0.05, abs=4 * error)


def of_rows(metric: str, references: Ints, predictions: Ints) -> Floats:
    """A metric of two labels, of (draws, items) predictions."""
    tp, fp = (((predictions == 1) & (references == y)).sum(axis=1).astype(float) for y in (1, 0))
    fn, tn = (((predictions == 0) & (references == y)).sum(axis=1).astype(float) for y in (1, 0))
    if metric == "accuracy":
        return np.asarray((tp + tn) / (tp + tn + fp + fn))
    found: Floats = 2 * tp / (2 * tp + fp + fn)
    if metric == "macro_f1":
        found = (found + 2 * tn / (2 * tn + fp + fn)) / 2
    if metric == "matthews_correlation":
        # 0 where all answers are the same: no product below 1 is one.
        found = (tp * tn - fp * fn) / np.sqrt(np.maximum((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn), 1))
    return found
