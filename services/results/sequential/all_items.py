"""The comparison of two models once all items were asked without an early verdict. Pure.

For right and wrong it is McNemar's exact test. Else it is the exact test by exchanging the models, which takes
differences of both signs for equally likely. As that need not be so, the interval must exclude 0, too. It is wide
enough for rare large differences that were not seen (see unseen.py).
"""

from __future__ import annotations

import math

import numpy as np

from services.results.paired import binary
from services.results.paired.sign_flip import sign_flip_p
from services.results.sequential.draws import Draws
from services.results.sequential.unseen import Sample
from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, WORSE
from services.results.statistics.distributions import student_quantile
from services.results.statistics.metric_values import Floats


def verdict_of_all(draws: Draws, error: float, margin: float) -> str:
    """Of one draw or more. `error` is the chance of a wrong verdict."""
    shares = _shares(draws)
    total = float(shares.sum())
    if total and sign_flip_p(shares, np.ones(len(shares))) <= error:
        better = total > 0
        if draws.right_or_wrong or _shows(draws, shares, 0.0, error, above=better):
            return BETTER if better else WORSE
    if margin and all(_shows(draws, shares, claim, 2 * error, above=claim < 0) for claim in (-margin, margin)):
        return EQUIVALENT
    return NO_DIFFERENCE


def interval_of_all(draws: Draws, error: float) -> tuple[float, float]:
    """Of the mean difference, from one draw or more."""
    shares = _shares(draws)
    seen = _seen(draws, shares, error)
    if draws.right_or_wrong:
        return seen
    unseen = _sample(draws, shares).interval(error)
    return min(seen[0], unseen[0]), max(seen[1], unseen[1])


def _shows(draws: Draws, shares: Floats, claim: float, error: float, *, above: bool) -> bool:
    """Whether the interval is above the claim, or below it, without a search for its ends."""
    low, high = _seen(draws, shares, error)
    beyond = claim < low if above else high < claim
    return beyond and (draws.right_or_wrong or _sample(draws, shares).shows(claim, error, above=above))


def _shares(draws: Draws) -> Floats:
    """What each draw adds to the mean difference."""
    shares: Floats = draws.sums * _parts(draws)
    return shares


def _parts(draws: Draws) -> Floats:
    """What an item of each draw adds to the mean."""
    items = np.bincount(draws.places, draws.sizes)
    parts: Floats = 1 / items[draws.places] / np.count_nonzero(items)
    return parts


def _sample(draws: Draws, shares: Floats) -> Sample:
    return Sample(shares, draws.sizes * _parts(draws))


def _seen(draws: Draws, shares: Floats, error: float) -> tuple[float, float]:
    """The usual interval, by the spread of what was seen."""
    if draws.right_or_wrong:
        n, only_b, only_a = (
            np.array([float(count)]) for count in (len(shares), np.sum(draws.sums > 0), np.sum(draws.sums < 0))
        )
        low, high = binary.score_interval(n, only_b, only_a, error)
        return float(low[0]), float(high[0])
    return _student_interval(draws, shares, error)


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
