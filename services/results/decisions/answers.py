"""The pairs of answers that a decision rests on: of its order's first items, up to one that a job has yet to answer.

So pairs come in the order of the items, whichever model answers first, and a pair that is there stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from services import decision_order
from services.results.scores import metric_kinds
from services.results.sequential.draws import Pair
from services.results.statistics.metric_values import Floats, Ints
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from touchstone.v1 import job_pb2, suite_pb2

_WAITS, _FAILED, _UNSCORED, _SCORED = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Answers:
    """`pairs` have the baseline's score first; `strata` counts the items of tasks, where all tasks count the same.
    `total` is how many pairs there can be, `failed` how many items before the last pair a job has not answered after
    all retries. `ended`: no more pairs will come."""

    pairs: Sequence[Pair]
    strata: Mapping[str, int]
    total: int
    failed: int
    ended: bool


def read(connection: Connection, baseline: job_pb2.Job, candidate: job_pb2.Job) -> Answers:
    """Both jobs have a plan of the same tasks."""
    archived_items.require(connection, baseline.job_id, candidate.job_id)
    plan = baseline.plan
    statistics = [statistic_of(task) for task in plan]
    sizes = [task.items for task in plan]
    starts = [0, *accumulate(sizes)]
    order = np.array(
        [starts[task] + position for task, position in decision_order.order(plan, baseline.spec.deciding.seed)],
        dtype=np.int64,
    )
    states, scores = zip(*(_answers(connection, job, statistics, starts) for job in (baseline, candidate)), strict=True)
    both = np.minimum(*states)[order]
    waiting = np.flatnonzero(both == _WAITS)
    reached = int(waiting[0]) if len(waiting) else len(order)
    there = order[:reached][both[:reached] == _SCORED]
    tasks = np.repeat(np.arange(len(plan)), sizes)
    counts = [size if name is not None else 0 for size, name in zip(sizes, statistics, strict=True)]
    averaged = any(task.weighting == suite_pb2.WEIGHTING_TASKS for task in plan)
    strata = {task.task: count for task, count in zip(plan, counts, strict=True) if count} if averaged else {}
    names = [task.task if task.task in strata else "" for task in plan]
    first, second = (one[there].tolist() for one in scores)
    return Answers(
        pairs=[Pair(a, b, names[task]) for a, b, task in zip(first, second, tasks[there].tolist(), strict=True)],
        strata=strata,
        total=sum(counts),
        failed=int((both[:reached] == _FAILED).sum()),
        ended=reached == len(order),
    )


def _answers(
    connection: Connection, job: job_pb2.Job, statistics: Sequence[str | None], starts: Sequence[int]
) -> tuple[Ints, Floats]:
    """Of each item, in plan order, what became of it and its score."""
    states = np.full(starts[-1], _WAITS, dtype=np.int64)
    scores = np.zeros(starts[-1])
    found = _stored(connection, job, statistics)
    at = np.asarray(starts)[np.asarray(found["place"])] + np.asarray(found["position"])
    score = np.ma.filled(found["score"].astype(float), np.nan)
    answered = np.asarray(found["answered"], dtype=bool)
    states[at] = np.where(answered, np.where(np.isnan(score), _UNSCORED, _SCORED), _FAILED)
    scores[at] = np.clip(np.nan_to_num(score), 0.0, 1.0)
    for task, name in enumerate(statistics):
        if name is None:
            one = slice(starts[task], starts[task + 1])
            states[one] = np.where(states[one] == _SCORED, _UNSCORED, states[one])
    return states, scores


def _stored(connection: Connection, job: job_pb2.Job, statistics: Sequence[str | None]) -> Mapping[str, Any]:
    """Of each stored item, its task's place in the plan, its position, whether the first attempt has answered it, and
    its score."""
    found: Mapping[str, Any] = connection.execute(
        query("decisions/answers"),
        {
            "job_id": job.job_id,
            "tasks": [task.task for task in job.plan],
            "places": list(range(len(job.plan))),
            "statistics": [name or "" for name in statistics],
        },
    ).fetchnumpy()
    return found


def statistic_of(task: job_pb2.TaskPlan) -> str | None:
    """The statistic of an item that a decision compares, '' for right answers. None for tasks without scores of single
    items."""
    found = metric_kinds.of_single_items(task)
    return None if found is None else found.statistic
