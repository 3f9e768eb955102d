"""Resamples of metrics. Pure, vectorised, in bounded memory; the same generator state gives the same numbers.

Cells are drawn from the Dirichlet(½) posterior of their shares (Jeffreys' prior for a multinomial): unlike a percentile
bootstrap it has width at a perfect score. Pairs are drawn with replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from services.results import statistics
from services.results.statistics import Cell, Floats

_CHUNK = 1_000_000
"""Numbers held at once, in each of a few arrays."""
_PAIR_DRAWS = 20_000_000
"""Pairs drawn at most in all: 10,000 resamples of 2,000 pairs; larger tasks get fewer, at least `_FEWEST`."""
_FEWEST = 1_000
_GRID_LABELS = 16
"""Beyond so many labels only cells that occur get a share of the prior: a full grid would be mostly prior."""


def draw_cells(
    cells: Sequence[Cell], metrics: Mapping[str, str], resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Joint resamples of accuracy, F1 and the Matthews correlation. `metrics` maps names to the positive label."""
    grid = _grid(cells, metrics)
    alpha = np.array([cell.count + 0.5 for cell in grid])
    draws: dict[str, list[Floats]] = {name: [] for name in metrics}
    for size in _chunks(resamples, len(grid)):
        shares = rng.standard_gamma(alpha, (size, len(grid)))
        shares /= shares.sum(axis=1, keepdims=True)
        for name, positive in metrics.items():
            match name:
                case statistics.ACCURACY:
                    drawn = shares @ np.array([float(cell.correct) for cell in grid])
                case statistics.F1:
                    drawn = _f1(shares, grid, positive)
                case _:
                    drawn = _matthews(shares, grid)
            draws[name].append(drawn)
    return {name: np.concatenate(parts) for name, parts in draws.items()}


def draw_pairs(
    values: Floats, targets: Floats, metrics: Sequence[str], resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Joint bootstrap of Pearson and Spearman. A resample whose values are all equal is NaN.

    Has `resamples` numbers per metric or, for large tasks, fewer.
    """
    n = len(values)
    resamples = min(resamples, max(_FEWEST, _PAIR_DRAWS // n))
    x, y = ((column - column.mean()) / column.std() for column in (values, targets))
    x_ranks, y_ranks = _Midranks(values), _Midranks(targets)
    draws: dict[str, list[Floats]] = {name: [] for name in metrics}
    for size in _chunks(resamples, n):
        picks = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(float)
        for name in metrics:
            if name == statistics.PEARSON:
                draws[name].append(_weighted_pearson(counts, x, y))
            else:
                draws[name].append(_weighted_pearson(counts, x_ranks.of(counts), y_ranks.of(counts)))
    return {name: np.concatenate(parts) for name, parts in draws.items()}


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
        centred: Floats = (ranks - (counts.shape[1] + 1) / 2)[:, self._place]
        return centred


def _weighted_pearson(counts: Floats, x: Floats, y: Floats) -> Floats:
    """Correlation within each resample; x and y are centred columns (n,) or differ by resample (resamples, n)."""
    n = counts.shape[1]

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


def _f1(shares: Floats, grid: Sequence[Cell], positive: str) -> Floats:
    wanted = np.array([cell.reference == positive for cell in grid])
    said = np.array(
        [cell.reference != positive if cell.prediction is None else cell.prediction == positive for cell in grid]
    )
    tp = shares @ (wanted & said).astype(float)
    wrong = shares @ (wanted ^ said).astype(float)
    result: Floats = 2 * tp / (2 * tp + wrong)
    return result


def _matthews(shares: Floats, grid: Sequence[Cell]) -> Floats:
    labels = sorted(
        {cell.reference for cell in grid} | {cell.prediction for cell in grid if cell.prediction is not None}
    )
    columns = [*labels, None]
    references = shares @ np.array([[float(cell.reference == label) for label in columns] for cell in grid])
    predictions = shares @ np.array([[float(cell.prediction == label) for label in columns] for cell in grid])
    agreed = shares @ np.array([float(cell.reference == cell.prediction) for cell in grid])
    spread = (1 - (predictions**2).sum(axis=1)) * (1 - (references**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = (agreed - (references * predictions).sum(axis=1)) / np.sqrt(spread)
    return np.where(spread > 1e-24, result, 0.0)


def _grid(cells: Sequence[Cell], metrics: Mapping[str, str]) -> list[Cell]:
    """The coarsest cells that the metrics tell apart, with those that could occur and did not."""
    counts: Counter[tuple[str, str | None, bool]] = Counter()
    if statistics.MATTHEWS in metrics:
        labels = {c.reference for c in cells} | {c.prediction for c in cells if c.prediction is not None}
        if len(labels) <= _GRID_LABELS:
            counts.update({(r, p, r == p): 0 for r, p in product(labels, labels)})
        for cell in cells:
            counts[cell.reference, cell.prediction, cell.correct] += cell.count
    elif statistics.F1 in metrics:
        positive = metrics[statistics.F1]
        sides = {True: positive, False: f"not {positive}"}
        counts.update({(r, p, r == p): 0 for r, p in product(sides.values(), sides.values())})
        for cell in cells:
            wanted = cell.reference == positive
            said = not wanted if cell.prediction is None else cell.prediction == positive
            counts[sides[wanted], sides[said], cell.correct] += cell.count
    else:
        counts.update({("", "", True): 0, ("", None, False): 0})
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
