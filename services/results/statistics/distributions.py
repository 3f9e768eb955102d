"""Tails and quantiles of distributions, for arrays. Pure.

Written out rather than taken from scipy, which the tests compare with to 1e-9: importing `scipy.special` alone takes
as long as this service's start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from services.results.statistics.metric_values import Floats

_NORMAL = NormalDist()
_TINY = 1e-300
_MOST_TERMS = 20_000
_MOST_STEPS = 100
_SERIES_MOST = 300
_ALMOST_NORMAL = 1e6
"""Degrees of freedom from which Student's t counts as normal."""


def _elementwise(function: Callable[[float], float]) -> Callable[[npt.ArrayLike], Floats]:
    each = np.frompyfunc(function, 1, 1)

    def apply(values: npt.ArrayLike) -> Floats:
        return np.asarray(each(np.asarray(values, dtype=float)), dtype=float)

    return apply


_erfc = _elementwise(math.erfc)
_each_lgamma = _elementwise(math.lgamma)


def _lgamma(values: npt.ArrayLike) -> Floats:
    """Of thousands of values few are different: they are degrees of freedom."""
    different, places = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    found: Floats = _each_lgamma(different)[places.reshape(np.shape(values))]
    return found


def normal_tail(z: npt.ArrayLike) -> Floats:
    """Probability of a standard normal value above z."""
    return _erfc(np.asarray(z, dtype=float) / math.sqrt(2)) / 2


def normal_quantile(probability: float) -> float:
    """The standard normal value with this probability below it."""
    return _NORMAL.inv_cdf(probability)


def incomplete_beta(a: npt.ArrayLike, b: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
    """Regularised incomplete beta function I_x(a, b) for a, b > 0 and x within [0, 1].

    Source: the continued fraction 26.5.8 of Abramowitz and Stegun, evaluated by Lentz's method.
    """
    a, b, x = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (a, b, x)))
    # The fraction converges fast below the mean; above it the other tail is taken.
    swap = x > (a + 1) / (a + b + 2)
    a, b, x = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, 1 - x, x)
    with np.errstate(divide="ignore"):
        logs = _lgamma(a + b) - _lgamma(a) - _lgamma(b) + a * np.log(x) + b * np.log1p(-x)
    front = np.where(x > 0, np.exp(logs) / a, 0.0)
    share = np.clip(front * _beta_fraction(a, b, x), 0.0, 1.0)
    result: Floats = np.where(swap, 1 - share, share)
    return result


def _beta_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    def away_from_zero(values: Floats) -> Floats:
        return np.where(np.abs(values) < _TINY, _TINY, values)

    c = np.ones_like(x)
    d = 1 / away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d.copy()
    for m in range(1, _MOST_TERMS):
        before = fraction
        double = a + 2 * m
        for numerator in (
            m * (b - m) * x / ((double - 1) * double),
            -(a + m) * (a + b + m) * x / (double * (double + 1)),
        ):
            d = 1 / away_from_zero(1 + numerator * d)
            c = away_from_zero(1 + numerator / c)
            fraction = fraction * c * d
        if (np.abs(fraction - before) <= 1e-14 * np.abs(fraction)).all():
            break
    return fraction


def student_tail(t: npt.ArrayLike, degrees: npt.ArrayLike) -> Floats:
    """Probability of a value of Student's t above t; degrees of freedom above 0, whole or not."""
    x, df = np.broadcast_arrays(
        np.asarray(t, dtype=float), np.minimum(np.asarray(degrees, dtype=float), _ALMOST_NORMAL)
    )
    outside = incomplete_beta(df / 2, 0.5, df / (df + x * x)) / 2
    result: Floats = np.where(x >= 0, outside, 1 - outside)
    return np.where(df >= _ALMOST_NORMAL, normal_tail(x), result)


def student_quantile(probability: float, degrees: npt.ArrayLike) -> Floats:
    """The value of Student's t with this probability, above .5, below it; 1 or more degrees of freedom.

    Source: beyond 300 degrees the expansion 26.7.5 of Abramowitz and Stegun.
    """
    df = np.asarray(degrees, dtype=float)
    z = normal_quantile(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    found = np.asarray(z + sum(term / df**power for power, term in enumerate(terms, 1)))
    few = df <= _SERIES_MOST
    if np.any(few):
        wanted, each = np.unique(df[few], return_inverse=True)
        start = np.where(wanted < 10, z, found[few][np.unique(each, return_index=True)[1]])
        found[few] = _student_newton(start, 1 - probability, wanted)[each]
    return found


def _student_newton(t: Floats, above: float, degrees: Floats) -> Floats:
    constant = _lgamma((degrees + 1) / 2) - _lgamma(degrees / 2) - np.log(degrees * np.pi) / 2
    # The tail is convex and fatter than the normal distribution's: steps from the left never pass the root.
    for _ in range(_MOST_STEPS):
        density = np.exp(constant - (degrees + 1) / 2 * np.log1p(t * t / degrees))
        step = (student_tail(t, degrees) - above) / density
        t += step
        if np.all(np.abs(step) <= 1e-11 * t):
            break
    return t


def chi_square_tail(x: float, degrees: int) -> float:
    """Probability of a chi-square value above x; 1 or more degrees of freedom.

    Source: Abramowitz and Stegun, 26.4.4 and 26.4.5.
    """
    if x <= 0:
        return 1.0
    half = x / 2
    odd = degrees % 2
    total = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    start = 0.5 if odd else 1.0
    for step in range((degrees - 1) // 2):
        total += math.exp((start + step) * math.log(half) - half - math.lgamma(start + step + 1))
    return min(1.0, total)


def binomial_tail(most: npt.ArrayLike, trials: npt.ArrayLike) -> Floats:
    """Probability of at most `most` heads in `trials` throws of a coin."""
    heads, throws = np.broadcast_arrays(np.asarray(most, dtype=float), np.asarray(trials, dtype=float))
    inside = (heads >= 0) & (heads < throws)
    k, n = np.where(inside, heads, 0.0), np.where(inside, throws, 1.0)
    tail = incomplete_beta(n - k, k + 1, 0.5)
    return np.where(inside, tail, np.where(heads < 0, 0.0, 1.0))
