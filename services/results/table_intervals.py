"""Intervals of metrics of the table of references and predictions. Pure.

An interval reaches from the smallest to the largest value that the metric has in any table of shares that Pearson's
chi-square test, with one degree of freedom, does not reject by the counts seen. Of a share this is Wilson's interval,
and of one label's F1 it is close to Wilson's of TP among TP + FP + FN. A standard error knows neither how skewed small
counts are nor what cells may hold that could occur and did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from services.results import statistics
from services.results.intervals import Z95
from services.results.statistics import Cell, Floats, Ints

_ALL_PAIRS = 16
"""Up to so many labels each may be taken for each other; beyond them for the next one, which keeps tables small."""
_UNSEEN = "an unseen label"
_STEPS, _HALVINGS, _NEWTON_STEPS = 200, 10, 60
_NO_GAIN = 1e-7
"""Of a metric, whose range is 1 or 2."""
_KEPT = 0.25
"""What a step must gain, as a part of what the slopes promise."""
_TINY = 1e-300
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class _Table:
    """`counts` (cells,) of references and predictions, which are places among `labels` labels; prediction `labels` is
    no answer."""

    counts: Floats
    references: Ints
    predictions: Ints
    labels: int

    def references_of(self, shares: Floats) -> Floats:
        return self._added(self.references, shares)

    def predictions_of(self, shares: Floats) -> Floats:
        return self._added(self.predictions, shares)

    def hits_of(self, shares: Floats) -> Floats:
        return self._added(self.references, shares * self.agreed)

    @cached_property
    def agreed(self) -> Floats:
        same: Floats = (self.references == self.predictions).astype(float)
        return same

    def _added(self, places: Ints, shares: Floats) -> Floats:
        return np.bincount(places, shares, self.labels + 1).astype(float)


def table_interval(cells: Sequence[Cell], name: str, positive: str) -> tuple[float, float]:
    """95 % interval of one of statistics.TABLES, of independent items; it holds the metric's value.

    `positive` is the label that binary F1 counts as positive.
    """
    value = statistics.table_metric(name, positive)(cells)
    table = _two_sided(cells, positive) if name in statistics.BINARY_F1 else _of_labels(cells)
    low, high = (_furthest(table, name, direction) for direction in (-1.0, 1.0))
    return min(low, value), max(high, value)


def _two_sided(cells: Sequence[Cell], positive: str) -> _Table:
    """Label 0 is positive, label 1 all others."""
    counts = np.zeros((2, 2))
    for cell in cells:
        counts[int(cell.reference != positive), int(not statistics.said_positive(cell, positive))] += cell.count
    references, predictions = (each.ravel() for each in np.indices((2, 2)))
    return _Table(counts.ravel(), references, predictions, 2)


def _of_labels(cells: Sequence[Cell]) -> _Table:
    """With the cells that could occur: of one label alone it is unknown how the model would do on another."""
    labels = statistics.labels_of(cells)
    if len(labels) == 1:
        labels.append(_UNSEEN)
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
    return _Table(numbers, references, predictions, len(labels))


def _furthest(table: _Table, name: str, direction: float) -> float:
    """The metric's largest value in any table that is not rejected, or its smallest for a direction of −1.

    Each step goes towards the table in which the metric's linear approximation is largest, as far as the metric
    keeps what that promises; the set of tables that are not rejected is convex. Of a few items, several of which lie in
    cells of their own, the last steps are short: the value may be off by 0.001.

    Source: Frank and Wolfe, Naval Research Logistics Quarterly 3 (1956) 95.
    """
    n = table.counts.sum()
    seen, limit = table.counts / n, 1 + Z95**2 / n
    # Slopes are defined where every cell has a share.
    smooth = table.counts + 1 / len(table.counts)
    _, slopes = _value_and_slopes(table, name, smooth / smooth.sum())
    shares = _best_of_linear(seen, direction * slopes, limit)
    value, slopes = _value_and_slopes(table, name, shares)
    for _ in range(_STEPS):
        way = _best_of_linear(seen, direction * slopes, limit) - shares
        promised, part = direction * (slopes @ way), 1.0
        if promised < _NO_GAIN:
            break
        for _ in range(_HALVINGS):
            reached, slopes_there = _value_and_slopes(table, name, shares + part * way)
            if direction * (reached - value) >= _KEPT * part * promised:
                shares, value, slopes = shares + part * way, reached, slopes_there
                break
            part /= 2
        else:
            break
    return value


def _best_of_linear(seen: Floats, slopes: Floats, limit: float) -> Floats:
    """The shares p with the largest Σ p·slope among those with Σ seen²/p <= limit.

    These are seen / √(ν − slope), made to add up to 1, for the one ν above all slopes at which the limit is reached.
    A cell that does not occur and has the steepest slope takes what the limit leaves to it.
    """
    occurring = seen > 0
    counted, steep = seen[occurring], slopes[occurring]
    top, spread = steep.max(), np.ptp(steep)
    unseen = int(np.argmax(np.where(occurring, -np.inf, slopes)))
    last = slopes[unseen] if not occurring.all() else -np.inf
    found = np.zeros_like(seen)
    if last > top:
        root = np.sqrt(last - steep)
        found[occurring] = counted / root * (counted @ root) / limit
        if (rest := 1 - found.sum()) >= 0:
            found[unseen] = rest
            return found
    if spread <= _TINY:
        return seen
    nu = _multiplier(counted, steep, limit)
    found[occurring] = counted / np.sqrt(nu - steep)
    found /= found.sum()
    return found


def _multiplier(counted: Floats, steep: Floats, limit: float) -> float:
    """ν by Newton's method. (h − 1)^−½ is nearly linear in ν, where h is what `limit` limits."""
    mean = float(counted @ steep)
    low = float(steep.max())
    spread = float(np.sqrt(counted @ (steep - mean) ** 2 / (limit - 1)))
    nu = max(mean + spread / 2, low + 1e-3 * (low - mean))
    for _ in range(_NEWTON_STEPS):
        rest = nu - steep
        root = np.sqrt(rest)
        first, second = counted @ (1 / root), counted @ root
        over = max(float(first * second) - 1, _TINY)
        slope = (first**2 - second * (counted @ (1 / (rest * root)))) / 2
        step = 2 * over * (1 - np.sqrt(over / (limit - 1))) / slope
        following = nu + step if nu + step > low else (nu + low) / 2
        if abs(following - nu) <= 1e-12 * (nu - low):
            break
        nu = following
    return nu


def _value_and_slopes(table: _Table, name: str, shares: Floats) -> tuple[float, Floats]:
    """A metric of shares and its derivatives by them."""
    if name == statistics.MATTHEWS:
        value, slopes = _matthews(table, shares)
    else:
        value, slopes = _f1(table, shares, 1 if name in statistics.BINARY_F1 else table.labels)
    return value, slopes - shares @ slopes


def _f1(table: _Table, shares: Floats, labels: int) -> tuple[float, Floats]:
    """The mean over the first so many labels."""
    hits = table.hits_of(shares)
    either = np.maximum(table.references_of(shares) + table.predictions_of(shares), _TINY)
    weights = np.zeros(table.labels + 1)
    weights[:labels] = 1 / labels
    scores = 2 * hits / either
    gained, lost = 2 * weights / either, weights * scores / either
    slopes = gained[table.references] * table.agreed - lost[table.references] - lost[table.predictions]
    return float(weights @ scores), slopes


def _matthews(table: _Table, shares: Floats) -> tuple[float, Floats]:
    references, predictions = table.references_of(shares), table.predictions_of(shares)
    spread, said_spread = 1 - references @ references, 1 - predictions @ predictions
    if min(spread, said_spread) <= _NO_SPREAD:
        return 0.0, np.zeros_like(shares)
    scale = np.sqrt(spread * said_spread)
    value = (shares @ table.agreed - references @ predictions) / scale
    moved = table.agreed - predictions[table.references] - references[table.predictions]
    slopes = moved / scale
    slopes += value * (references[table.references] / spread + predictions[table.predictions] / said_spread)
    return float(value), slopes
