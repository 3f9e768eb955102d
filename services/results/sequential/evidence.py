"""What the pairs seen so far say of two models: better, worse, equivalent, no difference to be shown, or not enough.
Pure.

It holds at every look. The `error` is the chance of a wrong verdict, such as "better" for equal models. A part of it is
spent on looks at any time, by betting (see capital.py), and the rest on the usual comparison at the end, if all items
were needed. To give up early costs no error: it says only that the comparison of all items is unlikely to show anything
(see forecast.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from services.results.sequential.all_items import interval_of_all, verdict_of_all
from services.results.sequential.capital import Bets
from services.results.sequential.draws import Draws, Pair, Plan, draws_of
from services.results.sequential.forecast import chances
from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, UNDECIDED, WORSE
from services.results.statistics.metric_values import Floats, Ints

UNLIKELY = 0.1
"""The search for a difference ends if the comparison of all items would show one with a smaller chance than this."""
_EARLY = 0.5
"""Part of the error that is spent before the end."""
_DRAWN = 200
_LOOK_RATIO = 1.05


@dataclass(frozen=True, slots=True)
class Look:
    """After `items` pairs: logs of the evidence that B is better, is worse, and is equivalent, the `chance` that the
    comparison of all items would show something, and B's mean score minus A's with its `interval` by then."""

    items: int
    better: float
    worse: float
    equivalent: float
    chance: float
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The `verdict` on B against A after `seen` pairs: one of the words above. It was first reached after `decided_at`
    pairs, None while it is undecided; later pairs never change it.

    `difference` is B's mean score minus A's, up to an early verdict. `interval` holds the true one at all times with a
    chance of 1 − error.
    `path` has at most about 200 looks: a verdict is reached when a log of the evidence reaches the `threshold`, or when
    the chance falls below `unlikely`.
    """

    verdict: str
    decided_at: int | None
    seen: int
    difference: float | None
    interval: tuple[float, float]
    path: tuple[Look, ...]
    threshold: float
    unlikely: float = UNLIKELY


def evidence(
    pairs: Iterable[Pair],
    *,
    error: float,
    margin: float,
    total: int,
    strata: Mapping[str, int] | None = None,
    clusters: Mapping[str, int] | None = None,
    largest: Mapping[str, int] | None = None,
    ended: bool = False,
) -> Evidence:
    """Of the first `pairs` of a random order of `total` items: those that both models have answered.

    `error` is the chance of a wrong verdict, and `margin` the largest difference that does not matter, 0 for none.
    `strata` counts the items of each stratum, if there are several. If items are drawn by clusters, `largest` and
    `clusters` are as in `Plan`. `ended`: no more pairs will come, although there may
    be fewer than the total. Raises ValueError if the pairs do not fit these.
    """
    known = list(pairs)
    ended = bool(known) and (ended or len(known) == total)
    draws = draws_of(known, Plan(total, strata or {}, clusters or {}, largest or {}), ended=ended)
    return weigh(draws, len(known), error=error, margin=margin, total=total, ended=ended)


def weigh(
    draws: Draws, seen: int, *, error: float, margin: float, total: int, ended: bool, drawn: bool = True
) -> Evidence:
    """As `evidence`, of the draws of `seen` pairs. `ended`: there is at least one, and no more will come. Not `drawn`:
    without the path."""
    found = _found(draws, seen, error, margin, total, ended)
    limit, first = threshold(error), found.first
    # What is said does not depend on when it is asked for.
    counted = draws if first is None else draws.upto(first + 1)
    looks = _looks(len(counted.ends))
    difference = counted.mean()
    low, high = Bets(counted, looks).unrefuted(limit, difference or 0.0, _reach(counted, limit))
    path = _path(draws, found, margin, limit) if drawn else ()
    if ended and first is None:
        last = interval_of_all(draws, (1 - _EARLY) * error)
        low, high = max(low, last[0]), min(high, last[1])
    if difference is not None:
        low, high = min(low, difference), max(high, difference)
    return Evidence(found.verdict, found.decided_at, seen, difference, (low, high), path, limit)


def verdict(draws: Draws, seen: int, *, error: float, margin: float, total: int, ended: bool) -> tuple[str, int | None]:
    """The verdict and after how many pairs it was reached, as `weigh` finds them, without what is shown of them."""
    found = _found(draws, seen, error, margin, total, ended)
    return found.verdict, found.decided_at


@dataclass(frozen=True, slots=True)
class _Found:
    """`first` is the draw at which the verdict was reached early, `decided_at` the number of pairs. `bets` are looked
    at after each draw."""

    bets: Bets
    chance: Floats
    verdict: str
    first: int | None
    decided_at: int | None


def threshold(error: float) -> float:
    """The log of the capital at which a bet decides."""
    return math.log(2 / (_EARLY * error))


def _found(draws: Draws, seen: int, error: float, margin: float, total: int, ended: bool) -> _Found:
    bets = Bets(draws, np.arange(1, len(draws.ends) + 1))
    chance = chances(draws, total, (1 - _EARLY) * error, margin)
    word, first = _early(bets, chance, margin, threshold(error))
    if first is not None:
        return _Found(bets, chance, word, first, int(draws.ends[first]))
    if ended:
        return _Found(bets, chance, verdict_of_all(draws, (1 - _EARLY) * error, margin), None, seen)
    return _Found(bets, chance, word, None, None)


def _early(bets: Bets, chance: Floats, margin: float, limit: float) -> tuple[str, int | None]:
    """The verdict that was reached first, and after which draw."""
    unlikely = chance < UNLIKELY
    reached = {
        BETTER: bets.first_at(limit, 0.0, above=True),
        WORSE: bets.first_at(limit, 0.0, above=False),
        EQUIVALENT: None,
        NO_DIFFERENCE: int(unlikely.argmax()) if unlikely.any() else None,
    }
    if 0 < margin < 1:
        # What was refuted once remains so.
        above, below = (bets.first_at(limit, claim, above=claim < 0) for claim in (-margin, margin))
        if above is not None and below is not None:
            reached[EQUIVALENT] = max(above, below)
    found = [(when, rank, word) for rank, (word, when) in enumerate(reached.items()) if when is not None]
    if not found:
        return UNDECIDED, None
    first, _, word = min(found)
    return word, first


def _reach(draws: Draws, threshold: float) -> float:
    """About half the width of the interval."""
    units = float(draws.units.sum())
    return math.sqrt(2 * threshold * float(draws.values @ draws.values + 1)) / units if units else 1.0


def _looks(count: int) -> Ints:
    """At which draws, from 1, the interval is narrowed: the same ones for every batch, and the last."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    steps = int(math.log(count) / math.log(_LOOK_RATIO)) + 1
    fixed = np.ceil(_LOOK_RATIO ** np.arange(steps)).astype(np.int64)
    return np.unique(np.append(fixed[fixed <= count], count))


def _drawn(count: int, first: int | None) -> Ints:
    """Which draws are shown, from 0."""
    if not count:
        return np.zeros(0, dtype=np.int64)
    extra = [count - 1] if first is None else [count - 1, first]
    return np.unique([*np.linspace(0, count - 1, min(count, _DRAWN)).astype(int), *extra])


def _path(draws: Draws, found: _Found, margin: float, limit: float) -> tuple[Look, ...]:
    places = _drawn(len(draws.ends), found.first)
    better, worse = (found.bets.log_capital(0.0, above=above) for above in (True, False))
    equivalent = np.full(len(draws.ends), -np.inf)
    if 0 < margin < 1 and len(equivalent):
        sides = (found.bets.log_capital(claim, above=claim < 0) for claim in (-margin, margin))
        equivalent = np.minimum(*map(np.maximum.accumulate, sides))
    differences = draws.means(places + 1)
    low, high = _courses(draws, found.first, limit, places)
    columns = [column[places] for column in (draws.ends, better, worse, equivalent, found.chance)]
    columns += [differences, np.minimum(low, differences), np.maximum(high, differences)]
    return tuple(
        Look(int(ends), b, w, e, chance, difference, (below, above))
        for ends, b, w, e, chance, difference, below, above in zip(*(c.tolist() for c in columns), strict=True)
    )


def _courses(draws: Draws, first: int | None, limit: float, places: Ints) -> tuple[Floats, Floats]:
    """The interval's ends at these draws, from 0."""
    looks = np.union1d(_looks(len(draws.ends)), [] if first is None else [first + 1]).astype(np.int64)
    bets = Bets(draws, looks)
    lows, highs = bets.courses(limit, *bets.unrefuted(limit, draws.mean() or 0.0, _reach(draws, limit)))
    at = np.searchsorted(looks, places + 1, side="right") - 1
    return lows[at], highs[at]
