"""How far single clusters of items move metrics: used for standard errors of dependent items. Pure.

A metric of the confusion matrix is a smooth function of the cells' counts, so that a cluster moves
it, to first order, by the sum over its items of the function's derivatives (the delta method).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from services.results.scores.means import NO_SPREAD
from services.results.statistics.metric_values import Cell, Floats, Ints
from services.results.statistics.resampling import shares_metric

Moves = tuple[Ints, Floats]
"""Clusters' numbers, in increasing order, and how far each moves a metric."""

_STEP = 1e-5
"""Relative step of a derivative; the error is its square, and rounding adds about as much."""


@dataclass(frozen=True, slots=True)
class ClusterCells:
    """Which clusters a task's cells consist of: cell `places[i]` has `counts[i]` items of cluster `clusters[i]`."""

    clusters: Ints
    places: Ints
    counts: Floats


def table_moves(cells: Sequence[Cell], members: ClusterCells, name: str, positive: str) -> Moves:
    """How far each cluster moves a metric of the table. Adds up to 0."""
    counts = np.array([cell.count for cell in cells])
    steps = np.diag(_STEP * counts)
    both = np.concatenate([counts + steps, counts - steps])
    values = shares_metric(cells, name, positive)(both / both.sum(axis=1, keepdims=True))
    ahead, behind = np.split(values, 2)
    slopes = (ahead - behind) / (2 * _STEP * counts)
    numbers, place = np.unique(members.clusters, return_inverse=True)
    moved: Floats = np.bincount(place, members.counts * slopes[members.places], len(numbers)).astype(float)
    return numbers, moved


def joint_draws(
    values: Mapping[str, float],
    influences: Mapping[str, Moves],
    spans: Mapping[str, tuple[float, float] | None],
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Resamples of a task's metrics from the normal distribution with their clustered covariance, cut at their spans.

    A metric without spread at an end of its span is drawn separately as if every cluster were one observation, like its
    interval.
    """
    everyone = np.unique(np.concatenate([numbers for numbers, _ in influences.values()]))
    moves = np.zeros((len(everyone), len(values)))
    for column, name in enumerate(values):
        numbers, moved = influences[name]
        moves[np.searchsorted(everyone, numbers), column] = moved
    normal = rng.standard_normal((resamples, len(values))) @ _root(moves.T @ moves).T
    draws: dict[str, Floats] = {}
    for column, (name, value) in enumerate(values.items()):
        span, drawn = spans[name], value + normal[:, column]
        if span is not None:
            low, high = span
            clusters = len(influences[name][0])
            share = min(max((value - low) / (high - low), 0.0), 1.0)
            if min(share, 1 - share) < NO_SPREAD and not normal[:, column].any():
                beta = rng.beta(clusters * share + 0.5, clusters * (1 - share) + 0.5, resamples)
                drawn = low + (high - low) * beta
            drawn = np.clip(drawn, low, high)
        draws[name] = drawn
    return draws


def _root(covariance: Floats) -> Floats:
    """Lower triangular root of a covariance that may be singular: metrics may move together, or not at all."""
    root = np.zeros_like(covariance)
    for i in range(len(covariance)):
        rest = covariance[i, i] - root[i, :i] @ root[i, :i]
        root[i, i] = np.sqrt(rest) if rest > max(1e-12 * covariance[i, i], NO_SPREAD**2) else 0.0
        for j in range(i + 1, len(covariance)):
            if root[i, i]:
                root[j, i] = (covariance[j, i] - root[j, :i] @ root[i, :i]) / root[i, i]
    return root
