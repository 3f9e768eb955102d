"""Which of several models is the best, decided while their answers come in. Pure.

Every two models are compared as in a decision between two, at the error divided by the number of pairs: so the verdicts
of all pairs are right together with a chance of one minus the error (Bonferroni). A model is out as soon as one that is
still in the race is better. Then the last one left is better than one that is better than ... each of the others.

The race is looked at item by item of the common order: what happens after an item depends on the models that were in
the race before it, and on their answers so far. So neither the models' speeds nor the times of looks matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, UNDECIDED, WORSE

BEST = "best"


@dataclass(frozen=True, slots=True)
class Runner:
    """A model that has an outcome to the first `reach` items of the order. `ended`: it will not have more."""

    reach: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict on the second one of two models against the first, reached after `at` items of the order; UNDECIDED
    before."""

    verdict: str
    at: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Beaten:
    """After `at` items of the order, the model `by` was better."""

    at: int
    by: int


@dataclass(frozen=True, slots=True)
class Standing:
    """After `items` items of the order: the `beaten` models, those that are `withdrawn`, as they ended before anything
    was known of them, and those that are `left`.

    The `verdict` is BEST of the only one left; of several without a difference EQUIVALENT, if all of them are, or
    NO_DIFFERENCE; and UNDECIDED before. It was reached after `decided_at` items.
    """

    verdict: str
    decided_at: int | None
    items: int
    left: tuple[int, ...]
    beaten: dict[int, Beaten]
    withdrawn: frozenset[int]


def pair_error(error: float, models: int) -> float:
    """The chance of a wrong verdict that each pair may have."""
    return error / math.comb(models, 2)


def race(runners: Sequence[Runner], items: int, found: Callable[[int, int], Found], earlier: int = 0) -> Standing:
    """How it stands. `found` gives the verdict on each two models in the order of their places, from all that both have
    answered. `earlier` models of the race are beaten already, and not among the runners."""
    left, beaten, withdrawn = list(range(len(runners))), dict[int, Beaten](), set[int]()
    known: dict[tuple[int, int], Found] = {}
    upto = gone_at = 0
    while True:
        upto = min((runners[one].reach for one in left), default=upto)
        pairs = [(one, other) for place, one in enumerate(left) for other in left[place + 1 :]]
        known |= {pair: found(*pair) for pair in pairs if pair not in known}
        decided = {pair: known[pair] for pair in pairs if known[pair].verdict and known[pair].at <= upto}
        lost = _lost(decided)
        if lost:
            for loser, one in lost.items():
                # Not all, if each was beaten by another one.
                if len(left) > 1:
                    left.remove(loser)
                    beaten[loser] = one
            continue
        # What ends after the race does not change how that ended.
        over = len(decided) == len(pairs) and (len(left) > 1 or beaten or earlier)
        gone = {one for one in left if runners[one].ended and runners[one].reach == upto < items}
        if over or not gone:
            break
        left = [one for one in left if one not in gone]
        withdrawn |= gone
        # Up to here, these could still have been the best.
        gone_at = upto
    verdict, decided_at = UNDECIDED, None
    if len(left) == 1 and (beaten or earlier):
        verdict, decided_at = BEST, max([gone_at, *(one.at for one in beaten.values())]) or upto
    elif len(left) > 1 and len(decided) == len(pairs):
        verdict = EQUIVALENT if {one.verdict for one in decided.values()} == {EQUIVALENT} else NO_DIFFERENCE
        decided_at = max([gone_at, *(one.at for one in decided.values()), *(one.at for one in beaten.values())])
    return Standing(verdict, decided_at, upto, tuple(left), beaten, frozenset(withdrawn))


def _lost(decided: Mapping[tuple[int, int], Found]) -> dict[int, Beaten]:
    """Those that the first item, after which any is beaten, shows to be worse than another one."""
    lost: dict[int, Beaten] = {}
    for (one, other), found in decided.items():
        if found.verdict in (BETTER, WORSE):
            loser, winner = (one, other) if found.verdict == BETTER else (other, one)
            beaten = Beaten(found.at, winner)
            lost[loser] = min(lost.get(loser, beaten), beaten)
    first = min((one.at for one in lost.values()), default=0)
    return {loser: one for loser, one in lost.items() if one.at == first}
