"""Pairs of scores, in their random order, as independent draws that a bet can be made on. Pure.

A draw is an item, or all items of a cluster, which follow each other in the order. Over several strata the mean
difference is the unweighted mean over strata. A draw then counts by how much rarer its stratum is than that, given what
is left: so its expectation is the mean difference, whatever was drawn before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.results.statistics.metric_values import Floats, Ints

ALONE = -1
"""The number of no cluster."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The scores of models A and B for one item, each within [0, 1].

    `stratum` is what the mean is averaged over without weights, such as the task. Items of one `cluster` of a stratum
    share something, such as a passage; "" is an item by itself.
    """

    a: float
    b: float
    stratum: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All items of the order: `total` of them, by stratum in `strata` if there are several.

    `clusters` counts the draws of each stratum, where these are clusters, and `largest` has the most items of one of
    its clusters; without strata, of stratum "".
    """

    total: int
    strata: Mapping[str, int]
    clusters: Mapping[str, int]
    largest: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Draws:
    """`values` (n,) within [-1, 1]: B minus A. If the mean difference is d, the expectation of values − d · `units` is
    0; `units` (n,) are within [0, 1].

    `sums` (n,) and `sizes` (n,) are the plain difference and the items of each draw, `places` (n,) its stratum's index,
    and `ends` (n,) how many pairs of the order it ends with.
    """

    values: Floats
    units: Floats
    sums: Floats
    sizes: Floats
    places: Ints
    ends: Ints

    def mean(self) -> float | None:
        """The unweighted mean over strata of B's mean score minus A's; None before the first draw."""
        found = [
            float(self.sums[here].sum() / self.sizes[here].sum())
            for place in np.unique(self.places).tolist()
            if (here := self.places == place).any()
        ]
        return sum(found) / len(found) if found else None

    def upto(self, count: int) -> Draws:
        """The first ones."""
        return Draws(
            self.values[:count],
            self.units[:count],
            self.sums[:count],
            self.sizes[:count],
            self.places[:count],
            self.ends[:count],
        )

    def means(self, after: Ints) -> Floats:
        """The same after each of these draws (looks,), counted from 1."""
        sums, counts = np.zeros(len(after)), np.zeros(len(after))
        for place in np.unique(self.places).tolist():
            here = self.places == place
            items = np.cumsum(np.where(here, self.sizes, 0.0))[after - 1]
            total = np.cumsum(np.where(here, self.sums, 0.0))[after - 1]
            sums += np.divide(total, items, out=np.zeros(len(after)), where=items > 0)
            counts += items > 0
        found: Floats = sums / counts
        return found

    @property
    def right_or_wrong(self) -> bool:
        """Whether every draw is an item that either model has right or wrong, and all count the same."""
        return bool(np.isin(self.values, (-1.0, 0.0, 1.0)).all() and (self.units == 1).all())


def draws_of(pairs: Sequence[Pair], plan: Plan, *, ended: bool = False) -> Draws:
    """As `draws_from`."""
    names = {name: place for place, name in enumerate(sorted(plan.strata))}
    try:
        places = [names[pair.stratum] if names else 0 for pair in pairs]
    except KeyError as error:
        raise ValueError(f"The plan has no stratum {error}.") from None
    numbers: dict[tuple[str, str], int] = {}
    clusters = [
        numbers.setdefault((pair.stratum, pair.cluster), len(numbers)) if pair.cluster else ALONE for pair in pairs
    ]
    scores = np.array([(pair.a, pair.b) for pair in pairs], dtype=float).reshape(-1, 2)
    return draws_from(
        scores[:, 1] - scores[:, 0],
        np.array(places, dtype=np.int64),
        np.array(clusters, dtype=np.int64),
        plan,
        ended=ended,
    )


def draws_from(differences: Floats, places: Ints, clusters: Ints, plan: Plan, *, ended: bool = False) -> Draws:
    """Of pairs (n,) in their order: B's score minus A's, the place of the pair's stratum among the plan's sorted names,
    and the number of its cluster, ALONE for an item by itself.

    Without the last cluster while it may be incomplete: until all pairs are there, or no more come. Raises ValueError
    if the pairs do not fit the plan.
    """
    seen = len(differences)
    if seen > plan.total:
        raise ValueError(f"There are {seen:,} pairs, more than the total of {plan.total:,}.")
    if not (np.abs(differences) <= 1).all():
        raise ValueError("Scores must be between 0 and 1.")
    begins = _begins(clusters)
    if len(begins) and not ended and seen < plan.total and clusters[-1] != ALONE:
        begins, end = begins[:-1], int(begins[-1])
    else:
        end = seen
    ends = np.append(begins[1:], end) if len(begins) else begins
    sizes = (ends - begins).astype(float)
    names = sorted(plan.strata) or [""]
    most = np.array([plan.largest.get(name, 1) for name in names], dtype=float)
    if (sizes > most[places[begins]]).any():
        raise ValueError(f"A cluster has {int(sizes.max())} items, more than the largest may have.")
    sums = np.add.reduceat(differences[:end], begins) if len(begins) else np.zeros(0)
    weights = _weights(places[begins], plan, names, most)
    return Draws(weights * sums, weights * sizes, sums, sizes, places[begins], ends)


def _begins(clusters: Ints) -> Ints:
    """Where each draw begins."""
    first = np.ones(len(clusters), dtype=bool)
    first[1:] = (clusters[1:] == ALONE) | (clusters[1:] != clusters[:-1])
    begins: Ints = np.flatnonzero(first)
    together = clusters[begins][clusters[begins] != ALONE]
    if len(np.unique(together)) < len(together):
        raise ValueError("The items of a cluster do not follow each other.")
    return begins


def _weights(places: Ints, plan: Plan, names: Sequence[str], most: Floats) -> Floats:
    """Of each draw, within [0, 1] and known before the draw: 0 once a stratum has nothing left. No draw of as many
    items as its stratum's largest, `most` (strata,), counts more than 1."""
    if len(names) < 2:
        return np.full(len(places), 1 / most[0])
    items = np.array([plan.strata[name] for name in names], dtype=float)
    counts = np.array([plan.clusters.get(name, plan.strata[name]) for name in names], dtype=float)
    drawn = np.zeros((len(places), len(names)))
    if len(places):
        drawn[np.arange(1, len(places)), places[:-1]] = 1.0
    left = counts - np.cumsum(drawn, axis=0)
    # The chance of a stratum's draw is left / left.sum(); the factor common to all strata goes with the scale.
    with np.errstate(divide="ignore"):
        each = counts / items / left
    largest = (each * most).max(axis=1)
    own = each[np.arange(len(places)), places]
    weights: Floats = np.where(np.isfinite(largest), own / largest, 0.0)
    return weights
