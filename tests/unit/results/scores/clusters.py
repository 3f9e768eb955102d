"""Answers whose items hang together."""

from __future__ import annotations

import numpy as np

from services.results.scores.means import Scores
from services.results.statistics.metric_values import Estimate, Floats


def clustered(table: Floats) -> Scores:
    """One row per cluster, one column per item of it."""
    clusters, size = table.shape
    sums = table.sum(axis=1)
    return Scores(
        n=table.size,
        total=sums.sum(),
        low=sums.sum(),
        high=sums.sum(),
        clusters=np.arange(clusters),
        sizes=np.full(clusters, float(size)),
        sums=sums,
    )


def hanging_together(rng: np.random.Generator, p: float, clusters: int, size: int) -> Floats:
    """Right and wrong answers whose rate differs from passage to passage; intra-cluster correlation 1/5."""
    rates = rng.beta(4 * p, 4 * (1 - p), (clusters, 1))
    return (rng.random((clusters, size)) < rates).astype(float)


def holds(estimate: Estimate, truth: float) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high
