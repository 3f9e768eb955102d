"""How exchanging two models within rows changes a difference, including metrics of the table. Pure.

The test exchanges two models within random rows of all tasks, for differences other than sums over rows. A metric of
the table is computed from the two tables after an exchange. As a sum over rows it would be far off for unlike models,
such as one that gives nearly all items one label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from services.results.paired.pairs import contributions
from services.results.paired.pairs.confusion_grid import Grid, grid_of
from services.results.paired.pairs.contributions import Contributions, ScoreMetric
from services.results.paired.pairs.difference import Pair, Pairs
from services.results.paired.pairs.rows import ClusteredConfusion, Confusion
from services.results.paired.sign_flip import ATOMS, SAME, distinct, outcomes, sign_flip_p
from services.results.statistics.metric_values import Floats


@dataclass(frozen=True, slots=True)
class Tables:
    """A metric of the two tables of a pair, with `weight` in the difference.

    `middle` (cells,) is the mean of both; each row of a kind adds its `moves` (kinds, cells) to one table and subtracts
    them from the other.
    """

    metric: Callable[[Floats], Floats]
    middle: Floats
    moves: Floats
    weight: float

    def differences(self, change: Floats) -> Floats:
        """With changes (exchanges, cells) of the first table."""
        found: Floats = self.weight * (self._of(self.middle + change) - self._of(self.middle - change))
        return found

    def _of(self, totals: Floats) -> Floats:
        # Parts of items do not cancel to the last digit. Cells that the metric does not distinguish may be below 0:
        # only their sum matters.
        totals = np.where(np.abs(totals) > SAME, totals, 0.0)
        return self.metric(totals / totals.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A pair's difference in one task, the mean of its metrics, as the models are exchanged within rows.

    Rows are of one kind if they add the same, or its opposite. There are `times` (kinds,) of each; `ahead` (kinds,) is
    how many more point one way than the other in the actual answers. A row adds its kind's `sums` (kinds,) to metrics
    that are sums over rows; the others are in `tables`.
    """

    times: Floats
    ahead: Floats
    sums: Floats
    tables: tuple[Tables, ...] = ()

    @property
    def differing(self) -> float:
        """Units in which the models differ."""
        if self.tables:
            return float(self.times.sum())
        sizes = np.abs(self.sums)
        return float(self.times @ (sizes > SAME * sizes.max(initial=0.0)))

    def slopes(self) -> Floats:
        """The difference made by one row of each kind if all others are balanced."""
        return self._of(self.sums, [each.moves for each in self.tables])

    def differences(self, ahead: Floats) -> Floats:
        """The differences of exchanges (exchanges, kinds) that leave this many rows ahead."""
        return self._of(ahead @ self.sums, [ahead @ each.moves for each in self.tables])

    def _of(self, sums: Floats, changes: Sequence[Floats]) -> Floats:
        for each, change in zip(self.tables, changes, strict=True):
            sums = sums + each.differences(change)
        return sums


@dataclass(frozen=True, slots=True)
class Part:
    """A task in a weighted sum of independent differences.

    `added` is what its rows add, without the weight; `exchanges`, one per pair, include it.
    """

    weight: float
    added: Contributions
    exchanges: Sequence[Exchange]


def part_of(metrics: Sequence[ScoreMetric], counts: Floats, pairs: Pairs, weight: float = 1.0) -> Part:
    """The mean of a task's metrics."""
    found = [contributions.of_pairs(metric, counts, pairs) for metric in metrics]
    share = weight / len(metrics)
    grids, sums = [], np.zeros((len(counts), len(pairs)))
    for metric, each in zip(metrics, found, strict=True):
        if isinstance(metric, Confusion | ClusteredConfusion):
            grids.append(grid_of(metric, counts))
        else:
            sums += share * each.rows
    exchanges = [
        _of_pair(grids, share, column, counts, pair) if grids else Exchange(counts, counts, column)
        for column, pair in zip(sums.T, pairs, strict=True)
    ]
    return Part(weight, contributions.mean(found), exchanges)


def _of_pair(grids: Sequence[Grid], weight: float, sums: Floats, counts: Floats, pair: Pair) -> Exchange:
    # The values that distinguish rows turn into their opposites when the models are exchanged.
    told = np.concatenate([*(grid.told_apart(*pair) for grid in grids), sums[:, None]], axis=1)
    differ = np.flatnonzero((told != 0).any(axis=1) & (counts > 0))
    told = told[differ]
    sign = np.sign(told[np.arange(len(told)), (told != 0).argmax(axis=1)])
    _, firsts, kinds = np.unique(told * sign[:, None] + 0.0, axis=0, return_index=True, return_inverse=True)
    kinds = kinds.reshape(-1)
    rows, turned = differ[firsts], sign[firsts]
    return Exchange(
        np.bincount(kinds, counts[differ], len(rows)).astype(float),
        np.bincount(kinds, counts[differ] * sign, len(rows)).astype(float),
        sums[rows] * turned,
        tuple(
            Tables(
                grid.of_shares,
                grid.totals[list(pair)].mean(axis=0),
                grid.moved(*pair, rows) * turned[:, None] / 2,
                weight,
            )
            for grid in grids
        ),
    )


_MOST_SIZES = 64
"""Sums over rows with more different sizes than this are practically normal."""
_FLIPS = 5_000_000
"""The most draws for a pair; a pair with more kinds of rows gets fewer, at least `_FEWEST`."""
_FEWEST = 1_000
_NOTHING = 1e-12


def exchange_p(parts: Sequence[Exchange], observed: float, draws: int, rng: Generator) -> float:
    """Two-sided p of the sum of the differences of independent tasks, which is `observed`.

    Exact for sums over rows, and if few outcomes are possible; else exchanges are drawn.
    """
    plain = [part for part in parts if not part.tables]
    sums = np.concatenate([np.zeros(0), *(part.sums for part in plain)])
    counts = np.concatenate([np.zeros(0), *(part.times for part in plain)])
    if len(plain) == len(parts):
        return sign_flip_p(sums, counts)
    if abs(observed) <= _NOTHING:
        return 1.0
    tabled = [part for part in parts if part.tables]
    sizes, times = distinct(np.abs(sums), counts)
    if len(sizes) > _MOST_SIZES:
        variance = float(sizes**2 @ times)
    else:
        variance = 0.0
        tabled.append(Exchange(times, times, sizes))
    if not variance and sum(np.log(part.times + 1).sum() for part in tabled) <= math.log(ATOMS):
        return _enumerated(tabled, abs(observed))
    lead = math.copysign(1.0, observed) * sum(float(part.ahead @ part.slopes()) for part in parts)
    return _drawn(tabled, variance, abs(observed), lead, draws, rng)


def _enumerated(parts: Sequence[Exchange], observed: float) -> float:
    times = np.concatenate([part.times for part in parts])
    ahead, chances = np.zeros((1, 0)), np.ones(1)
    for flips in times:
        leads, share = outcomes(flips)
        ahead = np.concatenate([np.repeat(ahead, len(leads), axis=0), np.tile(leads, len(ahead))[:, None]], axis=1)
        chances = np.multiply.outer(chances, share).ravel()
    # The second half has the first one's differences with the other sign; 0 may be between them.
    half = len(ahead) // 2
    reached = np.abs(_differences(parts, ahead[:half])) >= observed * (1 - SAME)
    return min(1.0, 2 * float(chances[:half][reached].sum()))


def _drawn(
    parts: Sequence[Exchange], variance: float, observed: float, lead: float, draws: int, rng: Generator
) -> float:
    """Half of the draws are exchanges that tend towards an equally large difference, with a smaller weight: small p
    need no more draws than large ones. `variance` belongs to a normal part; `lead` is the sum for the actual answers
    when every row adds its slope.

    Source: Harrison, Biometrika 99 (2012) 57, for p of weighted draws, and Owen and Zhou, Journal of the American
    Statistical Association 95 (2000) 135, for the weights of both halves.
    """
    slopes = np.concatenate([part.slopes() for part in parts])
    times = np.concatenate([part.times for part in parts])
    tilt = observed / max(float(slopes**2 @ times) + variance, _NOTHING)
    flat = np.abs(slopes * tilt)
    cumulant = float(times @ (flat + np.log1p(np.exp(-2 * flat)) - math.log(2))) + tilt**2 * variance / 2
    half = min(draws, max(_FEWEST, _FLIPS // len(times))) // 2
    ahead = np.empty((2 * half, len(times)))
    for place, (flips, chance) in enumerate(zip(times.astype(int), (1 + np.tanh(slopes * tilt)) / 2, strict=True)):
        ahead[:half, place] = 2 * rng.binomial(flips, 0.5, half) - flips
        ahead[half:, place] = 2 * rng.binomial(flips, chance, half) - flips
    normal = math.sqrt(variance) * rng.standard_normal(2 * half)
    normal[half:] += tilt * variance

    def weights(sums: Floats) -> Floats:
        found: Floats = 2 * np.exp(-np.logaddexp(0, tilt * sums - cumulant))
        return found

    reached = _differences(parts, ahead) + normal >= observed * (1 - SAME)
    beyond = float(weights(ahead @ slopes + normal)[reached].sum()) + float(weights(np.array([lead]))[0])
    return min(1.0, 2 * beyond / (2 * half + 1))


def _differences(parts: Sequence[Exchange], ahead: Floats) -> Floats:
    ends = np.cumsum([0, *(len(part.times) for part in parts)])
    found: Floats = np.sum(
        [part.differences(ahead[:, start:stop]) for part, (start, stop) in zip(parts, pairwise(ends), strict=True)],
        axis=0,
    )
    return found
