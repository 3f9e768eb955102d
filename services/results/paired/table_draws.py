"""Differences of metrics of the table of references and predictions, by draws that only counts go into. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from services.results.paired.difference import Pairs
from services.results.paired.rows import Table
from services.results.paired.table_grid import Grid, grid_of
from services.results.statistics import Floats, Ints

_PRIOR = 0.5
_CHUNK = 2_000_000
"""Numbers held at once, in each of a few arrays."""


@dataclass(frozen=True, slots=True)
class JointCells:
    """How many items two models answered in which way: `counts[i]` have A's answer in cell `a[i]` of the grid and B's
    in `b[i]`. The order does not depend on that of rows."""

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


def posterior_stderrs(metric: Table, counts: Floats, pairs: Pairs, resamples: int, seed: Sequence[int]) -> Floats:
    """Standard deviations of the differences of all pairs in their posterior; 0 where all answers are the same."""
    grid = grid_of(metric, counts)
    assert grid.places is not None
    # The same stream for every pair: none hangs on which others are compared.
    return np.array(
        [
            posterior_stderr(
                grid, joint_cells(grid.places, counts, pair, len(grid.cells)), resamples, default_rng(seed)
            )
            for pair in pairs
        ]
    )


def joint_cells(places: Ints, counts: Floats, pair: tuple[int, int], width: int) -> JointCells:
    """Of two models, from the cells (rows, models) that their answers lie in; the grid has `width` cells."""
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
    # The prior is doubt, and no further items.
    return float(np.std(np.concatenate(draws)) * np.sqrt(alpha.sum() / joint.counts.sum()))


def _chunks(resamples: int, width: int) -> Iterator[int]:
    step = max(1, _CHUNK // max(width, 1))
    while resamples > 0:
        yield min(step, resamples)
        resamples -= step
