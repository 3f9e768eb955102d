"""The chance that the comparison of all items would show a difference, or equivalence, from those seen so far. Pure.

It is a Bayesian prediction with a flat prior, and the normal distribution for what is left: of items drawn without
replacement, the mean of the rest is as far from the mean so far as both samples' spreads allow.

Source: Spiegelhalter, Freedman and Blackburn, Controlled Clinical Trials 7 (1986) 8.
"""

from __future__ import annotations

import numpy as np

from services.results.sequential.draws import Draws
from services.results.statistics.distributions import normal_quantile, normal_tail
from services.results.statistics.metric_values import Floats

_EARLIEST = 0.1
"""Nothing is predicted from a smaller part of the items."""
_PARTS = 400


def chances(draws: Draws, total: int, error: float, margin: float) -> Floats:
    """After each draw (n,), the chance that either is shown; 1 where too little is known. It changes only with each
    further 400th part of the items.

    `error` is that of the comparison of all `total` items, and `margin` that of its equivalence, 0 without.
    """
    part = draws.ends / total
    step = np.floor(part * _PARTS)
    late = np.flatnonzero((part >= _EARLIEST) & (part < 1) & (step > np.concatenate([[0.0], step[:-1]])))
    if not len(late):
        return np.ones(len(part))
    f = part[late]
    # As if one more draw were as large as the largest: few draws that differ say little of the spread.
    squares = draws.values**2
    largest = np.maximum.accumulate(squares)[late]
    largest = np.where(largest > 0, largest, 1.0)
    spread = np.cumsum(squares)[late] + largest
    sums = np.cumsum(draws.values)[late]
    width = np.sqrt(spread / f)
    unknown = np.sqrt((1 - f) / f) * width
    ahead = np.abs(sums / f)
    shown = normal_quantile(1 - error / 2) * width + np.sqrt(largest)
    chance = normal_tail((shown - ahead) / unknown) + normal_tail((shown + ahead) / unknown)
    if margin > 0:
        inside = margin * np.cumsum(draws.units)[late] / f - normal_quantile(1 - error) * width
        within = normal_tail((ahead - inside) / unknown) - normal_tail((ahead + inside) / unknown)
        chance = np.minimum(chance + np.where(inside > 0, within, 0.0), 1.0)
    last = np.searchsorted(late, np.arange(len(part)), side="right")
    found: Floats = np.concatenate([[1.0], chance])[last]
    return found
