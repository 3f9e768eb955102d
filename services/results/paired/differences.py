"""Differences of all pairs of models on the same items: by task, over tasks, in latency and cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from services.results.paired import binary, moments
from services.results.paired.confusion_differences import difference_ranges, posterior_stderrs
from services.results.paired.exchange import Part, part_of
from services.results.paired.moments import POWER, spread
from services.results.paired.pairs.contributions import ScoreMetric, sides, units_of
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
Groups = Sequence[Sequence[TaskRows]]
"""Tasks by what counts as one: one task, or several (MNLI matched and mismatched)."""
_CHUNK = 2_000_000
"""Numbers in memory at a time, in each of a few arrays."""
_DRAWS = 20_000_000
"""Items drawn at most in all; larger tasks get fewer resamples, at least `_FEWEST`."""
_FEWEST = 500
_QUANTILES = {"p50": 0.5, "p95": 0.95}


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
                found[place][name] = cost_differences(metric, pairs, terms, seed)
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


def suite_differences(
    groups: Groups, pairs: Pairs, terms: Terms, metric: str = "", *, by_items: bool = False
) -> list[Difference]:
    """Differences of the mean over groups of the mean over a group's tasks of the mean of a task's metrics; `by_items`:
    of the mean over all tasks, each weighted by its items.

    `metric` restricts it to one metric and to the tasks that have it. An undefined value counts as 0; without items in
    every task the differences are undefined. Raises ValueError for a task without a metric that counts.
    """
    tasks, weights = chosen_tasks(groups, metric, by_items=by_items)
    if len(tasks) == 1 and len(names := tasks[0].names(metric)) == 1:
        alone = replace(tasks[0], metrics={names[0]: tasks[0].metrics[names[0]]})
        return task_differences([alone], pairs, terms)[0][names[0]]
    metrics = [counted(task, metric) for task in tasks]
    if by_items and (right := right_or_wrong(metrics)) and all(task.counts.sum() for task in tasks):
        counts = [pair_counts(each, task.counts, pairs) for each, task in zip(right, tasks, strict=True)]
        n, only_a, only_b = np.sum(counts, axis=0)
        return binary_differences([(n, only_a, only_b)], terms)[0]
    parts = [
        part_of(found, task.counts, pairs, weight) for found, task, weight in zip(metrics, tasks, weights, strict=True)
    ]
    limit = sum(
        part.weight * float(np.mean([*map(limit_of, found)])) for part, found in zip(parts, metrics, strict=True)
    )
    return _combined(parts, "stratified permutation", terms, limit, len(pairs), metric)


def chosen_tasks(groups: Groups, metric: str, *, by_items: bool = False) -> tuple[list[TaskRows], list[float]]:
    """The tasks of an average, and the weight of each."""
    having = [[task for task in group if not metric or metric in task.metrics] for group in groups]
    having = [group for group in having if group]
    tasks = [task for group in having for task in group]
    weights = [1 / len(having) / len(group) for group in having for _ in group]
    if by_items:
        units = [units_of(counted(task, metric)[0], task.counts) for task in tasks]
        weights = [each / max(sum(units), 1.0) for each in units]
    return tasks, weights


def right_or_wrong(metrics: Sequence[Sequence[ScoreMetric]]) -> list[Means]:
    """One metric per task, if the mean over the items of all tasks is a share of right ones; else empty."""
    found = [each for of_task in metrics for each in of_task if isinstance(each, Means) and is_binary(each)]
    return found if len(found) == len(metrics) == sum(map(len, metrics)) else []


def counted(task: TaskRows, metric: str) -> list[ScoreMetric]:
    """The metrics of a task that an average takes. Raises ValueError without any."""
    found = [each for name in task.names(metric) if not isinstance(each := task.metrics[name], Cost)]
    if not found:
        raise ValueError(f"{task.task} has no metric that counts")
    return found


def _combined(
    parts: Sequence[Part], test: str, terms: Terms, limit: float, pairs: int, metric: str
) -> list[Difference]:
    if not parts or not all(part.added.n for part in parts):
        return [Difference(None, 0, undefined_reason="no items")] * pairs
    found = moments.tested(parts, test, terms, (terms.seed, crc32(metric.encode())))
    return moments.with_spread(found, spread(parts), terms, limit)


def cost_differences(cost: Cost, pairs: Pairs, terms: Terms, seed: Sequence[int]) -> list[Difference]:
    """Logs of the ratios A / B. A margin says nothing about them."""
    n = len(cost.values)
    if n < 2:
        return [Difference(None, n, undefined_reason="fewer than two items")] * len(pairs)
    logs, drawn = log_statistics(cost), log_draws(cost, terms.resamples, np.random.default_rng(seed))
    power = normal_quantile(1 - terms.alpha / 2) + normal_quantile(POWER)
    return [_difference(logs[a] - logs[b], drawn[:, a] - drawn[:, b], n, terms.alpha, power) for a, b in pairs]


def _difference(value: float, drawn: Floats, n: int, alpha: float, power: float) -> Difference:
    drawn, error = np.sort(drawn), float(np.std(drawn))
    # Draws without interpolation, so that exchanging the models negates the ends exactly.
    cut = int(alpha / 2 * len(drawn))
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(
        value=float(value),
        n=n,
        stderr=error,
        low=float(drawn[cut]),
        high=float(drawn[-1 - cut]),
        p=min(1.0, 2 * (beyond + 1) / (len(drawn) + 1)),
        test="paired bootstrap of the log ratio",
        smallest=power * error,
    )


def log_statistics(cost: Cost) -> Floats:
    """Log of each model's mean or quantile, (models,)."""
    logs: Floats = np.log(_statistic(cost, np.ones((1, len(cost.values)))))[0]
    return logs


def log_draws(cost: Cost, resamples: int, rng: np.random.Generator) -> Floats:
    """The same of resampled items, (resamples, models): every model on the same ones."""
    n = len(cost.values)
    left = min(resamples, max(_FEWEST, _DRAWS // n))
    step, draws = max(1, _CHUNK // n), []
    while left > 0:
        size = min(step, left)
        picks = rng.integers(0, n, (size, n)) + np.arange(size)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(float)
        draws.append(np.log(_statistic(cost, counts)))
        left -= size
    return np.concatenate(draws)


def _statistic(cost: Cost, counts: Floats) -> Floats:
    """(resamples, models) of items that occur `counts` (resamples, rows) times. The quantile q of n numbers is between
    the positions around q (n − 1), as in numpy."""
    if cost.statistic not in _QUANTILES:
        mean: Floats = counts @ cost.values / counts.sum(axis=1, keepdims=True)
        return mean
    n = len(cost.values)
    place = _QUANTILES[cost.statistic] * (n - 1)
    found = np.empty((len(counts), cost.values.shape[1]))
    for model, column in enumerate(cost.values.T):
        order = np.argsort(column, kind="stable")
        before = np.cumsum(counts[:, order], axis=1)
        below, above = (column[order][(before > target).argmax(axis=1)] for target in (np.floor(place), np.ceil(place)))
        found[:, model] = below + (place % 1) * (above - below)
    return found
