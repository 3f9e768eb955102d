"""The comparison of two models once all items were asked without an early verdict. Pure.

For right and wrong it is McNemar's exact test. Else it is the exact test by exchanging the models, which takes
differences of both signs for equally likely. As that need not be so, the interval must exclude 0, too. It is wide
enough for rare large differences that were not seen (see unseen.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from services.results.paired import binary
from services.results.paired.sign_flip import sign_flip_p
from services.results.sequential.draws import Draws
from services.results.sequential.unseen import Sample
from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, WORSE
from services.results.statistics.distributions import student_quantile
from services.results.statistics.metric_values import Floats


@dataclass(frozen=True, slots=True)
class Compared:
    """The verdict, and the interval of the difference."""

    verdict: str
    low: float
    high: float


def compare_all(draws: Draws, error: float, margin: float) -> Compared:
    """Of one draw or more. `error` is the chance of a wrong verdict."""
    shares = _shares(draws)
    p = sign_flip_p(shares, np.ones(len(shares)))
    total = float(shares.sum())
    low, high = _interval(draws, shares, error)
    inner = _interval(draws, shares, 2 * error) if margin else (low, high)
    if total and p <= error and (draws.right_or_wrong or low > 0 or high < 0):
        verdict = BETTER if total > 0 else WORSE
    elif -margin < inner[0] and inner[1] < margin:
        verdict = EQUIVALENT
    else:
        verdict = NO_DIFFERENCE
    return Compared(verdict, low, high)


def _shares(draws: Draws) -> Floats:
    """What each draw adds to the mean difference."""
    shares: Floats = draws.sums * _parts(draws)
    return shares


def _parts(draws: Draws) -> Floats:
    """What an item of each draw adds to the mean."""
    items = np.bincount(draws.places, draws.sizes)
    parts: Floats = 1 / items[draws.places] / np.count_nonzero(items)
    return parts


def _interval(draws: Draws, shares: Floats, error: float) -> tuple[float, float]:
    if draws.right_or_wrong:
        n, only_b, only_a = (
            np.array([float(count)]) for count in (len(shares), np.sum(draws.sums > 0), np.sum(draws.sums < 0))
        )
        low, high = binary.score_interval(n, only_b, only_a, error)
        return float(low[0]), float(high[0])
    seen = _student_interval(draws, shares, error)
    unseen = Sample(shares, draws.sizes * _parts(draws)).interval(error)
    return min(seen[0], unseen[0]), max(seen[1], unseen[1])


def _student_interval(draws: Draws, shares: Floats, error: float) -> tuple[float, float]:
    mean, variance, open_ = 0.0, 0.0, 0.0
    strata = np.unique(draws.places)
    for place in strata:
        own = shares[draws.places == place]
        if len(own) < 2:
            # How draws of this stratum differ is not known, so its mean may be anywhere.
            open_ += 1 / len(strata)
            continue
        sizes = draws.sizes[draws.places == place]
        rest = own - own.sum() * sizes / sizes.sum()
        mean += float(own.sum())
        variance += float(rest @ rest) * len(own) / (len(own) - 1)
    half = float(student_quantile(1 - error / 2, max(len(shares) - 1, 1))) * math.sqrt(variance) + open_
    return max(mean - half, -1.0), min(mean + half, 1.0)
