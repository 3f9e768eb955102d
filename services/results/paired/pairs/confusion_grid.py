"""Metrics of the confusion matrix, of several models on the same rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from services.results.paired.pairs.rows import ClusteredConfusion, Confusion
from services.results.statistics.metric_values import BINARY_F1, Cell, Floats, Ints, confusion_metric, said_positive
from services.results.statistics.resampling import shares_metric

_STEP = 1e-4
"""Relative step of a derivative; the error is its square."""
_ALL = slice(None)


@dataclass(frozen=True)
class Grid:
    """The cells that occur in any model's table, with `totals` (models, cells) of each model's items in them.

    For single items, `places` (rows, models) says which cell an item is in; for clusters, `shares` (models, rows,
    cells) says how many of their items each cell has.
    """

    name: str
    positive: str
    cells: tuple[Cell, ...]
    totals: Floats
    places: Ints | None = None
    shares: Floats | None = None

    @cached_property
    def values(self) -> Floats:
        """The metric of each model, by the formula of its own score."""
        function = confusion_metric(self.name, self.positive)
        tables = [
            [replace(cell, count=float(count)) for cell, count in zip(self.cells, row, strict=True) if count > 0]
            for row in self.totals
        ]
        return np.array([function(table) for table in tables])

    def of_shares(self, shares: Floats) -> Floats:
        """The metric of (tables, cells) that each add up to 1."""
        return shares_metric(self.cells, self.name, self.positive)(shares)

    def moves(self, *, pooled: bool = False) -> Floats:
        """What every row adds to each model's metric (rows, models); `pooled` at the mean of all tables."""
        totals = np.broadcast_to(self.totals.mean(axis=0), self.totals.shape) if pooled else self.totals
        slopes = self._slopes(totals)
        # Slopes assume a fixed size of the table: the metric itself is distributed over the items.
        slopes += np.broadcast_to(self.values.mean() if pooled else self.values[:, None], slopes.shape) / (
            totals.sum(axis=1, keepdims=True)
        )
        return np.array([self._gathered(model, row) for model, row in enumerate(slopes)]).T

    def told_apart(self, a: int, b: int) -> Floats:
        """Numbers (rows, some) that say how two models' answers differ: 0 if they do not, the opposite for B, A."""
        if self.places is None:
            return self.moved(a, b)
        one, other = self._kinds[self.places[:, a]], self._kinds[self.places[:, b]]
        code = np.minimum(one, other) * (len(self.cells) + 4) + np.maximum(one, other) + 1
        found: Floats = (np.sign(one - other) * code).astype(float)[:, None]
        return found

    def moved(self, a: int, b: int, rows: Ints | slice = _ALL) -> Floats:
        """The cells of A's answers minus those of B's (rows, cells)."""
        if self.places is None:
            assert self.shares is not None
            return np.subtract(self.shares[a, rows], self.shares[b, rows])
        cells = np.eye(len(self.cells))
        return np.subtract(cells[self.places[rows, a]], cells[self.places[rows, b]])

    @cached_property
    def _kinds(self) -> Ints:
        """Numbers of the cells, the same for cells that the metric does not distinguish."""
        if self.name not in BINARY_F1:
            return np.arange(len(self.cells))
        return np.array(
            [2 * (cell.reference == self.positive) + said_positive(cell, self.positive) for cell in self.cells],
            dtype=np.int64,
        )

    def _gathered(self, model: int, weights: Floats) -> Floats:
        """Weights of the cells of a model's rows."""
        if self.places is not None:
            return weights[self.places[:, model]]
        assert self.shares is not None
        found: Floats = self.shares[model] @ weights
        return found

    def _slopes(self, totals: Floats) -> Floats:
        """Derivatives of the metric by the counts of (tables, cells); 0 for cells that do not occur."""
        tables, cells = totals.shape
        steps = _STEP * totals[:, None, :] * np.eye(cells)
        both = np.concatenate([totals[:, None, :] + steps, totals[:, None, :] - steps]).reshape(-1, cells)
        values = self.of_shares(both / both.sum(axis=1, keepdims=True)).reshape(2, tables, cells)
        found: Floats = np.divide(
            values[0] - values[1], 2 * _STEP * totals, out=np.zeros_like(totals), where=totals > 0
        )
        return found


def grid_of(metric: Confusion | ClusteredConfusion, counts: Floats) -> Grid:
    if isinstance(metric, ClusteredConfusion):
        cells = tuple(Cell(r, p, r == p, 0.0) for r, p in metric.cells)
        return Grid(metric.name, metric.positive, cells, metric.shares.sum(axis=1), shares=metric.shares)
    width = len(metric.labels) + 1
    codes = metric.references[:, None] * width + metric.predictions + 1
    occurring, places = np.unique(codes, return_inverse=True)
    places = places.reshape(codes.shape)
    names = (None, *metric.labels)
    cells = tuple(
        Cell(metric.labels[code // width], names[code % width], code // width == code % width - 1, 0.0)
        for code in map(int, occurring)
    )
    totals = np.array([np.bincount(column, counts, len(cells)) for column in places.T]).reshape(-1, len(cells))
    return Grid(metric.name, metric.positive, cells, totals, places=places)
