"""Two models right or wrong on the same n independent items, for arrays of such counts. Pure.

`only_a` and `only_b` count the items that only one of the two has right.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from services.results.statistics.distributions import binomial_tail, normal_quantile, normal_tail
from services.results.statistics.metric_values import Floats

_STEPS = 50
_POWER = 0.8


def mcnemar(only_a: Floats, only_b: Floats) -> Floats:
    """Two-sided p of the exact test that either model is equally likely to be the only one that is right.

    Source: McNemar, Psychometrika 12 (1947) 153, with the binomial distribution.
    """
    p: Floats = np.minimum(1.0, 2 * binomial_tail(np.minimum(only_a, only_b), only_a + only_b))
    return p


def standard_error(n: Floats, only_a: Floats, only_b: Floats) -> Floats:
    """Standard error of the difference of the shares right: √((b + c)/n − ((b − c)/n)²)/√n."""
    share = (only_a - only_b) / n
    error: Floats = np.sqrt(np.maximum((only_a + only_b) / n - share**2, 0.0) / n)
    return error


def score_statistic(n: Floats, only_a: Floats, only_b: Floats, difference: npt.ArrayLike) -> Floats:
    """How many standard errors the observed difference is above a true one, with the error computed under the latter.

    Source: Tango, Statistics in Medicine 17 (1998) 891.
    """
    d = np.asarray(difference, dtype=float)
    linear = (2 * n - only_a + only_b) * d - only_a - only_b
    root = np.sqrt(np.maximum(linear**2 + 8 * n * only_b * d * (1 - d), 0.0))
    share_b = np.maximum((root - linear) / (4 * n), 0.0)
    variance = n * np.maximum(2 * share_b + d * (1 - d), 0.0)
    above = only_a - only_b - n * d
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic: Floats = np.where(above == 0, 0.0, above / np.sqrt(variance))
    return statistic


def score_interval(n: Floats, only_a: Floats, only_b: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Interval of the difference of the shares right: all values that `score_statistic` does not reject."""
    # Both ends by one routine, so that exchanging the models negates them to the last digit.
    return -_upper(n, only_b, only_a, alpha), _upper(n, only_a, only_b, alpha)


def _upper(n: Floats, only_a: Floats, only_b: Floats, alpha: float) -> Floats:
    quantile = normal_quantile(1 - alpha / 2)
    low, high = (only_a - only_b) / n, np.ones_like(n)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        inside = score_statistic(n, only_a, only_b, middle) > -quantile
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def equivalence_p(n: Floats, only_a: Floats, only_b: Floats, margin: float) -> Floats:
    """p of the two one-sided score tests that the difference reaches the margin, in either direction.

    Source: Tango (1998); the larger of the two, as the intersection of both is claimed.
    """
    if not 0 < margin < 1:
        return np.ones_like(n)
    above = normal_tail(score_statistic(n, only_a, only_b, -margin))
    below = normal_tail(score_statistic(n, only_b, only_a, -margin))
    p: Floats = np.maximum(above, below)
    return p


def smallest_difference(n: Floats, only_a: Floats, only_b: Floats, alpha: float) -> Floats:
    """Smallest true difference that n items show with 80 % power, when this share of them is right in one model only.

    The share counts one item more on either side, so that runs without any difference do not promise too much.
    Source: Connor, Biometrics 43 (1987) 207: z_α √ψ + z_β √(ψ − d²) = d √n, solved for d.
    """
    share = (only_a + only_b + 2) / (n + 2)
    first, second = normal_quantile(1 - alpha / 2), normal_quantile(_POWER)
    # Squaring once leaves a quadratic in d: (n + z_β²) d² − 2 z_α √(nψ) d + (z_α² − z_β²) ψ = 0.
    a, b, c = n + second**2, first * np.sqrt(n * share), (first**2 - second**2) * share
    found: Floats = (b + np.sqrt(np.maximum(b * b - a * c, 0.0))) / a
    return np.minimum(found, 1.0)
