"""What exchanging two models within rows makes of a difference, for metrics of the table, too. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from services.results.paired.pairs import contributions
from services.results.paired.pairs.confusion_grid import Grid, grid_of
from services.results.paired.pairs.contributions import Contributions, ScoreMetric
from services.results.paired.pairs.difference import Pair, Pairs
from services.results.paired.pairs.rows import ClusteredConfusion, Confusion
from services.results.paired.sign_flip import SAME
from services.results.statistics.metric_values import Floats


@dataclass(frozen=True, slots=True)
class Tables:
    """A metric of the two tables of a pair, which counts `weight` in the difference.

    `middle` (cells,) is the mean of both; each row of a kind adds its `moves` (kinds, cells) to one table and takes
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
        # Parts of items do not cancel to the last digit. Cells that the metric does not tell apart may be below 0: they
        # are right together.
        totals = np.where(np.abs(totals) > SAME, totals, 0.0)
        return self.metric(totals / totals.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A pair's difference in one task, the mean of its metrics, as the models are exchanged within rows.

    Rows are of one kind where they add the same, or its opposite. There are `times` (kinds,) of each; `ahead` (kinds,)
    is how many more lie one way than the other in the answers as they are. A row adds its kind's `sums` (kinds,) to
    metrics that are sums over rows; the others are in `tables`.
    """

    times: Floats
    ahead: Floats
    sums: Floats
    tables: tuple[Tables, ...] = ()

    @property
    def differing(self) -> float:
        """Units that the models differ in."""
        if self.tables:
            return float(self.times.sum())
        sizes = np.abs(self.sums)
        return float(self.times @ (sizes > SAME * sizes.max(initial=0.0)))

    def slopes(self) -> Floats:
        """What one row of each kind makes the difference where of all others as many lie either way."""
        return self._of(self.sums, [each.moves for each in self.tables])

    def differences(self, ahead: Floats) -> Floats:
        """Of exchanges (exchanges, kinds) that leave so many rows ahead."""
        return self._of(ahead @ self.sums, [ahead @ each.moves for each in self.tables])

    def _of(self, sums: Floats, changes: Sequence[Floats]) -> Floats:
        for each, change in zip(self.tables, changes, strict=True):
            sums = sums + each.differences(change)
        return sums


@dataclass(frozen=True, slots=True)
class Part:
    """A task in a weighted sum of independent differences.

    `added` is what its rows add, without the weight; `exchanges`, one per pair, are with it.
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
    # What tells rows apart turns into its opposite when the models are exchanged.
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
