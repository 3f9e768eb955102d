"""Small runs of several models on the same items, drawn or spelled out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator

from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import (
    ClusteredConfusion,
    Column,
    Confusion,
    Correlation,
    Cost,
    Means,
    Metric,
    TaskRows,
    binary_rows,
)
from services.results.statistics.metric_values import Floats, Ints

LABELS = ("no", "yes")


def counted(both: int, only_a: int, only_b: int, neither: int, task: str = "t") -> TaskRows:
    """Two models right and wrong so many times."""
    counts, metric = binary_rows(np.array([3, 1, 2, 0]), np.array([both, only_a, only_b, neither]), 2)
    return TaskRows(task, counts, {"accuracy": metric})


def scored(values: Floats, task: str = "t") -> TaskRows:
    """Scores of single items, (items, models)."""
    return TaskRows(task, np.ones(len(values)), {"score": Means(values, np.ones(len(values)))})


def labelled(
    references: Ints, predictions: Ints, names: Sequence[str], labels: tuple[str, ...] = LABELS, task: str = "t"
) -> TaskRows:
    """References (items,) and predictions (items, models) as places among the labels."""
    metrics: dict[str, Metric] = {
        name: Confusion(name, labels[-1], labels, references, predictions) for name in names if name != "accuracy"
    }
    if "accuracy" in names:
        right = (predictions == references[:, None]).astype(float)
        metrics["accuracy"] = Means(right, np.ones(len(references)))
    return TaskRows(task, np.ones(len(references)), metrics)


def mixed_task(rng: Generator, kind: str, models: int = 3, n: int = 40) -> TaskRows:
    """One task of each kind of metric."""
    if kind == "right":
        return scored(rng.integers(0, 2, (n, models)).astype(float), kind)
    if kind == "scores":
        return scored(rng.integers(0, 5, (n, models)) / 4, kind)
    if kind == "clusters":
        sizes = rng.integers(1, 6, n)
        sums = rng.binomial(sizes[:, None], 0.6, (n, models)).astype(float)
        return TaskRows(kind, np.ones(n), {"em": Means(sums, sizes.astype(float))}, clustered=True)
    if kind == "table":
        references = rng.integers(0, 2, n)
        predictions = np.where(rng.random((n, models)) < 0.7, references[:, None], rng.integers(-1, 2, (n, models)))
        return labelled(references, predictions, ("f1", "macro_f1", "matthews_correlation", "accuracy"), task=kind)
    if kind == "clustered table":
        cells = (("no", "no"), ("no", "yes"), ("yes", "no"), ("yes", "yes"), ("yes", None))
        base = rng.integers(0, 3, (n, len(cells)))
        shares = np.array([rng.permuted(base, axis=1) for _ in range(models)]).astype(float)
        # All models answered the same items.
        shares[..., 0] += 12 - shares.sum(axis=2)
        return TaskRows(kind, np.ones(n), {"f1a": ClusteredConfusion("f1a", "yes", cells, shares)}, clustered=True)
    if kind == "correlation":
        targets = rng.integers(0, 11, n) / 2
        columns = tuple(Column(np.round(targets + rng.normal(0, 1.5, n)), targets, np.arange(n)) for _ in range(models))
        return TaskRows(kind, np.ones(n), {name: Correlation(name, columns) for name in ("pearson", "spearman")})
    values = rng.lognormal(6, 0.6, (n, models))
    return TaskRows(kind, np.ones(n), {s: Cost(values, s) for s in ("mean", "p50", "p95")})


KINDS = ("right", "scores", "clusters", "table", "clustered table", "correlation", "cost")
TERMS = Terms(resamples=200, margin=0.2)
PAIRS = [(0, 1), (0, 2), (1, 2)]
seeds = st.integers(0, 2**32 - 1)
