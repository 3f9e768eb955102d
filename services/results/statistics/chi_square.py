"""Ranges of metrics of shares: all values that Pearson's chi-square test, with one degree of freedom, does not reject
by the counts seen. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.results.statistics.intervals import Z95
from services.results.statistics.metric_values import Floats

Metric = Callable[[Floats], tuple[float, Floats]]
"""Of shares (cells,): its value and its derivatives by them."""
_STEPS, _HALVINGS, _NEWTON_STEPS = 200, 10, 60
_NO_GAIN = 1e-7
"""Of a metric, whose range is 1 or 2."""
_KEPT = 0.25
"""What a step must gain, as a part of what the slopes promise."""
_TINY = 1e-300
_CLOSE = 1e-10


def largest(counts: Floats, metric: Metric, quantile: float = Z95) -> float:
    """The metric's largest value in any shares that are not rejected by `counts` (cells,); `quantile` is the normal
    distribution's for a two-sided test.

    Each step goes towards the shares at which the metric's linear approximation is largest, as far as the metric
    keeps what that promises; the set of shares that are not rejected is convex. Of a few items, several of which lie in
    cells of their own, the last steps are short: the value may be off by 0.001. Up to about ten items it may be a local
    maximum.

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
        if abs(following - nu) <= _CLOSE * (nu - low):
            break
        nu = following
    return nu
