"""Averages over tasks, for all pairs of models: tasks are independent, the items within them paired. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from services.results.paired import combined
from services.results.paired.contributions import ScoreMetric
from services.results.paired.difference import Difference, Pairs, Terms
from services.results.paired.exchange import Part, part_of
from services.results.paired.moments import spread
from services.results.paired.rows import Cost, Means, TaskRows, is_binary
from services.results.paired.task_differences import binary_differences, limit_of, pair_counts, task_differences

Groups = Sequence[Sequence[TaskRows]]
"""Tasks by what counts once: one task, or several (MNLI matched and mismatched)."""


def suite_differences(groups: Groups, pairs: Pairs, terms: Terms, metric: str = "") -> list[Difference]:
    """Of the mean over groups of the mean over a group's tasks of the mean of a task's metrics.

    `metric` restricts it to one metric and to the tasks that have it. An undefined value counts as 0; without items in
    every task the differences are undefined. Raises ValueError for a task without a metric that counts.
    """
    tasks, weights = chosen_tasks(groups, metric)
    if len(tasks) == 1 and len(names := tasks[0].names(metric)) == 1:
        alone = replace(tasks[0], metrics={names[0]: tasks[0].metrics[names[0]]})
        return task_differences([alone], pairs, terms)[0][names[0]]
    metrics = [counted(task, metric) for task in tasks]
    parts = [
        part_of(found, task.counts, pairs, weight) for found, task, weight in zip(metrics, tasks, weights, strict=True)
    ]
    limit = sum(
        part.weight * float(np.mean([*map(limit_of, found)])) for part, found in zip(parts, metrics, strict=True)
    )
    return _combined(parts, "stratified permutation", terms, limit, len(pairs), metric)


def pooled_differences(
    tasks: Sequence[TaskRows], pairs: Pairs, terms: Terms, metric: str = "accuracy"
) -> list[Difference]:
    """Of a mean over the units of all tasks together; every task has the metric."""
    means = [each for task in tasks for each in counted(task, metric) if isinstance(each, Means)]
    counts = [task.counts for task in tasks]
    if means and all(map(is_binary, means)):
        n, only_a, only_b = np.sum([pair_counts(m, c, pairs) for m, c in zip(means, counts, strict=True)], axis=0)
        return binary_differences([(n, only_a, only_b)], terms)[0]
    units = [float(each.sizes @ count) for each, count in zip(means, counts, strict=True)]
    parts = [
        part_of([each], count, pairs, own / sum(units))
        for each, count, own in zip(means, counts, units, strict=True)
        if own
    ]
    return _combined(parts, "clustered permutation", terms, 1.0, len(pairs), metric)


def chosen_tasks(groups: Groups, metric: str) -> tuple[list[TaskRows], list[float]]:
    """The tasks of an average, and what each counts in it."""
    having = [[task for task in group if not metric or metric in task.metrics] for group in groups]
    having = [group for group in having if group]
    weights = [1 / len(having) / len(group) for group in having for _ in group]
    return [task for group in having for task in group], weights


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
    found = combined.tested(parts, test, terms, (terms.seed, crc32(metric.encode())))
    return combined.with_spread(found, spread(parts), terms, limit)
