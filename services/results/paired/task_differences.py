"""Every metric of every task, for all pairs of models. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from services.results.paired import binary, cost_draws, moments
from services.results.paired.confusion_differences import difference_ranges, posterior_stderrs
from services.results.paired.exchange import part_of
from services.results.paired.moments import spread
from services.results.paired.pairs.contributions import ScoreMetric, sides
from services.results.paired.pairs.difference import Difference, Pairs, Terms
from services.results.paired.pairs.rows import (
    ClusteredConfusion,
    Confusion,
    Correlation,
    Cost,
    Means,
    Metric,
    TaskRows,
    is_binary,
)
from services.results.statistics import metric_values
from services.results.statistics.distributions import normal_quantile
from services.results.statistics.metric_values import Floats

MCNEMAR = "exact McNemar"
PairCounts = tuple[Floats, Floats, Floats]
"""By pair: items, and those that only A and only B has right."""


def task_differences(tasks: Sequence[TaskRows], pairs: Pairs, terms: Terms) -> list[dict[str, list[Difference]]]:
    """By task, metric and pair. Metrics of right and wrong are computed for all tasks at once."""
    found: list[dict[str, list[Difference]]] = []
    counted: list[tuple[int, str]] = []
    tables: list[PairCounts] = []
    for place, task in enumerate(tasks):
        found.append({})
        for name, metric in task.metrics.items():
            found[place][name] = []
            if isinstance(metric, Means) and is_binary(metric):
                counted.append((place, name))
                tables.append(pair_counts(metric, task.counts, pairs))
            elif isinstance(metric, Cost):
                seed = (terms.seed, crc32(f"{task.task}/{name}".encode()))
                found[place][name] = cost_draws.differences(metric, pairs, terms, seed)
            else:
                found[place][name] = _others(task, name, metric, pairs, terms)
    for (place, name), differences in zip(counted, binary_differences(tables, terms), strict=True):
        found[place][name] = differences
    return found


def pair_counts(metric: Means, counts: Floats, pairs: Pairs) -> PairCounts:
    """Differences of a metric of right and wrong."""
    a, b = sides(pairs)
    alone = (metric.sums * counts[:, None]).T @ (1 - metric.sums)
    return np.full(len(a), counts.sum()), alone[a, b], alone[b, a]


def limit_of(metric: Metric) -> float:
    """The largest possible difference."""
    if isinstance(metric, Confusion | ClusteredConfusion):
        return 2.0 if metric.name == metric_values.MATTHEWS else 1.0
    return 2.0 if isinstance(metric, Correlation) else 1.0


def _others(task: TaskRows, name: str, metric: ScoreMetric, pairs: Pairs, terms: Terms) -> list[Difference]:
    parts = [part_of([metric], task.counts, pairs)]
    known = spread(parts)
    seed = (terms.seed, crc32(f"{task.task}/{name}".encode()))
    words = "clustered permutation" if task.clustered else "permutation"
    found = moments.tested(parts, words, terms, seed)
    if known is None or not isinstance(metric, Confusion):
        return moments.with_spread(found, known, terms, limit_of(metric))
    known = known.replaced(posterior_stderrs(metric, task.counts, pairs, terms.draws(len(pairs)), seed))
    found = moments.with_spread(found, known, terms, limit_of(metric))
    ranges = difference_ranges(metric, task.counts, pairs, normal_quantile(1 - terms.alpha / 2))
    return [
        each if each.value is None else replace(each, low=min(low, each.value), high=max(high, each.value))
        for each, (low, high) in zip(found, ranges, strict=True)
    ]


def binary_differences(tables: Sequence[PairCounts], terms: Terms) -> list[list[Difference]]:
    """Exact McNemar tests with score intervals."""
    if not tables:
        return []
    n, only_a, only_b = np.stack(tables, axis=1)
    items = np.maximum(n, 1)
    columns = (
        n,
        (only_a - only_b) / items,
        binary.standard_error(items, only_a, only_b),
        *binary.score_interval(items, only_a, only_b, terms.alpha),
        binary.mcnemar(only_a, only_b),
        only_a,
        only_b,
        binary.smallest_difference(items, only_a, only_b, terms.alpha),
        binary.equivalence_p(items, only_a, only_b, terms.margin),
    )
    return [
        [_binary_difference(*numbers) for numbers in zip(*row, strict=True)]
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _binary_difference(
    n: float,
    value: float,
    stderr: float,
    low: float,
    high: float,
    p: float,
    only_a: float,
    only_b: float,
    smallest: float,
    equivalence_p: float,
) -> Difference:
    if not n:
        return Difference(None, 0, undefined_reason="no items")
    right = (round(only_a), round(only_b))
    return Difference(
        value, round(n), stderr, low, high, p, MCNEMAR, *right, smallest=smallest, equivalence_p=equivalence_p
    )
