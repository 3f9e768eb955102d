"""Intervals of metrics of the confusion matrix. Pure.

An interval reaches from the smallest to the largest value that the metric has in any table of shares that Pearson's
chi-square test, with one degree of freedom, does not reject by the counts seen. For a share this is Wilson's interval.
A standard error ignores both the skew of small counts and the cells that could occur but did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from services.results.statistics import intervals, metric_values
from services.results.statistics.intervals import Z95, score_interval
from services.results.statistics.metric_values import Cell, Floats, Ints

_ALL_PAIRS = 16
"""Up to this number of labels, each may be confused with each other one; beyond it, only with the next one, which keeps
tables small."""
UNSEEN = "an unseen label"

_NO_SPREAD = 1e-12
_TINY = 1e-300


def confusion_interval(cells: Sequence[Cell], name: str, positive: str, quantile: float = Z95) -> tuple[float, float]:
    """Interval of one of metric_values.TABLES, of independent items; it holds the metric's value.

    `positive` is the label that binary F1 counts as positive. `quantile` is the normal distribution's, for 95 %.
    """
    if name in metric_values.BINARY_F1:
        return _f1_interval(cells, positive, quantile)
    value = metric_values.confusion_metric(name, positive)(cells)
    counts, layout = _of_labels(cells, name)
    low = intervals.smallest(counts, layout.metric, quantile)
    high = intervals.largest(counts, layout.metric, quantile)
    return min(low, value), max(high, value)


def _f1_interval(cells: Sequence[Cell], positive: str, quantile: float) -> tuple[float, float]:
    """In closed form: F1 is 2s/(1 + s) of s = TP/(TP + FP + FN), and the share of TN that allows most of s is found by
    setting a derivative to 0. What is left is Wilson's interval of s, of fewer items than TP + FP + FN.
    """
    n = hits = wrong = 0.0
    for cell in cells:
        n += cell.count
        wanted, said = cell.reference == positive, metric_values.said_positive(cell, positive)
        hits += cell.count * (wanted and said)
        wrong += cell.count * (wanted != said)
    if not hits + wrong:
        return 0.0, 1.0
    share = (hits + wrong) / n
    room = ((math.sqrt(1 + quantile**2 / n) - (1 - share)) / share) ** 2 - 1
    low, high = score_interval(hits / (hits + wrong), quantile**2 / room, quantile)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _of_labels(cells: Sequence[Cell], name: str) -> tuple[Floats, Layout]:
    """With the cells that could occur: with only one label, nothing is known about the model on another."""
    labels = metric_values.labels_of(cells)
    if len(labels) == 1:
        labels.append(UNSEEN)
    places: dict[str | None, int] = {label: place for place, label in enumerate(labels)}
    places[None] = len(labels)
    few = len(labels) <= _ALL_PAIRS
    every = range(len(labels))
    possible = list(product(every, every) if few else pairwise([*every, 0]))
    counts: dict[tuple[int, int], float] = dict.fromkeys(possible, 0.0)
    for cell in cells:
        where = places[cell.reference], places[cell.prediction]
        counts[where] = counts.get(where, 0.0) + cell.count
    references, predictions = np.array(sorted(counts), dtype=np.int64).T
    numbers = np.array([counts[where] for where in sorted(counts)])
    return numbers, Layout(name, references, predictions, len(labels), every)


@dataclass(frozen=True)
class Layout:
    """Positions of cells: `references` and `predictions` (cells,) are indices of `labels` labels; the prediction
    `labels` means no answer. `scored` are the labels over which F1 is averaged."""

    name: str
    references: Ints
    predictions: Ints
    labels: int
    scored: Sequence[int]

    def metric(self, shares: Floats) -> tuple[float, Floats]:
        """The metric of shares (cells,) and its derivatives by them, which leave the sum of the shares alone."""
        value, slopes = (self._matthews if self.name == metric_values.MATTHEWS else self._f1)(shares)
        return value, slopes - shares @ slopes

    @cached_property
    def _agreed(self) -> Floats:
        same: Floats = (self.references == self.predictions).astype(float)
        return same

    def _added(self, places: Ints, shares: Floats) -> Floats:
        return np.bincount(places, shares, self.labels + 1).astype(float)

    def _f1(self, shares: Floats) -> tuple[float, Floats]:
        hits = self._added(self.references, shares * self._agreed)
        either = self._added(self.references, shares) + self._added(self.predictions, shares)
        either = np.maximum(either, _TINY)
        weights = np.zeros(self.labels + 1)
        weights[list(self.scored)] = 1 / len(self.scored)
        scores = 2 * hits / either
        gained, lost = 2 * weights / either, weights * scores / either
        slopes = gained[self.references] * self._agreed - lost[self.references] - lost[self.predictions]
        return float(weights @ scores), slopes

    def _matthews(self, shares: Floats) -> tuple[float, Floats]:
        references, predictions = self._added(self.references, shares), self._added(self.predictions, shares)
        spread, said_spread = 1 - references @ references, 1 - predictions @ predictions
        if min(spread, said_spread) <= _NO_SPREAD:
            return 0.0, np.zeros_like(shares)
        scale = np.sqrt(spread * said_spread)
        value = (shares @ self._agreed - references @ predictions) / scale
        moved = self._agreed - predictions[self.references] - references[self.predictions]
        slopes = moved / scale
        slopes += value * (references[self.references] / spread + predictions[self.predictions] / said_spread)
        return float(value), slopes
