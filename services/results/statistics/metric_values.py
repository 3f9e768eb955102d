"""Metrics as numbers. Pure: counts and pairs in, values out.

Written out here rather than taken from scikit-learn and scipy, which the tests compare with to 1e-9: their import takes
longer than this service's whole start.

Items are counted in cells of (reference, prediction, correct). A prediction of None is an item that the model did not
answer (unparsed, truncated, refused): wrong in accuracy; in binary F1 a false positive when the reference is negative
and a false negative when it is positive; in macro F1 a false negative of its reference but not a separate label; in the
Matthews correlation a separate predicted class. Infrastructure errors do not count as items here, only in bounds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ACCURACY, MACRO_F1, MATTHEWS, PEARSON, SPEARMAN = "accuracy", "macro_f1", "matthews_correlation", "pearson", "spearman"
BINARY_F1 = frozenset({"f1", "f1a"})
CORRELATIONS = frozenset({PEARSON, SPEARMAN})
CONFUSION_METRICS = BINARY_F1 | {MACRO_F1, MATTHEWS}
"""Metrics of the confusion matrix that are not means over items."""
METRICS = CORRELATIONS | CONFUSION_METRICS | {ACCURACY}


@dataclass(frozen=True, slots=True)
class Cell:
    """`count` items with this reference and prediction; None when the model did not answer.

    Each of an item's several answers counts its share.
    """

    reference: str
    prediction: str | None
    correct: bool
    count: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error, 95 % interval and bounds; `value` is None where it is undefined, with a reason.

    Bounds are the values had every item without an answer been wrong, or right; `answered` is the value over the
    answered items alone. Each is None where it is unknown.
    """

    value: float | None
    n: int
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    undefined_reason: str = ""
    bounds: tuple[float, float] | None = None
    answered: float | None = None


def confusion_metric(name: str, positive: str) -> Callable[[Sequence[Cell]], float]:
    """One of `TABLES` as a function of cells."""
    if name == MACRO_F1:
        return macro_f1
    if name == MATTHEWS:
        return matthews_correlation
    return lambda cells: f1(cells, positive)


def said_positive(cell: Cell, positive: str) -> bool:
    """Whether a cell counts as predicted positive in binary F1: without an answer, whatever is wrong."""
    return cell.reference != positive if cell.prediction is None else cell.prediction == positive


def f1(cells: Iterable[Cell], positive: str) -> float:
    """Binary F1 = 2TP / (2TP + FP + FN); 0 when nothing is positive, as in scikit-learn."""
    tp = wrong = 0.0
    for cell in cells:
        wanted, said = cell.reference == positive, said_positive(cell, positive)
        tp += cell.count * (wanted and said)
        wrong += cell.count * (wanted != said)
    return 2 * tp / (2 * tp + wrong) if tp else 0.0


def macro_f1(cells: Sequence[Cell]) -> float:
    """Unweighted mean of F1 over the labels that occur as references or predictions; a label never right has 0.

    Equals scikit-learn's f1_score(average="macro") with these labels and no answer as a further prediction.
    """
    hits: dict[str, float] = defaultdict(float)
    wrong: dict[str, float] = defaultdict(float)
    for cell in cells:
        if cell.prediction == cell.reference:
            hits[cell.reference] += cell.count
            continue
        wrong[cell.reference] += cell.count
        if cell.prediction is not None:
            wrong[cell.prediction] += cell.count
    labels = {label for side in (hits, wrong) for label, count in side.items() if count}
    scores = [2 * hits[label] / (2 * hits[label] + wrong[label]) for label in sorted(labels)]
    return sum(scores) / len(scores) if scores else 0.0


def matthews_correlation(cells: Sequence[Cell]) -> float:
    """Multiclass Matthews correlation; 0 where it is undefined, as in scikit-learn.

    Source: Gorodkin, Computational Biology and Chemistry 28 (2004) 367.
    """
    references: dict[str | None, float] = defaultdict(float)
    predictions: dict[str | None, float] = defaultdict(float)
    for cell in cells:
        references[cell.reference] += cell.count
        predictions[cell.prediction] += cell.count
    n = sum(references.values())
    agreed = sum(cell.count for cell in cells if cell.prediction == cell.reference)
    product = sum(count * predictions[label] for label, count in references.items())
    spread = (n**2 - sum(c**2 for c in predictions.values())) * (n**2 - sum(c**2 for c in references.values()))
    # Counts that are shares of items do not cancel to the last digit.
    return (agreed * n - product) / math.sqrt(spread) if spread > 1e-24 * n**4 else 0.0


def labels_of(cells: Iterable[Cell]) -> list[str]:
    """Every label that occurs, in order."""
    return sorted({label for cell in cells for label in (cell.reference, cell.prediction) if label is not None})


def answered_right(cells: Sequence[Cell]) -> list[Cell]:
    """The same items had every unanswered one been right."""
    return [replace(c, prediction=c.reference, correct=True) if c.prediction is None else c for c in cells]


def answered_wrong(cells: Sequence[Cell]) -> list[Cell]:
    """The same items had every unanswered one been the other of two labels; unchanged where there are not two."""
    labels = labels_of(cells)
    if len(labels) != 2:
        return list(cells)
    other = dict(zip(labels, labels[::-1], strict=True))
    return [replace(c, prediction=other[c.reference]) if c.prediction is None else c for c in cells]


def answered_otherwise(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The same items had every unanswered one been right, and had every one been wrong."""
    return [answered_right(cells), answered_wrong(cells)]


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
    return pearson(midranks(values), midranks(targets))


def midranks(column: Floats) -> Floats:
    """Ranks from 1; ties share the mean of their places."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
