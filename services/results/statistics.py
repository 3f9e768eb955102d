"""Metrics as numbers. Pure: counts and pairs in, values out.

Written out here rather than taken from scikit-learn and scipy, which the tests compare with to 1e-9: their import takes
longer than this service's whole start.

Items are counted in cells of (reference, prediction, correct). A prediction of None is an item that the model did not
answer (unparsed, truncated, refused): wrong in accuracy; in F1 a false positive when the reference is negative and a
false negative when it is positive; in the Matthews correlation a predicted class of its own. Infrastructure errors are
no items here; they count only in bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ACCURACY, F1, MATTHEWS, PEARSON, SPEARMAN = "accuracy", "f1", "matthews_correlation", "pearson", "spearman"
CORRELATIONS = frozenset({PEARSON, SPEARMAN})
METRICS = CORRELATIONS | {ACCURACY, F1, MATTHEWS}

Z95 = 1.959963984540054
"""97.5 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`count` items with this reference and prediction; None when the model did not answer."""

    reference: str
    prediction: str | None
    correct: bool
    count: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error, 95 % interval and bounds; `value` is None where it is undefined, with a reason.

    Bounds are the values had every item without an answer been wrong, or right; None where they cannot be told.
    """

    value: float | None
    n: int
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    undefined_reason: str = ""
    bounds: tuple[float, float] | None = None


def wilson(correct: int, n: int) -> tuple[float, float]:
    """95 % score interval of a proportion, n ≥ 1. Source: Wilson, JASA 22 (1927) 209."""
    p = correct / n
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    # Rounding must not leave the value outside its own interval.
    return (centre - half if correct else 0.0), (centre + half if correct < n else 1.0)


def accuracy(correct: int, unanswered: int, n: int, lost: int = 0) -> Estimate:
    """Share of right answers among n items, with its Wilson interval and √(p(1−p)/n).

    `lost` items were planned and have no final outcome: they count in the bounds only.
    """
    if n == 0:
        return Estimate(None, 0, undefined_reason="no items")
    p = correct / n
    low, high = wilson(correct, n)
    bounds = (correct / (n + lost), (correct + unanswered + lost) / (n + lost))
    return Estimate(p, n, math.sqrt(p * (1 - p) / n), low, high, "wilson", bounds=bounds)


def f1(cells: Iterable[Cell], positive: str) -> float:
    """Binary F1 = 2TP / (2TP + FP + FN); 0 when nothing is positive, as in scikit-learn."""
    tp = fp = fn = 0
    for cell in cells:
        wanted = cell.reference == positive
        said = not wanted if cell.prediction is None else cell.prediction == positive
        tp += cell.count * (wanted and said)
        fp += cell.count * (said and not wanted)
        fn += cell.count * (wanted and not said)
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def matthews_correlation(cells: Sequence[Cell]) -> float:
    """Multiclass Matthews correlation; 0 where it is undefined, as in scikit-learn.

    Source: Gorodkin, Computational Biology and Chemistry 28 (2004) 367.
    """
    references: Counter[str | None] = Counter()
    predictions: Counter[str | None] = Counter()
    for cell in cells:
        references[cell.reference] += cell.count
        predictions[cell.prediction] += cell.count
    n = references.total()
    agreed = sum(cell.count for cell in cells if cell.prediction == cell.reference)
    product = sum(count * predictions[label] for label, count in references.items())
    spread = (n**2 - sum(c**2 for c in predictions.values())) * (n**2 - sum(c**2 for c in references.values()))
    return (agreed * n - product) / math.sqrt(spread) if spread else 0.0


def answered_otherwise(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The same items had every unanswered one been right, and, with two labels, had each been the other label."""
    right = [replace(c, prediction=c.reference, correct=True) if c.prediction is None else c for c in cells]
    labels = {c.reference for c in cells} | {c.prediction for c in cells if c.prediction is not None}
    if len(labels) != 2:
        return [right]
    other = {label: next(iter(labels - {label})) for label in labels}
    return [right, [replace(c, prediction=other[c.reference]) if c.prediction is None else c for c in cells]]


def undefined_correlation(values: Floats, targets: Floats) -> str:
    """Why two columns have no correlation, or "" when they have one."""
    if len(values) < 2:
        return "fewer than two items"
    if np.ptp(values) == 0:
        return "all predictions are equal"
    if np.ptp(targets) == 0:
        return "all references are equal"
    return ""


def pearson(values: Floats, targets: Floats) -> float:
    """Correlation of two columns that have one."""
    x, y = ((column - column.mean()) for column in (values, targets))
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1, 1))


def spearman(values: Floats, targets: Floats) -> float:
    """Correlation of the ranks of two columns; ties share the mean of their places."""
    return pearson(_midranks(values), _midranks(targets))


def _midranks(column: Floats) -> Floats:
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
