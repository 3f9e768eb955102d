"""How often intervals of single scores hold the truth, on average over a grid of truths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from scipy import stats

from services.results.paired.pairs.rows import Correlation
from services.results.scores import aggregation, means
from services.results.scores.aggregation import Measured, Pairs, TaskData
from services.results.scores.means import Lost, Scores
from services.results.scores.suite_score import average
from services.results.statistics import metric_values
from services.results.statistics.intervals import score_interval
from services.results.statistics.metric_values import Cell, Floats
from tests.calibration.worlds import NO_YES, THREE, ClassTask, alike, cluster_answers, ratings, within
from touchstone.v1.suite_pb2 import MetricSpec

pytestmark = pytest.mark.calibration

LEAST, MOST = 0.94, 0.96


def test_wilson_intervals_cover_94_to_96_percent() -> None:
    """Exactly, from the binomial distribution."""
    found = {n: float(np.mean([_wilson(n, p) for p in np.linspace(0.05, 0.95, 37)])) for n in (56, 71, 100, 277, 872)}
    print("\nWilson:", ", ".join(f"n = {n}: {share:.3f}" for n, share in found.items()))
    assert all(LEAST <= share <= MOST for share in found.values())


def _wilson(n: int, p: float) -> float:
    counts = np.arange(n + 1)
    inside = np.array([within(low, p, high) for low, high in (score_interval(k / n, n) for k in counts)])
    return float(stats.binom.pmf(counts, n, p)[inside].sum())


def test_clustered_intervals_cover_94_to_96_percent() -> None:
    rng, found = default_rng(8), {}
    for clusters, size in ((12, 8), (40, 8), (83, 12), (200, 4)):
        hits = [
            within(e.low, p, e.high)
            for p in (0.1, 0.3, 0.5, 0.7, 0.85, 0.93)
            for e in (_clustered(cluster_answers(rng, clusters, size, (p,))[0]) for _ in range(600))
        ]
        found[clusters, size] = float(np.mean(hits))
    print("\nClustered:", ", ".join(f"{c} of {s}: {share:.3f}" for (c, s), share in found.items()))
    assert LEAST <= np.mean(list(found.values())) <= MOST
    assert min(found.values()) > 0.925


def _clustered(table: Floats) -> metric_values.Estimate:
    clusters, size = table.shape
    sums = table.sum(axis=1)
    total = float(sums.sum())
    found = Scores(
        n=table.size,
        total=total,
        low=total,
        high=total,
        clusters=np.arange(clusters),
        sizes=np.full(clusters, float(size)),
        sums=sums,
    )
    return means.estimate(found, Lost(), clustered=True)


TABLES = (
    ("f1", NO_YES, (0.32, 0.68)),
    ("matthews_correlation", NO_YES, (0.32, 0.68)),
    ("macro_f1", NO_YES, (0.32, 0.68)),
    ("macro_f1", THREE, (0.5, 0.41, 0.09)),
    ("matthews_correlation", THREE, (0.33, 0.35, 0.32)),
)


def test_intervals_of_f1_and_matthews_cover_94_to_96_percent() -> None:
    rng, found = default_rng(56), {}
    for metric, labels, base in TABLES:
        for n in (56, 100, 277, 1043):
            hits = list(_table_hits(rng, metric, labels, base, n))
            found[f"{metric}, {len(labels)} labels, n = {n}"] = float(np.mean(hits))
    print("\nTables:", *(f"  {name}: {share:.3f}" for name, share in found.items()), sep="\n")
    print(f"  on average: {np.mean(list(found.values())):.3f}")
    assert LEAST <= np.mean(list(found.values())) <= MOST
    assert min(found.values()) > 0.88


def _table_hits(
    rng: Generator, metric: str, labels: tuple[str, ...], base: tuple[float, ...], n: int
) -> Iterator[bool]:
    for accuracy in (0.6, 0.75, 0.85, 0.93, 0.975):
        chances = ClassTask("t", n, labels, base, alike((accuracy,)), (metric,)).chances().sum(axis=2)
        chances /= chances.sum()
        truth = metric_values.confusion_metric(metric, labels[-1])(_cells(chances, labels))
        for trial in range(120):
            counts = rng.multinomial(n, chances.ravel()).reshape(chances.shape)
            data = TaskData(f"t{trial}", _cells(counts, labels))
            spec = MetricSpec(metric=metric, positive_label=labels[-1])
            estimate = aggregation.measure(data, [spec], 500).estimates[metric]
            yield within(estimate.low, truth, estimate.high)


def _cells(table: Floats, labels: tuple[str, ...]) -> list[Cell]:
    return [
        Cell(labels[y], None if p == 0 else labels[p - 1], p == y + 1, float(count))
        for (y, p), count in np.ndenumerate(table)
        if count
    ]


SUITES = {
    "57 subjects": (100,) * 40 + (250,) * 12 + (600, 600, 800, 900, 1534),
    "one large task": (60, 100, 100, 2000),
    "two small tasks": (50, 150),
}
"""Items of each task."""


@pytest.mark.parametrize("by_items", [True, False], ids=["over items", "over tasks"])
def test_intervals_of_scores_over_items_and_over_tasks_cover_94_to_96_percent(by_items: bool) -> None:
    """Of tasks that differ in difficulty, as they are: other items of the same tasks are drawn."""
    rng, found = default_rng(223), {}
    for name, sizes in SUITES.items():
        hits = []
        for level in (0.4, 0.6, 0.75, 0.9):
            chances = np.clip(rng.normal(level, 0.15, len(sizes)), 0.03, 0.98)
            truth = float(np.average(chances, weights=sizes if by_items else None))
            for trial in range(200 if len(sizes) < 10 else 40):
                tasks = [
                    _right(f"{trial}/{place}", n, int(right))
                    for place, (n, right) in enumerate(zip(sizes, rng.binomial(sizes, chances), strict=True))
                ]
                estimate = average([[task] for task in tasks], by_items=by_items)
                assert estimate is not None
                hits.append(within(estimate.low, truth, estimate.high))
        found[name] = float(np.mean(hits))
    print("\nSuites:", ", ".join(f"{name}: {share:.3f}" for name, share in found.items()))
    assert LEAST <= np.mean(list(found.values())) <= MOST
    assert min(found.values()) > 0.925


def _right(name: str, items: int, right: int) -> Measured:
    cells = [Cell("yes", "yes", True, right), Cell("yes", "no", False, items - right)]
    return aggregation.measure(TaskData(name, cells), [MetricSpec(metric="accuracy")], 1_000)


def test_intervals_of_correlations_cover_94_to_96_percent() -> None:
    rng, found = default_rng(15), {}
    for metric in ("pearson", "spearman"):
        for n, trials in ((60, 250), (200, 250), (800, 60)):
            hits = []
            for reliability in (0.6, 0.8, 0.9, 0.95):
                whole = _pairs(default_rng(1), 300_000, reliability, metric)
                function = metric_values.pearson if metric == "pearson" else metric_values.spearman
                truth = function(whole.values, whole.targets)
                for trial in range(trials):
                    data = TaskData(f"t{trial}", pairs=_pairs(rng, n, reliability, metric))
                    estimate = aggregation.measure(data, [MetricSpec(metric=metric)], 400).estimates[metric]
                    hits.append(within(estimate.low, truth, estimate.high))
            found[f"{metric}, n = {n}"] = float(np.mean(hits))
    print("\nBootstrap:", ", ".join(f"{name}: {share:.3f}" for name, share in found.items()))
    assert LEAST <= np.mean(list(found.values())) <= MOST


def _pairs(rng: Generator, n: int, reliability: float, metric: str) -> Pairs:
    correlation = ratings(rng, n, (reliability,)).metrics[metric]
    assert isinstance(correlation, Correlation)
    column = correlation.columns[0]
    return Pairs(column.values, column.targets, np.ones(n, bool), np.arange(n), n)
