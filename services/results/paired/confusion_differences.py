"""Differences of metrics of the confusion matrix: standard errors by draws, and intervals. Pure.

As for a single metric, an interval is the range of all values that Pearson's chi-square test, with one degree of
freedom, does not reject, here by the counts of references and both models' answers. For accuracy it would be close to
Tango's interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator, default_rng

from services.results.paired.pairs.confusion_grid import Grid, grid_of
from services.results.paired.pairs.difference import Pairs
from services.results.paired.pairs.rows import Confusion
from services.results.statistics import intervals, metric_values
from services.results.statistics.intervals import UNSEEN, Layout
from services.results.statistics.metric_values import BINARY_F1, Cell, Floats, Ints

_PRIOR = 0.5
_CHUNK = 2_000_000
"""Numbers in memory at a time, in each of a few arrays."""


@dataclass(frozen=True, slots=True)
class JointCells:
    """How many items two models answered in which way: `counts[i]` items have A's answer in cell `a[i]` of the grid and
    B's in `b[i]`. The order does not depend on the order of rows."""

    a: Ints
    b: Ints
    counts: Floats

    def exchanged(self) -> JointCells:
        """B against A."""
        order = np.lexsort((self.a, self.b))
        return JointCells(self.b[order], self.a[order], self.counts[order])

    def canonical(self) -> JointCells:
        """This or B against A, the same from either side."""
        other = self.exchanged()
        return min(self, other, key=lambda joint: (*joint.a, *joint.b, *joint.counts))


def posterior_stderrs(metric: Confusion, counts: Floats, pairs: Pairs, resamples: int, seed: Sequence[int]) -> Floats:
    """Standard deviations of the differences of all pairs in their posterior; 0 where all answers are the same."""
    grid = grid_of(metric, counts)
    assert grid.places is not None
    # The same stream for every pair: none depends on which others are compared.
    return np.array(
        [
            posterior_stderr(
                grid, joint_cells(grid.places, counts, pair, len(grid.cells)), resamples, default_rng(seed)
            )
            for pair in pairs
        ]
    )


def joint_cells(places: Ints, counts: Floats, pair: tuple[int, int], width: int) -> JointCells:
    """The counts of two models, from the cells (rows, models) of their answers; the grid has `width` cells."""
    codes = places[:, pair[0]] * width + places[:, pair[1]]
    found = np.unique(codes, return_inverse=True)
    return JointCells(found[0] // width, found[0] % width, np.bincount(found[1], counts, len(found[0])).astype(float))


def posterior_stderr(grid: Grid, joint: JointCells, resamples: int, rng: Generator) -> float:
    """Standard deviation of the difference in the Dirichlet(½) posterior of the shares of the joint cells.

    0 where all answers are the same. The same to the last digit when the models are exchanged.

    Cells that could occur are those that do and their mirror images, with the models exchanged: a full grid of labels
    would be mostly prior.
    """
    joint, width = joint.canonical(), len(grid.cells)
    if np.all(joint.a == joint.b):
        return 0.0
    codes = np.concatenate([joint.a * width + joint.b, joint.b * width + joint.a])
    kinds, place = np.unique(codes, return_inverse=True)
    alpha = np.bincount(place[: len(joint.counts)], joint.counts, len(kinds)) + _PRIOR
    to_a, to_b = (np.eye(width)[side] for side in (kinds // width, kinds % width))
    draws = []
    for size in _chunks(resamples, len(kinds)):
        shares = rng.standard_gamma(alpha, (size, len(kinds)))
        shares /= shares.sum(axis=1, keepdims=True)
        draws.append(grid.of_shares(shares @ to_a) - grid.of_shares(shares @ to_b))
    # The prior adds doubt, not items.
    return float(np.std(np.concatenate(draws)) * np.sqrt(alpha.sum() / joint.counts.sum()))


def _chunks(resamples: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // max(width, 1))
    while resamples > 0:
        yield min(step, resamples)
        resamples -= step


def difference_ranges(metric: Confusion, counts: Floats, pairs: Pairs, quantile: float) -> list[tuple[float, float]]:
    """Intervals of A − B; `quantile` is the normal distribution's. They are the exact opposite of those of B − A."""
    grid = grid_of(metric, counts)
    assert grid.places is not None
    found = []
    for pair in pairs:
        joint = joint_cells(grid.places, counts, pair, len(grid.cells))
        low, high = (_largest(grid, each, quantile) for each in (joint.exchanged(), joint))
        found.append((0.0 - low, high))
    return found


def _largest(grid: Grid, joint: JointCells, quantile: float) -> float:
    counts, a, b = _layouts(grid, joint)

    def difference(shares: Floats) -> tuple[float, Floats]:
        value_a, slopes_a = a.metric(shares)
        value_b, slopes_b = b.metric(shares)
        return value_a - value_b, slopes_a - slopes_b

    return intervals.largest(counts, difference, quantile)


def _layouts(grid: Grid, joint: JointCells) -> tuple[Floats, Layout, Layout]:
    """Counts of the cells (reference, A's answer, B's answer) that could occur, and their positions in either table.

    The answers that could occur for a label are those that either model gave: with every label allowed, the range for a
    few items would be much too wide. If no answer differs, or a label occurs only as an answer, either model may be
    right or confuse it with the next one.
    """
    names = grid.cells
    labels = metric_values.labels_of(names[place] for place in (*joint.a, *joint.b))
    if grid.name in BINARY_F1:
        labels = [grid.positive, f"not {grid.positive}"]
    elif len(labels) == 1:
        labels.append(UNSEEN)
    seen: dict[tuple[int, int, int], float] = defaultdict(float)
    given: dict[int, set[int]] = defaultdict(set)
    for place_a, place_b, count in zip(joint.a, joint.b, joint.counts, strict=True):
        (y, a), (_, b) = (_places(grid, names[place], labels) for place in (place_a, place_b))
        seen[y, a, b] += count
        given[y] |= {a, b}
    alike = all(a == b for _, a, b in seen)
    for y in range(len(labels)):
        if alike or not given[y]:
            given[y] |= {y, (y + 1) % len(labels)}
    cells = sorted((y, a, b) for y, answers in given.items() for a, b in product(answers, answers))
    references, answers_a, answers_b = np.array(cells, dtype=np.int64).T

    def layout(side: int, answers: Ints) -> Layout:
        occurring = {cell[place] for cell in seen for place in (0, side)} - {len(labels)}
        scored = [0] if grid.name in BINARY_F1 else sorted(occurring)
        return Layout(grid.name, references, answers, len(labels), scored)

    return np.array([seen[cell] for cell in cells]), layout(1, answers_a), layout(2, answers_b)


def _places(grid: Grid, cell: Cell, labels: list[str]) -> tuple[int, int]:
    """Indices of the reference and of the prediction; no answer comes after all labels. For binary F1, 0 is
    positive."""
    if grid.name in BINARY_F1:
        return int(cell.reference != grid.positive), int(not metric_values.said_positive(cell, grid.positive))
    return labels.index(cell.reference), len(labels) if cell.prediction is None else labels.index(cell.prediction)
