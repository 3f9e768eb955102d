"""The interval of a mean of scores within [0, 1] that are drawn at random from finitely many items. Pure.

Wilson's interval of a share holds every value that is not too far from the one seen, by the variance that scores would
have at that value. Here this is so for scores of any kind, and for what a judge leaves unexplained of them. If the mean
is higher by d, the variance is taken to be m2 + (m3/m2) d − d², where m2 and m3 are the second and third central
moments seen: m3/m2 is by how much the variance changes with the mean in the exponential family through the scores. For
scores of 0 and 1 this is p(1 − p) at every p, and the interval is Wilson's.

What a judge leaves unexplained can vanish by chance, or nearly so. Some assumed items are then added to the moments:
their people's scores are at one end of the scale, and the judge says nothing about them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from services.results.statistics.intervals import Z95, t95
from services.results.statistics.metric_values import Floats

_TINY = 1e-12
_SURE = 1e-6
"""Below this excess, the mean alone decides on the variance, as for scores of 0 and 1."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of single scores: `variance`, by how much it changes with the mean above (`up`) and below (`down`) it, and the
    variance of its estimate from n scores, given their mean, as `excess` · variance² / n."""

    variance: float
    up: float
    down: float
    excess: float

    def ends(self, drawn: int, items: float) -> tuple[float, float]:
        """How far the 95 % interval reaches below (negative) and above the mean of `drawn` scores, 2 or more, out of
        `items`, which may be infinite.

        The variance is that of drawing without replacement. Student's t has the degrees of freedom by which the
        variance is known (Satterthwaite, Biometrics Bulletin 2 (1946) 110), at most drawn − 2.
        """
        left = 1 - drawn / items
        if left <= 0:
            return 0.0, 0.0
        step = self._quantile(drawn) ** 2 * left / drawn
        return -_root(step, self.variance, -self.down), _root(step, self.variance, self.up)

    def _quantile(self, drawn: int) -> float:
        if self.excess <= _SURE:
            return Z95
        most = max(1, drawn - 2)
        degrees = max(1.0, min(most, 2 * most / self.excess))
        few = math.floor(degrees)
        # Between whole degrees t is convex in their inverse, so that a straight line is never too small.
        part = (1 / few - 1 / degrees) * few * (few + 1)
        return (1 - part) * t95(few) + part * t95(few + 1)


def _root(step: float, variance: float, slope: float) -> float:
    """The positive d with d² = step · (variance + slope · d − d²)."""
    middle = step * slope
    return (middle + math.sqrt(middle * middle + 4 * (1 + step) * step * variance)) / (2 * (1 + step))


def spread(residuals: Floats, scores: Floats, assumed: float, jumps: tuple[float, float] | None = None) -> Spread:
    """Of what is left of people's `scores` (n,), within [0, 1], when the judge's part is taken away: `residuals` (n,).
    Without a judge both are the same.

    `assumed` items are added, with the variance of the scores. They jump to an end of the scale: `jumps`, down (below
    0) and up, which are by default the distances from the mean score to 0 and to 1.
    """
    mean = float(scores.mean())
    down, up = jumps or (-mean, 1 - mean)
    centred = residuals - residuals.mean()
    added = assumed * float(scores.var())
    total = len(scores) + assumed
    second, third, fourth = (float((centred**power).sum()) for power in (2, 3, 4))
    variance = (second + added) / total
    if variance <= _TINY:
        return Spread(0.0, up, down, 0.0)
    skew = (third + added * (up + down)) / total / variance
    fourth = (fourth + added * (up * up + up * down + down * down)) / total
    excess = max(0.0, (fourth - variance**2) / variance**2 - skew**2 / variance)
    if not assumed:
        return Spread(variance, skew, skew, excess)
    above, below = ((third + added * jump) / total / variance for jump in (up, down))
    return Spread(variance, above, below, excess)
