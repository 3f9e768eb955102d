"""Pairs of scores, in their random order, as independent draws that a bet can be made on. Pure.

A draw is an item, or all items of a cluster, which follow each other in the order. Over several strata the mean
difference is the unweighted mean over strata. A draw then counts by how much rarer its stratum is than that, given what
is left: so its expectation is the mean difference, whatever was drawn before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.results.statistics.metric_values import Floats, Ints


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

    `clusters` counts the draws of each stratum, where these are clusters; `largest` is the most items of one cluster.
    """

    total: int
    strata: Mapping[str, int]
    clusters: Mapping[str, int]
    largest: int


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

    @property
    def right_or_wrong(self) -> bool:
        """Whether every draw is an item that either model has right or wrong, and all count the same."""
        return bool(np.isin(self.values, (-1.0, 0.0, 1.0)).all() and (self.units == 1).all())


def draws_of(pairs: Sequence[Pair], plan: Plan, *, ended: bool = False) -> Draws:
    """Without the last cluster while it may be incomplete: until all pairs are there, or no more come. Raises
    ValueError if the pairs do not fit the plan."""
    if len(pairs) > plan.total:
        raise ValueError(f"There are {len(pairs):,} pairs, more than the total of {plan.total:,}.")
    differences = np.array([pair.b - pair.a for pair in pairs], dtype=float)
    if not (np.abs(differences) <= 1).all():
        raise ValueError("Scores must be between 0 and 1.")
    starts = _starts(pairs)
    if starts and not ended and len(pairs) < plan.total and pairs[-1].cluster:
        starts, end = starts[:-1], starts[-1]
    else:
        end = len(pairs)
    ends = np.array([*starts[1:], end] if starts else [], dtype=np.int64)
    begins = np.array(starts, dtype=np.int64)
    sizes = (ends - begins).astype(float)
    if (sizes > plan.largest).any():
        raise ValueError(f"A cluster has {int(sizes.max())} items, more than the largest of {plan.largest}.")
    sums = np.add.reduceat(differences[:end], begins) if len(begins) else np.zeros(0)
    names = {name: place for place, name in enumerate(sorted(plan.strata))}
    try:
        places = np.array([names[pairs[start].stratum] if names else 0 for start in starts], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"The plan has no stratum {error}.") from None
    weights = _weights(places, plan, list(names)) / plan.largest
    return Draws(weights * sums, weights * sizes, sums, sizes, places, ends)


def _starts(pairs: Sequence[Pair]) -> list[int]:
    """Where each draw begins."""
    before: tuple[str, str] | None = None
    starts, seen = [], Counter[tuple[str, str]]()
    for place, pair in enumerate(pairs):
        key = (pair.stratum, pair.cluster) if pair.cluster else None
        if key is None or key != before:
            starts.append(place)
            if key is not None:
                seen[key] += 1
                if seen[key] > 1:
                    raise ValueError(f"The items of cluster {pair.cluster!r} do not follow each other.")
        before = key
    return starts


def _weights(places: Ints, plan: Plan, names: Sequence[str]) -> Floats:
    """Of each draw, within [0, 1] and known before the draw: 0 once a stratum has nothing left."""
    if len(names) < 2:
        return np.ones(len(places))
    items = np.array([plan.strata[name] for name in names], dtype=float)
    counts = np.array([plan.clusters.get(name, plan.strata[name]) for name in names], dtype=float)
    drawn = np.zeros((len(places), len(names)))
    if len(places):
        drawn[np.arange(1, len(places)), places[:-1]] = 1.0
    left = counts - np.cumsum(drawn, axis=0)
    # The chance of a stratum's draw is left / left.sum(); the factor common to all strata goes with the scale.
    with np.errstate(divide="ignore"):
        each = counts / items / left
    largest = each.max(axis=1)
    own = each[np.arange(len(places)), places]
    weights: Floats = np.where(np.isfinite(largest), own / largest, 0.0)
    return weights
