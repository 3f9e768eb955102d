"""What several runs score on each item that all of them have asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from services.results.comparison.selection.runs import Run
from services.results.items.scores import score_of
from services.results.scores import metric_kinds, task_counts
from services.results.scores.suite_score import grouped
from services.results.statistics.metric_values import Floats, Ints
from services.results.storage.database import Connection, query
from services.words.suites import TASKS
from touchstone.v1 import job_pb2
from touchstone.v1.suite_pb2 import MetricSpec, Weighting


@dataclass(frozen=True)
class TaskScores:
    """`scores` (runs, repeats, items) within [0, 1], of items with a score in every asking, by the metric `spec`. Items
    that share a passage have one number in `clusters` (items,). The first run has scores of `of_first` items."""

    plan: job_pb2.TaskPlan
    spec: MetricSpec
    scores: Floats
    clusters: Ints
    of_first: int

    @property
    def items(self) -> int:
        return int(self.scores.shape[2])

    @cached_property
    def weights(self) -> Floats:
        return np.full(self.items, 1 / self.items)


@dataclass(frozen=True)
class Scores:
    """Tasks without scores of single items, or without an item, are not among the `tasks`. With the `weighting` TASKS
    each counts the same, else each item does."""

    tasks: Sequence[TaskScores]
    weighting: Weighting

    @cached_property
    def scores(self) -> Floats:
        """Of all tasks."""
        return np.concatenate([task.scores for task in self.tasks], axis=2)

    @cached_property
    def clusters(self) -> Ints:
        """Of these items."""
        first, found = 0, []
        for task in self.tasks:
            numbers, places = np.unique(task.clusters, return_inverse=True)
            found.append(places + first)
            first += len(numbers)
        return np.concatenate(found)

    @cached_property
    def weights(self) -> Floats:
        """What each of these items counts in the score."""
        if self.weighting != TASKS:
            total = sum(task.items for task in self.tasks)
            return np.full(total, 1 / total)
        groups = grouped([task.plan for task in self.tasks])
        share = {plan.task: 1 / len(groups) / len(members) for members in groups.values() for plan in members}
        return np.concatenate([share[task.plan.task] * task.weights for task in self.tasks])


def takes(run: Run) -> bool:
    """Whether its answers may be those of another run."""
    return bool(run.job.spec.reuse.job_id) or run.job.spec.reuse.any_job


def read(
    connection: Connection,
    runs: Sequence[Run],
    plans: Sequence[job_pb2.TaskPlan],
    weighting: Weighting,
    *,
    copies: bool = False,
) -> Scores:
    """Of runs that are comparable on these tasks, on what this connection has of their items. Answers that a run took
    from another one were not asked again, and count only with `copies`."""
    specs = [metric_kinds.of_single_items(plan) for plan in plans]
    tasks = [(plan, spec) for plan, spec in zip(plans, specs, strict=True) if spec is not None]
    if not tasks:
        return Scores([], weighting)
    score = score_of(job_pb2.TaskPlan(task=plan.task, metrics=[spec]) for plan, spec in tasks)
    found = connection.execute(
        query("comparison/asked_again").format(score=score.sql),
        score.parameters
        | {
            "jobs": [run.job_id for run in runs],
            "runs": list(range(len(runs))),
            "takes": [takes(run) and not copies for run in runs],
            "tasks": [plan.task for plan, _ in tasks],
            "places": list(range(len(tasks))),
        },
    ).fetchnumpy()
    columns = {name: np.asarray(found[name]) for name in ("run", "task", "item", "repeat", "cluster")}
    values = np.clip(np.ma.filled(found["score"].astype(float), np.nan), 0.0, 1.0)
    read_tasks = []
    for place, (plan, spec) in enumerate(tasks):
        own = columns["task"] == place
        items, at = np.unique(columns["item"][own], return_inverse=True)
        scores = np.full((len(runs), task_counts.repeats_of(plan), len(items)), np.nan)
        scores[columns["run"][own], columns["repeat"][own], at] = values[own]
        clusters = items.copy()
        np.minimum.at(clusters, at, columns["cluster"][own])
        missing = np.isnan(scores).any(axis=1)
        kept = ~missing.any(axis=0)
        if kept.any():
            read_tasks.append(TaskScores(plan, spec, scores[:, :, kept], clusters[kept], int((~missing[0]).sum())))
    return Scores(read_tasks, weighting)
