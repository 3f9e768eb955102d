"""Intervals around a value, and ranges of metrics of shares by Pearson's chi-square test. Pure.

Written out rather than taken from scipy, which the tests compare with: its import takes longer than this service's
whole start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from services.results.statistics.metric_values import Floats

Z95 = 1.959963984540054
"""97.5 % point of the normal distribution."""

_SERIES_MOST = 300


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
_TINY = 1e-300
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
