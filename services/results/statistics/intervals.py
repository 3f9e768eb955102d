"""Intervals around a value, and ranges of metrics of shares, among them those of the confusion matrix, by Pearson's
chi-square test. Pure.

Written out rather than taken from scipy, which the tests compare with: its import takes longer than this service's
whole start.

An interval of a metric of the confusion matrix reaches from the smallest to the largest value that the metric has in
any table of shares that the test, with one degree of freedom, does not reject by the counts seen. For a share this is
Wilson's interval. A standard error ignores both the skew of small counts and the cells that could occur but did not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise, product

import numpy as np

from services.results.statistics import metric_values
from services.results.statistics.metric_values import Cell, Floats, Ints

Z95 = 1.959963984540054
"""97.5 % point of the normal distribution."""

_SERIES_MOST = 300
_ALL_PAIRS = 16
"""Up to this number of labels, each may be confused with each other one; beyond it, only with the next one, which keeps
tables small."""
UNSEEN = "an unseen label"

_NO_SPREAD = 1e-12
_TINY = 1e-300


@cache
def t95(degrees: int) -> float:
    """97.5 % point of Student's t distribution with 1 or more degrees of freedom.

    Source: Abramowitz and Stegun, 26.7.3 and 26.7.4, solved by bisection; beyond 300 degrees the expansion 26.7.5.
    """
    z = Z95
    if degrees > _SERIES_MOST:
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + first / degrees + second / degrees**2 + third / degrees**3
    low, high = z, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_inside(middle, degrees) < 0.95 else (low, middle)
    return low


def _t_inside(t: float, degrees: int) -> float:
    """Probability of a value between -t and t."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine2 = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(1 if odd else 0, degrees - 1, 2):
        total += term
        term *= cosine2 * (step + 1) / (step + 2)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def score_interval(p: float, n: float, quantile: float = Z95) -> tuple[float, float]:
    """Interval of a share p within [0, 1] that rests on n independent observations, n > 0.

    Source: Wilson, JASA 22 (1927) 209.
    """
    z2 = quantile**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = quantile / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n**2))
    # Rounding must not leave the value outside its own interval.
    return (min(p, centre - half) if p > 0 else 0.0), (max(p, centre + half) if p < 1 else 1.0)


def clustered_interval(
    value: float, stderr: float, clusters: int, span: tuple[float, float] | None
) -> tuple[float, float]:
    """Interval of a metric with a clustered standard error; `clusters` is 2 or more.

    Within a `span` it is Wilson's interval, at the number of independent observations that would have this standard
    error (Kish's effective sample size), with Student's quantile for the number of clusters: a symmetric interval
    covers too little near the ends of the span. Without any spread, as at a perfect score, every cluster is one
    observation.
    """
    quantile = t95(clusters - 1)
    if span is None:
        return value - quantile * stderr, value + quantile * stderr
    start, width = span[0], span[1] - span[0]
    p = min(max((value - start) / width, 0.0), 1.0)
    observations = p * (1 - p) * (width / stderr) ** 2 if stderr > 0 else 0.0
    low, high = score_interval(p, observations or clusters, quantile)
    return start + width * low, start + width * high


Metric = Callable[[Floats], tuple[float, Floats]]
"""Of shares (cells,): its value and its derivatives by them."""
_STEPS, _HALVINGS, _NEWTON_STEPS = 200, 10, 60
_NO_GAIN = 1e-7
"""Of a metric, whose range is 1 or 2."""
_KEPT = 0.25
"""The gain that a step must reach, as a share of what the slopes promise."""
_CLOSE = 1e-10


def largest(counts: Floats, metric: Metric, quantile: float = Z95) -> float:
    """The metric's largest value in any shares that are not rejected by `counts` (cells,); `quantile` is the normal
    distribution's for a two-sided test.

    Each step goes towards the shares at which the metric's linear approximation is largest, as far as the metric rises
    as promised; the set of shares that are not rejected is convex. With few items, several of which are alone in their
    cells, the last steps are short: the value may be off by 0.001. Up to about ten items it may be a local maximum.

    Source: Frank and Wolfe, Naval Research Logistics Quarterly 3 (1956) 95.
    """
    n = counts.sum()
    seen, limit = counts / n, 1 + quantile**2 / n
    # Slopes are defined where every cell has a share.
    smooth = counts + 1 / len(counts)
    _, slopes = metric(smooth / smooth.sum())
    shares = _best_of_linear(seen, slopes, limit)
    value, slopes = metric(shares)
    for _ in range(_STEPS):
        way = _best_of_linear(seen, slopes, limit) - shares
        promised, part = slopes @ way, 1.0
        if promised < _NO_GAIN:
            break
        for _ in range(_HALVINGS):
            reached, slopes_there = metric(shares + part * way)
            if reached - value >= _KEPT * part * promised:
                shares, value, slopes = shares + part * way, reached, slopes_there
                break
            part /= 2
        else:
            break
    return value


def smallest(counts: Floats, metric: Metric, quantile: float = Z95) -> float:
    """The metric's smallest value, as `largest`."""

    def negated(shares: Floats) -> tuple[float, Floats]:
        value, slopes = metric(shares)
        return -value, -slopes

    return -largest(counts, negated, quantile)


def _best_of_linear(seen: Floats, slopes: Floats, limit: float) -> Floats:
    """The shares p with the largest Σ p·slope among those with Σ seen²/p <= limit.

    These are seen / √(ν − slope), made to add up to 1, for the one ν above all slopes at which the limit is reached. A
    cell that does not occur and has the steepest slope takes the rest that the limit leaves.
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
        if abs(following - nu) <= _CLOSE * (nu - low):
            break
        nu = following
    return nu


def confusion_interval(cells: Sequence[Cell], name: str, positive: str, quantile: float = Z95) -> tuple[float, float]:
    """Interval of one of metric_values.TABLES, of independent items; it holds the metric's value.

    `positive` is the label that binary F1 counts as positive. `quantile` is the normal distribution's, for 95 %.
    """
    if name in metric_values.BINARY_F1:
        return _f1_interval(cells, positive, quantile)
    value = metric_values.confusion_metric(name, positive)(cells)
    counts, layout = _of_labels(cells, name)
    low = smallest(counts, layout.metric, quantile)
    high = largest(counts, layout.metric, quantile)
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
