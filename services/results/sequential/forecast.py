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


def chances(draws: Draws, total: int, error: float, margin: float) -> Floats:
    """After each draw (n,), the larger one of the two chances; 1 where too little is known.

    `error` is that of the comparison of all `total` items, and `margin` that of its equivalence, 0 without.
    """
    found = np.ones(len(draws.ends))
    part = draws.ends / total
    late = np.flatnonzero((part >= _EARLIEST) & (part < 1))
    if not len(late):
        return found
    f = part[late]
    # As if one more draw were as large as the largest: few draws that differ say little of the spread.
    squares = draws.values**2
    spread = (np.cumsum(squares) + np.maximum.accumulate(squares) + (squares.max() == 0))[late]
    sums = np.cumsum(draws.values)[late]
    width = np.sqrt(spread / f)
    step = np.sqrt((1 - f) / f) * width
    ahead = np.abs(sums / f)
    shown = normal_quantile(1 - error / 2) * width + np.sqrt(np.maximum.accumulate(squares))[late]
    chance = normal_tail((shown - ahead) / step) + normal_tail((shown + ahead) / step)
    if margin > 0:
        inside = margin * np.cumsum(draws.units)[late] / f - normal_quantile(1 - error) * width
        within = normal_tail((ahead - inside) / step) - normal_tail((ahead + inside) / step)
        chance = np.maximum(chance, np.where(inside > 0, within, 0.0))
    found[late] = chance
    return found
