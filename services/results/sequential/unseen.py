"""What a mean difference may be although rare large ones were not seen. Pure.

Differences that are almost all small and alike vary little, so that usual tests and intervals are sure of their mean.
But if one in a hundred is large and of the other sign, the mean may be 0, and most samples of twenty have none of
these. So one draw is added that is as bad for a claim as can be, and all draws get random weights, as of Dirichlet. The
claim is shown if the weighted mean supports it with a high chance. For right and wrong, this is the exact interval of
Clopper and Pearson. For other values, no case is known in which it errs more often than it says.

Source: Gaffke, Mathematical Methods of Statistics 14 (2005) 17; Learned-Miller and Thomas, arXiv:1905.06208 (2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from services.results.sequential.capital import root
from services.results.statistics.distributions import normal_quantile
from services.results.statistics.metric_values import Floats

_STEPS = 60
_NEAR = 1e-4
"""Standard deviations below which there is no evidence."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Draws whose `values` (n,) add up to the mean difference, and whose `units` (n,), of 0 or more, add up to 1. No
    value is larger than its unit."""

    values: Floats
    units: Floats

    def evidence(self, claim: float, *, above: bool) -> float:
        """What speaks for a mean above the `claim`, within (-1, 1), or below it: the normal quantile of the chance that
        it is so, 0 for less than one half."""
        sign = 1.0 if above else -1.0
        moves = sign * (self.values - claim * self.units)
        worst = -(1 + sign * claim) * self._usual_unit()
        return _above_zero(np.append(moves, worst))

    def shows(self, claim: float, error: float, *, above: bool) -> bool:
        """Whether the interval with this error is above the claim, or below it."""
        return self.evidence(claim, above=above) > normal_quantile(1 - error / 2)

    def interval(self, error: float) -> tuple[float, float]:
        """Of the mean, with this error, half of it on each side."""
        needed, mean = normal_quantile(1 - error / 2), float(self.values.sum())
        reach = needed * math.sqrt(float(self.values @ self.values)) + self._usual_unit()

        def over(claim: float, above: bool) -> float:
            return self.evidence(claim, above=above) - needed

        upper = root(lambda claim: over(claim, False), mean, reach)
        return -root(lambda claim: over(-claim, True), -mean, reach), upper

    def _usual_unit(self) -> float:
        return float(self.units @ self.units)


def _above_zero(weights: Floats) -> float:
    """The normal quantile of the chance that the sum of independent exponential variables, times these weights (n,), is
    above 0; at least 0. By the saddlepoint approximation of Barndorff-Nielsen (1986)."""
    if weights.sum() <= 0:
        return 0.0
    if weights.min() >= 0:
        return math.inf
    at = _saddlepoint(weights)
    moved = weights / (1 + at * weights)
    size = math.sqrt(max(0.0, 2 * float(np.log1p(at * weights).sum())))
    if size < _NEAR:
        return 0.0
    return max(0.0, size + math.log(at * math.sqrt(float(moved @ moved)) / size) / size)


def _saddlepoint(weights: Floats) -> float:
    """The positive t at which the sum of w / (1 + t w) is 0, by Newton's method within a bracket."""
    low, high = 0.0, -1 / float(weights.min())
    at = min(float(weights.sum()) / float(weights @ weights), high / 2)
    for _ in range(_STEPS):
        moved = weights / (1 + at * weights)
        over, slope = float(moved.sum()), float(moved @ moved)
        low, high = (at, high) if over > 0 else (low, at)
        step = at + over / slope
        step = step if low < step < high else (low + high) / 2
        if abs(step - at) <= 1e-9 * at:
            break
        at = step
    return at
