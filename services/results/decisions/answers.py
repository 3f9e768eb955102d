"""The pairs of answers that a decision rests on: of its order's first items, up to one that a job has yet to answer.

So pairs come in the order of the items, whichever model answers first, and a pair that is there stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from services import decision_order
from services.results.scores import metric_kinds
from services.results.sequential.draws import ALONE, Draws, Plan, draws_from
from services.results.statistics.metric_values import Floats, Ints
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from touchstone.v1 import job_pb2, suite_pb2

_WAITS, _FAILED, _UNSCORED, _SCORED = 0, 1, 2, 3

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pairs:
    """`seen` pairs of two jobs as draws. `total` is how many there can be. `ended`: there is at least one pair, and no
    more will come.

    `items` (seen,) says after how many items of the order each pair is there; `reached` is how many items both have an
    outcome to. `failures` are the items of the order up to there, from 0, that a job has not answered after all
    retries.
    """

    draws: Draws
    seen: int
    total: int
    ended: bool
    items: Ints
    reached: int
    failures: Ints

    def item(self, pair: int) -> int:
        """After how many items of the order the first `pair` pairs, 1 or more, are there; all of them if no more will
        come."""
        return self.reached if self.ended and pair == self.seen else int(self.items[pair - 1])

    def failed(self, pair: int | None) -> int:
        """Items that a job has not answered, up to the first `pair` pairs; up to all that both have an outcome to for
        None."""
        return int((self.failures < (self.reached if pair is None else self.item(pair))).sum())


class Answers:
    """What the jobs of a decision have answered so far, in its order. Jobs are known by their places."""

    def __init__(self, connection: Connection, jobs: Sequence[job_pb2.Job]) -> None:
        """All jobs with a plan have one of the same tasks, and at least one has a plan."""
        archived_items.require(connection, *(job.job_id for job in jobs))
        plan = next(job.plan for job in jobs if job.plan)
        statistics = [statistic_of(task) for task in plan]
        starts = [0, *accumulate(task.items for task in plan)]
        ordered = decision_order.order(plan, jobs[0].spec.deciding.seed)
        tasks = np.array([task for task, _ in ordered], dtype=np.int64)
        order = np.array([starts[task] + position for task, position in ordered], dtype=np.int64)
        self.items = len(order)
        """Of the order."""
        self._states: list[Ints] = []
        self._scores: list[Floats] = []
        for job in jobs:
            states, scores, again = _answers(connection, job, statistics, starts)
            self._states.append(_of_first_attempt(connection, job, states[order], again[order]))
            self._scores.append(scores[order])
        counts = [task.items if name is not None else 0 for task, name in zip(plan, statistics, strict=True)]
        averaged = any(task.weighting == suite_pb2.WEIGHTING_TASKS for task in plan)
        strata = {task.task: count for task, count in zip(plan, counts, strict=True) if count} if averaged else {}
        names = {name: place for place, name in enumerate(sorted(strata))}
        self._places = np.array([names.get(task.task, 0) for task in plan], dtype=np.int64)[tasks]
        self._clusters, draws, largest = _clusters(plan, strata)
        self._clusters = self._clusters[order]
        self._plan = Plan(sum(counts), strata, draws, largest)

    def reach(self, job: int) -> int:
        """The items of the order before the first one that the job has yet to answer."""
        return _reach(self._states[job])

    def mean(self, job: int, upto: int) -> float | None:
        """The job's mean score over the order's first items; None without one. If tasks have equal weight, the mean
        over tasks."""
        there = self._states[job][:upto] == _SCORED
        scores, places = self._scores[job][:upto][there], self._places[:upto][there]
        means = [float(scores[places == place].mean()) for place in np.unique(places)]
        return sum(means) / len(means) if means else None

    def pairs(self, first: int, second: int) -> Pairs:
        """Of two jobs: the second one's scores minus those of the first."""
        both = np.minimum(self._states[first], self._states[second])
        reached = _reach(both)
        there = np.flatnonzero(both[:reached] == _SCORED)
        seen, total = len(there), self._plan.total
        ended = seen > 0 and (reached == self.items or seen == total)
        draws = draws_from(
            (self._scores[second] - self._scores[first])[there],
            self._places[there],
            self._clusters[there],
            self._plan,
            ended=ended,
        )
        return Pairs(draws, seen, total, ended, there + 1, reached, np.flatnonzero(both[:reached] == _FAILED))


def _clusters(
    plan: Sequence[job_pb2.TaskPlan], strata: Mapping[str, int]
) -> tuple[Ints, dict[str, int], dict[str, int]]:
    """By item in plan order, the number of its cluster; and as in `Plan`, draws and the largest cluster by stratum."""
    numbers, draws, largest, first = [], dict[str, int](), dict[str, int](), 0
    for task in plan:
        known = np.array(task.clusters, dtype=np.int64) if task.clusters else np.arange(task.items)
        sizes = np.bincount(known)
        numbers.append(np.where(sizes[known] > 1, known + first, ALONE))
        first += len(sizes)
        stratum = task.task if task.task in strata else ""
        draws[stratum] = draws.get(stratum, 0) + len(sizes)
        largest[stratum] = max(largest.get(stratum, 1), int(sizes.max(initial=1)))
    return np.concatenate(numbers), draws, largest


def _reach(states: Ints) -> int:
    waiting = np.flatnonzero(states == _WAITS)
    return int(waiting[0]) if len(waiting) else len(states)


def _answers(
    connection: Connection, job: job_pb2.Job, statistics: Sequence[str | None], starts: Sequence[int]
) -> tuple[Ints, Floats, Bools]:
    """Of each item, in plan order, what became of it, its score, and whether a later attempt was asked. Items of later
    attempts have failed."""
    states = np.full(starts[-1], _WAITS, dtype=np.int64)
    scores, again = np.zeros(starts[-1]), np.zeros(starts[-1], dtype=bool)
    found = _stored(connection, job, statistics)
    at = np.asarray(starts)[np.asarray(found["place"])] + np.asarray(found["position"])
    score = np.ma.filled(found["score"].astype(float), np.nan)
    answered = np.asarray(found["answered"], dtype=bool)
    states[at] = np.where(answered, np.where(np.isnan(score), _UNSCORED, _SCORED), _FAILED)
    scores[at] = np.clip(np.nan_to_num(score), 0.0, 1.0)
    again[at] = np.asarray(found["again"], dtype=bool)
    for task, name in enumerate(statistics):
        if name is None:
            one = slice(starts[task], starts[task + 1])
            states[one] = np.where(states[one] == _SCORED, _UNSCORED, states[one])
    return states, scores, again


def _of_first_attempt(connection: Connection, job: job_pb2.Job, states: Ints, again: Bools) -> Ints:
    """The states, in the order of the items, without those that a later attempt was the first to ask. It is known how
    many failed in the first one, but not which: those that come first."""
    if not again.any():
        return states
    left = max(0, _failed_first(connection, job) - int(((states == _FAILED) & ~again).sum()))
    states = states.copy()
    states[np.flatnonzero(again)[left:]] = _WAITS
    return states


def _failed_first(connection: Connection, job: job_pb2.Job) -> int:
    """How many items had failed when the second attempt began."""
    rows = connection.execute(query("decisions/first_retry"), {"job_id": job.job_id}).fetchall()
    return job_pb2.JobEvent.FromString(rows[0][0]).job.progress.items_failed if rows else 0


def _stored(connection: Connection, job: job_pb2.Job, statistics: Sequence[str | None]) -> Mapping[str, Any]:
    """Of each stored item, its task's place in the plan, its position, its score, whether the first attempt has
    answered it, and whether a later one was asked."""
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
