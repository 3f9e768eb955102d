"""The total over all items, estimated from some of them, with a 95 % prediction interval. Pure.

Token counts and prices are skewed to the right, and Student's interval around their mean then ends too low: for
lognormal counts with a spread of 1 it covers 88 % at 30 items. So if the logarithms look normal, the interval is
computed from them (the generalised one of Krishnamoorthy and Mathew, 2003); otherwise from the mean, with Hall's
correction for skewness (1992), which covers 93 to 98 % of exponential, two-humped and capped counts at 30 and 100
items. Neither can account for a rare value that no item shows yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from services.results.statistics.distributions import normal_quantile, student_quantile
from services.results.statistics.metric_values import Floats

_ENDS = (2.5, 97.5)
_QUANTILE = 0.975
_DRAWS = 4_000
_SEED = 5
_FEW = 12
"""Below this number, the shape is unknown: a plain interval of the mean's logarithm."""
_LIKE_NORMAL = 0.05
"""Level of the test of the logarithms' normality."""
_WIDEST = 40.0
"""The most for an interval's logarithm: two values may give anything."""
_SMALLEST = 0.5
"""Used for 0 before taking a logarithm: half a token."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval: low ≤ value ≤ high."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        return Interval(factor * self.value, factor * self.low, factor * self.high)


def total(sample: Floats, items: int, *, anew: bool = False) -> Interval:
    """The total over this many items, of amounts that are 0 or more.

    `sample` has 2 or more values that were randomly drawn from the items, so that their mean is an estimate for all;
    they count as they are. With `anew`, and for fewer items than the sample has, all items are assumed to be others.
    """
    n = len(sample)
    rest = items if anew or items < n else items - n
    known = 0.0 if rest == items else float(sample.sum())
    mean = float(sample.mean())
    value = known + rest * mean
    if rest == 0 or np.ptp(sample) == 0:
        return Interval(value, value, value)
    if n < _FEW and mean > 0:
        low, high = _by_log_of_mean(sample, rest)
    elif sample.min() >= 0 and looks_normal(logs := np.log(np.maximum(sample, _SMALLEST))):
        low, high = _by_logs(logs, rest)
    else:
        low, high = _by_skewness(sample, rest)
    return Interval(value, min(value, max(0.0, known + low)), max(value, known + high))


def looks_normal(sample: Floats) -> bool:
    """By Shapiro and Francia's test, with Royston's approximation (1993) of its distribution."""
    ordered = np.sort(sample)
    n = len(ordered)
    if ordered[0] == ordered[-1]:
        return False
    expected = [normal_quantile((place - 0.375) / (n + 0.25)) for place in range(1, n + 1)]
    statistic = float(np.corrcoef(ordered, expected)[0, 1]) ** 2
    size = math.log(n)
    centre = -1.2725 + 1.0521 * (math.log(size) - size)
    spread = 1.0308 - 0.26758 * (math.log(size) + 2 / size)
    return statistic >= 1 - math.exp(centre + spread * normal_quantile(1 - _LIKE_NORMAL))


def _error(sample: Floats, rest: int) -> float:
    """Standard error of the total of the rest: that of the mean, and that of the values themselves."""
    return rest * float(sample.std(ddof=1)) * math.sqrt(1 / len(sample) + 1 / rest)


def _by_log_of_mean(sample: Floats, rest: int) -> tuple[float, float]:
    middle = rest * float(sample.mean())
    apart = float(student_quantile(_QUANTILE, len(sample) - 1)) * _error(sample, rest) / middle
    factor = math.exp(min(apart, _WIDEST))
    return middle / factor, middle * factor


def _by_logs(logs: Floats, rest: int) -> tuple[float, float]:
    """Draws of the normal distribution's two parameters, as uncertain as the sample leaves them, and of the resulting
    total, which is assumed to be lognormal, too."""
    rng = np.random.default_rng(_SEED)
    n = len(logs)
    variance = (n - 1) * logs.var(ddof=1) / rng.chisquare(n - 1, _DRAWS)
    mean = logs.mean() + np.sqrt(variance / n) * rng.standard_normal(_DRAWS) + variance / 2
    of_total = np.log1p(np.expm1(np.minimum(variance, 50.0)) / rest)
    drawn = mean - of_total / 2 + np.sqrt(of_total) * rng.standard_normal(_DRAWS)
    low, high = np.exp(np.percentile(drawn, _ENDS))
    return rest * float(low), rest * float(high)


def _by_skewness(sample: Floats, rest: int) -> tuple[float, float]:
    """Hall's transformation of Student's statistic, whose distribution is skewed like the sample, and its inverse."""
    n = len(sample)
    apart = sample - sample.mean()
    lean = float((apart**3).mean()) / float(sample.std(ddof=1)) ** 3 / math.sqrt(n)
    quantile = float(student_quantile(_QUANTILE, n - 1))

    def back(t: float) -> float:
        if abs(lean) < 1e-6:
            return t
        return float(3 / lean * (np.cbrt(1 + lean * (t - lean / 6)) - 1))

    middle, error = rest * float(sample.mean()), _error(sample, rest)
    return middle - error * back(quantile), middle - error * back(-quantile)
