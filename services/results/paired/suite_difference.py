"""Averages over tasks, for all pairs of models: tasks are independent, the items within them paired. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from services.results.paired import moments
from services.results.paired.exchange import Part, part_of
from services.results.paired.moments import spread
from services.results.paired.pairs.contributions import ScoreMetric, units_of
from services.results.paired.pairs.difference import Difference, Pairs, Terms
from services.results.paired.pairs.rows import Cost, Means, TaskRows, is_binary
from services.results.paired.task_differences import binary_differences, limit_of, pair_counts, task_differences

Groups = Sequence[Sequence[TaskRows]]
"""Tasks by what counts as one: one task, or several (MNLI matched and mismatched)."""


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
