"""Resamples of metrics. Pure, vectorised, in bounded memory; the same generator state gives the same numbers.

Cells are drawn from the Dirichlet(½) posterior of their shares (Jeffreys' prior for a multinomial): unlike a bootstrap
it has width at a perfect score. Pairs are drawn with replacement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from services.results.statistics import metric_values
from services.results.statistics.metric_values import Cell, Floats, Ints

_CHUNK = 1_000_000
"""Numbers in memory at a time, in each of a few arrays."""
_PAIR_DRAWS = 20_000_000
"""Pairs drawn at most in all: 10,000 resamples of 2,000 pairs; larger tasks get fewer, at least `_FEWEST`."""
_FEWEST = 1_000
_GRID_LABELS = 16
"""Beyond this number of labels, only cells that occur get a share of the prior: a full grid would be mostly prior."""


def draw_cells(
    cells: Sequence[Cell], metrics: Mapping[str, str], resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Joint resamples of accuracy and of metrics of the table. `metrics` maps names to the positive label."""
    grid = _grid(cells, metrics)
    functions = {name: shares_metric(grid, name, positive) for name, positive in metrics.items()}
    alpha = np.array([cell.count + 0.5 for cell in grid])
    draws: dict[str, list[Floats]] = {name: [] for name in metrics}
    for size in _chunks(resamples, len(grid)):
        shares = rng.standard_gamma(alpha, (size, len(grid)))
        shares /= shares.sum(axis=1, keepdims=True)
        for name, function in functions.items():
            draws[name].append(function(shares))
    return {name: np.concatenate(parts) for name, parts in draws.items()}


def draw_pairs(
    values: Floats,
    targets: Floats,
    clusters: Ints,
    metrics: Sequence[str],
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Joint bootstrap of Pearson and Spearman over clusters of pairs. A resample whose values are all equal is NaN.

    `clusters` numbers the pairs' clusters from 0. Has `resamples` numbers per metric or, for large tasks, fewer.
    """
    n, groups = len(values), int(clusters.max()) + 1
    resamples = min(resamples, max(_FEWEST, _PAIR_DRAWS // n))
    x, y = ((column - column.mean()) / column.std() for column in (values, targets))
    x_ranks, y_ranks = _Midranks(values), _Midranks(targets)
    draws: dict[str, list[Floats]] = {name: [] for name in metrics}
    for size in _chunks(resamples, n):
        picks = rng.integers(0, groups, (size, groups)) + np.arange(size)[:, None] * groups
        counts = np.bincount(picks.ravel(), minlength=size * groups).reshape(size, groups)[:, clusters].astype(float)
        for name in metrics:
            if name == metric_values.PEARSON:
                draws[name].append(_weighted_pearson(counts, x, y))
            else:
                draws[name].append(_weighted_pearson(counts, x_ranks.of(counts), y_ranks.of(counts)))
    return {name: np.concatenate(parts) for name, parts in draws.items()}


def shares_metric(grid: Sequence[Cell], name: str, positive: str) -> Callable[[Floats], Floats]:
    """Accuracy or a metric of the table as a function of (resamples, cells) shares that add up to 1 in each row."""
    if name == metric_values.ACCURACY:
        correct = _mask(cell.correct for cell in grid)
        return lambda shares: shares @ correct
    if name == metric_values.MATTHEWS:
        return lambda shares: _matthews(shares, grid)
    if name == metric_values.MACRO_F1:
        return lambda shares: _macro_f1(shares, grid)
    wanted = np.array([cell.reference == positive for cell in grid])
    said = np.array([metric_values.said_positive(cell, positive) for cell in grid])
    return partial(_f1, (wanted & said).astype(float), (wanted ^ said).astype(float))


class _Midranks:
    """Ranks of a column within resamples of it, without sorting each: ties share the mean of their places."""

    def __init__(self, column: Floats) -> None:
        distinct, self._place = np.unique(column, return_inverse=True)
        self._order = np.argsort(self._place, kind="stable")
        self._starts = np.searchsorted(self._place[self._order], np.arange(len(distinct)))

    def of(self, counts: Floats) -> Floats:
        """(resamples, n) ranks, centred, of items that occur `counts` times."""
        tied = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        ranks = np.cumsum(tied, axis=1) - (tied - 1) / 2
        centred: Floats = (ranks - (counts.sum(axis=1, keepdims=True) + 1) / 2)[:, self._place]
        return centred


def _weighted_pearson(counts: Floats, x: Floats, y: Floats) -> Floats:
    """Correlation within each resample; x and y are centred columns (n,) or differ by resample (resamples, n)."""
    n = counts.sum(axis=1)

    def mean(column: Floats) -> Floats:
        total: Floats = counts @ column if column.ndim == 1 else np.einsum("ri,ri->r", counts, column)
        total /= n
        return total

    mean_x, mean_y = mean(x), mean(y)
    spread = (mean(x * x) - mean_x**2) * (mean(y * y) - mean_y**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(spread > 1e-24, (mean(x * y) - mean_x * mean_y) / np.sqrt(spread), np.nan)
    clipped: Floats = np.clip(result, -1, 1)
    return clipped


def _f1(hits: Floats, wrong: Floats, shares: Floats) -> Floats:
    """F1 of one class; 0 where it neither occurs nor is predicted."""
    tp = 2 * (shares @ hits)
    result: Floats = tp / np.maximum(tp + shares @ wrong, 1e-300)
    return result


def _macro_f1(shares: Floats, grid: Sequence[Cell]) -> Floats:
    total, occurring = np.zeros(len(shares)), np.zeros(len(shares))
    for label in metric_values.labels_of(grid):
        hits = _mask(cell.reference == label == cell.prediction for cell in grid)
        wrong = _mask((cell.reference == label) != (cell.prediction == label) for cell in grid)
        total += _f1(hits, wrong, shares)
        occurring += shares @ (hits + wrong) > 0
    mean: Floats = total / np.maximum(occurring, 1)
    return mean


def _matthews(shares: Floats, grid: Sequence[Cell]) -> Floats:
    columns = [*metric_values.labels_of(grid), None]
    references = shares @ np.array([[float(cell.reference == label) for label in columns] for cell in grid])
    predictions = shares @ np.array([[float(cell.prediction == label) for label in columns] for cell in grid])
    agreed = shares @ np.array([float(cell.reference == cell.prediction) for cell in grid])
    spread = (1 - (predictions**2).sum(axis=1)) * (1 - (references**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = (agreed - (references * predictions).sum(axis=1)) / np.sqrt(spread)
    return np.where(spread > 1e-24, result, 0.0)


def _mask(cells: Iterable[bool]) -> Floats:
    return np.array([float(cell) for cell in cells])


def _grid(cells: Sequence[Cell], metrics: Mapping[str, str]) -> list[Cell]:
    """The coarsest cells that the metrics distinguish, including those that could occur but did not."""
    counts: dict[tuple[str, str | None, bool], float] = defaultdict(float)
    positives = {positive for name, positive in metrics.items() if name in metric_values.BINARY_F1}
    if len(positives) > 1 or metrics.keys() & {metric_values.MATTHEWS, metric_values.MACRO_F1}:
        labels = metric_values.labels_of(cells)
        if len(labels) <= _GRID_LABELS:
            counts.update({(r, p, r == p): 0.0 for r, p in product(labels, labels)})
        for cell in cells:
            counts[cell.reference, cell.prediction, cell.correct] += cell.count
    elif positives:
        (positive,) = positives
        sides = {True: positive, False: f"not {positive}"}
        counts.update({(r, p, r == p): 0.0 for r, p in product(sides.values(), sides.values())})
        for cell in cells:
            said = metric_values.said_positive(cell, positive)
            counts[sides[cell.reference == positive], sides[said], cell.correct] += cell.count
    else:
        counts.update({("", "", True): 0.0, ("", None, False): 0.0})
        for cell in cells:
            counts["", "" if cell.correct else None, cell.correct] += cell.count
    # Sorted: the order of a set of strings differs from process to process, and draws would with it.
    keys = sorted(counts, key=lambda key: (key[0], key[1] is None, key[1] or "", key[2]))
    return [Cell(*key, counts[key]) for key in keys]


def _chunks(resamples: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // width)
    while resamples > 0:
        yield min(step, resamples)
        resamples -= step
