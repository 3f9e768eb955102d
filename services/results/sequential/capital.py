"""Bets against the claim that a mean difference is at most, or at least, some value. Pure.

A gambler starts with 1 and before each draw stakes a part of the capital on the mean being larger. If the claim is
true, the game is fair or worse: the chance that the capital ever reaches k is at most 1/k, however often one looks
(Ville 1939). The capital is the mean over several gamblers, each of whom stakes the same part at all draws. For right
and wrong it is a mixture of likelihood ratios: of "B is the one that is right in this share of the items where the
models differ" to "in half of them".

Source: Waudby-Smith and Ramdas, Journal of the Royal Statistical Society B 86 (2024) 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from services.results.sequential.draws import Draws
from services.results.statistics.metric_values import Floats, Ints

_STAKES = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.45, 0.65, 0.9])
_SHARES = np.array([0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.15, 0.05])
"""Of the capital, by gambler: most bet on differences that the usual numbers of items can show."""
_FEW = 32
"""Up to this many different draws are counted rather than summed one by one."""
_MOST = 0.999
"""No claim is tested beyond this difference."""
_PRECISION = 1e-4
_STEPS = 60


class Bets:
    """Bets on the mean of these draws, after each of `looks` draws, counted from 1 and increasing."""

    def __init__(self, draws: Draws, looks: Ints) -> None:
        self._starts = np.concatenate([[0], looks[:-1]]) if len(looks) else looks
        last = int(looks[-1]) if len(looks) else 0
        kinds, places = np.unique(draws.values[:last] + 1j * draws.units[:last], return_inverse=True)
        self._counts: Floats | None = None
        if len(kinds) <= _FEW:
            which = (places[:, None] == np.arange(len(kinds))).astype(float)
            self._counts = self._summed(which)
        else:
            kinds = draws.values[:last] + 1j * draws.units[:last]
        self._values, self._units = kinds.real, kinds.imag

    def log_capital(self, claim: float, *, above: bool) -> Floats:
        """Logs (looks,) of the capital that bets on a mean above the `claim`, within (-1, 1), or below it."""
        sign = 1.0 if above else -1.0
        moves = sign * (self._values - claim * self._units) / (1 + sign * claim)
        gains = np.log1p(np.multiply.outer(moves, _STAKES))
        logs = self._counts @ gains if self._counts is not None else self._summed(gains)
        most = logs.max(axis=1, keepdims=True, initial=-np.inf)
        found: Floats = most[:, 0] + np.log(np.exp(logs - most) @ _SHARES)
        return found

    def unrefuted(self, threshold: float, guess: float, reach: float) -> tuple[float, float]:
        """The confidence sequence: the differences against which the log of neither capital had reached the
        `threshold` at any of the looks. They are searched for from the `guess`, in steps of `reach`."""

        def over(claim: float, above: bool) -> float:
            return float(self.log_capital(claim, above=above).max(initial=0.0)) - threshold

        upper = _root(lambda claim: over(claim, False), guess, reach)
        return -_root(lambda claim: over(-claim, True), -guess, reach), upper

    def _summed(self, rows: Floats) -> Floats:
        if not len(self._starts):
            return rows
        sums = rows if len(self._starts) == len(rows) else np.add.reduceat(rows, self._starts, axis=0)
        found: Floats = np.cumsum(sums, axis=0)
        return found


def _root(over: Callable[[float], float], guess: float, reach: float) -> float:
    """Where an increasing function passes 0, from above, searched for from `guess`; 1 if it does not.

    By the Illinois variant of false position, which keeps both ends of a bracket moving.
    """
    low = high = min(max(guess, -_MOST), _MOST)
    below = above = over(low)
    while above < 0:
        if high >= _MOST:
            return 1.0
        low, below = high, above
        high, reach = min(high + reach, _MOST), 2 * reach
        above = over(high)
    while below >= 0:
        if low <= -_MOST:
            return low
        high, above = low, below
        low, reach = max(low - reach, -_MOST), 2 * reach
        below = over(low)
    for _ in range(_STEPS):
        if high - low <= _PRECISION:
            break
        share = min(max(below / (below - above), 0.02), 0.98)
        middle = low + share * (high - low)
        found = over(middle)
        if found >= 0:
            high, above, below = middle, found, below / 2
        else:
            low, below, above = middle, found, above / 2
    return high
