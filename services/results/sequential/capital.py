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
from typing import Any

import numpy as np

from services.results.sequential.draws import Draws
from services.results.statistics.metric_values import Floats, Ints

_STAKES = np.array([0.03, 0.06, 0.12, 0.2, 0.3, 0.45, 0.65, 0.9])
_SHARES = np.array([0.05, 0.05, 0.1, 0.2, 0.2, 0.2, 0.15, 0.05])
"""Of the capital, by gambler: most bet on differences that the usual numbers of items can show."""
_FEW = 32
"""Up to this many different draws are counted rather than summed one by one."""
_FIRST = 256
_MOST = 0.999
"""No claim is tested beyond this difference."""
_CLAIMS, _FARTHEST = 40, 1000.0
"""Claims between which ends of intervals are found, and how much farther apart the last two are than the first two."""
_PRECISION = 1e-4
_STEPS = 60


class Bets:
    """Bets on the mean of these draws, after each of `looks` draws, counted from 1 and increasing."""

    def __init__(self, draws: Draws, looks: Ints) -> None:
        self._starts = np.concatenate([[0], looks[:-1]]) if len(looks) else looks
        last = int(looks[-1]) if len(looks) else 0
        values, units = draws.values[:last], draws.units[:last]
        # Real numbers are sorted in half the time.
        joined = values + 1j * units if (units != units[:1]).any() else values
        kinds, places = _kinds(joined)
        self._counts: Floats | None = None
        if len(kinds) <= _FEW:
            which = (places[:, None] == np.arange(len(kinds))).astype(float)
            self._counts = self._summed(which)
            first = np.zeros(len(kinds), dtype=np.int64)
            first[places] = np.arange(last)
            values, units = values[first], units[first]
        self._values, self._units = values, units

    def log_capital(self, claim: float, *, above: bool) -> Floats:
        """Logs (looks,) of the capital that bets on a mean above the `claim`, within (-1, 1), or below it."""
        return _mixed(self._logs(claim, above))

    def first_at(self, threshold: float, claim: float, *, above: bool) -> int | None:
        """The first look at which the log of that capital reaches the `threshold`; None without one."""
        logs = self._logs(claim, above)
        # No mixture has more than its best gambler: most bets end here.
        if logs.max(initial=-np.inf) < threshold:
            return None
        likely = np.flatnonzero(logs.max(axis=1) >= threshold)
        reached = likely[_mixed(logs[likely]) >= threshold]
        return int(reached[0]) if len(reached) else None

    def courses(self, threshold: float, low: float, high: float) -> tuple[Floats, Floats]:
        """The ends (looks,) of the confidence sequence after each look, of which `low` and `high` are the last: found
        between claims that are ever farther away from these, so that it is exact to some percent of its width."""
        upper = self._course(threshold, high, above=False)
        return -self._course(threshold, -low, above=True), upper

    def _logs(self, claim: float, above: bool) -> Floats:
        """Logs (looks, gamblers) of each one's capital."""
        sign = 1.0 if above else -1.0
        moves = sign * (self._values - claim * self._units) / (1 + sign * claim)
        gains = np.log1p(np.multiply.outer(moves, _STAKES))
        return self._counts @ gains if self._counts is not None else self._summed(gains)

    def unrefuted(self, threshold: float, guess: float, reach: float) -> tuple[float, float]:
        """The confidence sequence: the differences against which the log of neither capital had reached the
        `threshold` at any of the looks. They are searched for from the `guess`, in steps of `reach`."""

        def over(claim: float, above: bool) -> float:
            return float(self.log_capital(claim, above=above).max(initial=0.0)) - threshold

        upper = root(lambda claim: over(claim, False), guess, reach)
        return -root(lambda claim: over(-claim, True), -guess, reach), upper

    def _course(self, threshold: float, last: float, *, above: bool) -> Floats:
        """The smallest claim, from `last` upwards, that is refuted by each look or one before; 1 without one. With
        `above`, claims and `last` have the other sign."""
        if last >= _MOST:
            return np.ones(len(self._starts))
        claims = np.append(last + (_FARTHEST ** np.linspace(0, 1, _CLAIMS) - 1) / (_FARTHEST - 1) * (_MOST - last), 1.0)
        over = np.full((len(self._starts), len(claims)), np.inf)
        for place, claim in enumerate(claims[:-1]):
            capital = self.log_capital(-claim if above else claim, above=above)
            over[:, place] = np.maximum.accumulate(capital) - threshold
        after = (over >= 0).argmax(axis=1)
        rows, before = np.arange(len(over)), np.maximum(after - 1, 0)
        lower, upper = over[rows, before], over[rows, after]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where((after > 0) & np.isfinite(upper), lower / (lower - upper), 1.0)
        found: Floats = claims[before] + share * (claims[after] - claims[before])
        return found

    def _summed(self, rows: Floats) -> Floats:
        if not len(self._starts):
            return rows
        sums = rows if len(self._starts) == len(rows) else np.add.reduceat(rows, self._starts, axis=0)
        found: Floats = np.cumsum(sums, axis=0)
        return found


def _kinds(values: np.typing.NDArray[Any]) -> tuple[np.typing.NDArray[Any], Ints]:
    """The different values in their order, and the place of each (n,) among them. Where there are few, most often those
    of right and wrong, the first values have them all, and the others need no sorting."""
    few = np.unique(values[:_FIRST])
    if 0 < len(few) <= _FEW:
        places = np.minimum(np.searchsorted(few, values), len(few) - 1)
        if (few[places] == values).all():
            return few, places
    kinds, places = np.unique(values, return_inverse=True)
    return kinds, places


def _mixed(logs: Floats) -> Floats:
    """The logs (looks,) of the mean over gamblers."""
    most = logs.max(axis=1, keepdims=True, initial=-np.inf)
    found: Floats = most[:, 0] + np.log(np.exp(logs - most) @ _SHARES)
    return found


def root(over: Callable[[float], float], guess: float, reach: float) -> float:
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
