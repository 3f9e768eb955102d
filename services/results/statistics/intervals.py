"""Intervals around a value. Pure.

Written out rather than taken from scipy, which the tests compare with: its import takes longer than this service's
whole start.
"""

from __future__ import annotations

import math
from functools import cache

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

    Within a `span` it is Wilson's, at the number of independent observations that would have this standard error
    (Kish's effective sample size), with Student's quantile for the number of clusters: a symmetric interval covers too
    little near the ends of the span. Without any spread, as at a perfect score, every cluster is one observation.
    """
    quantile = t95(clusters - 1)
    if span is None:
        return value - quantile * stderr, value + quantile * stderr
    start, width = span[0], span[1] - span[0]
    p = min(max((value - start) / width, 0.0), 1.0)
    observations = p * (1 - p) * (width / stderr) ** 2 if stderr > 0 else 0.0
    low, high = score_interval(p, observations or clusters, quantile)
    return start + width * low, start + width * high
