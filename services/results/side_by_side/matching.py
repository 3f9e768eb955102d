"""Rows of several jobs matched with each other: whether the answers to a row are the same, and what each job scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from services.results.items.filters import condition
from services.results.items.scores import Score, score_of
from services.results.runs import job_reads
from services.results.scores import aggregation, metric_kinds, suite_score, task_counts
from services.results.scores.task_counts import Counts
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import CALLS_BY_VALUE
from services.words import scorers, suites
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.results_service_pb2 import ListSideBySideRequest, StoredItem

_RESAMPLES = 2_000
"""As for intervals of comparisons on common items."""


@dataclass(frozen=True, slots=True)
class Total:
    """A job's score on some rows, without a mean where nothing is scored, and the metrics of its further scorers."""

    score: metric_pb2.Metric
    further: Sequence[metric_pb2.Metric]


def scores_in_common(connection: Connection, rows: pa.Table, jobs: Sequence[job_pb2.Job]) -> list[Total]:
    """In the order of the jobs. For rows of some tasks it is the score of a suite of those tasks."""
    jobs = [suites.complete(job) for job in jobs]
    places = ", ".join(f"place_{number}" for number in range(len(jobs)))
    connection.register("matched", rows)
    connection.execute(query("side_by_side/common").format(places=places), {"jobs": [job.job_id for job in jobs]})
    connection.unregister("matched")
    counted = [task_counts.read_counts(connection, job) for job in jobs]
    found = [_computed(connection, job, counts) for job, counts in zip(jobs, counted, strict=True)]
    connection.execute("DROP TABLE temp.items")
    return [
        Total(_sealed(connection, job, counts) or computed.score, computed.further)
        for job, counts, computed in zip(jobs, counted, found, strict=True)
    ]


def _computed(connection: Connection, job: job_pb2.Job, counts: dict[str, Counts]) -> Total:
    plans = _scored(job, counts)
    if all(plan.beside for plan in plans):
        plans = [_alone(plan) for plan in plans]
    chosen = job_pb2.Job(job_id=job.job_id, plan=plans)
    data = task_counts.read_data(connection, chosen, counts, ended=False)
    measured = {plan.task: aggregation.measure(data[plan.task], plan.metrics, _RESAMPLES) for plan in plans}
    averages = {metric.metric: metric for metric, _ in suite_score.averages_by_metric(plans, measured)}
    began = tuple(scorers.prefixes(job.spec.dataset.further))
    further = [
        suite_score.metric_message(name, estimate, beside=True)
        for one in measured.values()
        for name, estimate in one.estimates.items()
        if name.startswith(began)
    ]
    return Total(averages.get(suite_score.SCORE, metric_pb2.Metric()), further)


def _scored(job: job_pb2.Job, counts: dict[str, Counts]) -> list[job_pb2.TaskPlan]:
    return [plan for plan in job.plan if plan.task in counts and counts[plan.task].scored.total()]


def _alone(plan: job_pb2.TaskPlan) -> job_pb2.TaskPlan:
    """Tasks outside the suite's score have only their own score."""
    found = job_pb2.TaskPlan()
    found.CopyFrom(plan)
    found.beside = False
    return found


def _sealed(connection: Connection, job: job_pb2.Job, counts: dict[str, Counts]) -> metric_pb2.Metric | None:
    """The score over all of the job's answers, or all of one task; None for others, and before the job is sealed."""
    sealed = job_reads.sealed_result(connection, job.job_id, job.attempt)
    if sealed is None:
        return None
    whole = [plan for plan in job.plan if counts[plan.task].stored == task_counts.planned_answers(plan)]
    if len(whole) == len(job.plan):
        return sealed.result.suite_score if sealed.result.HasField("suite_score") else None
    named = _scored(job, counts)
    if len(named) == 1 and named[0] in whole and len(counting := metric_kinds.counts(named[0].metrics)) == 1:
        (task,) = (task for task in sealed.result.tasks if task.task == named[0].task)
        return next(metric for metric in task.metrics if metric.metric == counting[0].metric)
    return None


_WHITE = ("' '", "chr(10)", "chr(9)", "chr(13)")
_BEGINNING, _COMPARED = 64, 12
"""Characters compared first, and how many without white space distinguish texts."""


@dataclass(frozen=True, slots=True)
class Matched:
    """A row for each row that some job has, with the columns of `rows`: task, item, repeat and name, by which they are
    in order and apart; agree, all_final, right_in and wrong_in, where bit n is the n-th job; fits, for query and
    conditions; and of the n-th job place_n, passage_n, score_n, latency_n, input_n, output_n and cost_n, the place
    being the number of the row in `items`, NULL without one.

    `scores` are what items count, by job, and `totals` what the jobs score; `common` says whether all jobs share some
    row.
    """

    rows: pa.Table
    by_custom_id: bool
    scores: Sequence[Score]
    totals: Sequence[Total]
    common: bool

    def name_of(self, item: StoredItem) -> str:
        return item.result.custom_id if self.by_custom_id else item.result.item_hash


def match(connection: Connection, request: ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> Matched:
    """By custom id where all rows have one that no other has, else by task, item and repeat of the same content.

    Raises InvalidRequestError for bad conditions.
    """
    asked = {"jobs": [job.job_id for job in jobs]}
    keys = connection.execute(query("side_by_side/keys"), asked).fetchall()
    by_custom_id = bool(keys) and all(told for _, told, _ in keys)
    # Responses are long: they are read only where the result depends on them.
    response = f"concat(response, {CALLS_BY_VALUE})" if any(unread for *_, unread in keys) else "''"
    key = "custom_id AS name" if by_custom_id else "item_hash AS name"
    parameters: dict[str, Any] = {"task": request.task}
    scores, parts = [], []
    for number, job in enumerate(jobs):
        score = score_of(job.plan, f"job_{number}")
        fits = condition(request.query, request.conditions, score, f"job_id = $job_{number}")
        text = query("side_by_side/items").format(
            key=key, score=score.sql, response=response, condition=fits.sql, job=f"job_{number}"
        )
        parts.append(f"r{number} AS ({text})")
        parameters |= {f"job_{number}": job.job_id} | score.parameters | fits.parameters
        scores.append(score)
    numbers = range(len(jobs))
    using = "name" if by_custom_id else "task, item, repeat, name"
    joined = "r0 " + " ".join(f"FULL JOIN r{number} USING ({using})" for number in numbers[1:])
    columns = [
        *(f"coalesce({_each('{r}.' + name, numbers)}) AS {name}" for name in ("task", "item", "repeat", "name")),
        f"coalesce({_each('{r}.final', numbers, ' AND ')}, false) AS all_final",
        f"all_final AND {sql(len(jobs))} AS agree",
        *(
            " + ".join(f"CASE WHEN r{number}.is_{verdict} THEN {1 << number} ELSE 0 END" for number in numbers)
            + f" AS {verdict}_in"
            for verdict in ("right", "wrong")
        ),
        f"coalesce({_each('{r}.fits', numbers, ' OR ')}, false) AS fits",
        *(f"r{n}.{name} AS {column}_{n}" for n in numbers for column, name in _OF_JOB.items()),
    ]
    text = f"WITH {', '.join(parts)} SELECT {', '.join(columns)} FROM {joined}"
    rows = connection.sql(text, params=parameters).to_arrow_table()
    everywhere = reduce(pc.and_, (pc.is_valid(rows[f"place_{number}"]) for number in numbers))
    totals = scores_in_common(connection, rows, jobs)
    return Matched(rows, by_custom_id, scores, totals, bool(pc.any(everywhere).as_py()))


_OF_JOB = {
    "place": "place",
    "passage": "passage",
    "score": "score",
    "latency": "latency_ms",
    "input": "input_tokens",
    "output": "output_tokens",
    "cost": "cost_usd",
}


def _each(text: str, numbers: Sequence[int], between: str = ", ") -> str:
    return between.join(text.format(r=f"r{number}") for number in numbers)


def sql(jobs: int) -> str:
    """True, or false; NULL where a job has no such row."""
    return "(" + " AND ".join(_alike("r0", f"r{number}") for number in range(1, jobs)) + ")"


def _alike(one: str, other: str) -> str:
    beginnings = [_black(f"left({row}.response, {_BEGINNING})") for row in (one, other)]
    parted = (
        f"left({beginnings[0]}, {_COMPARED}) <> left({beginnings[1]}, {_COMPARED}) "
        f"AND length({beginnings[0]}) >= {_COMPARED} AND length({beginnings[1]}) >= {_COMPARED}"
    )
    return (
        f"CASE WHEN {one}.prediction <> {other}.prediction THEN false WHEN {one}.prediction <> '' THEN true "
        f"WHEN {one}.response = {other}.response THEN true WHEN {parted} THEN false "
        f"ELSE {_black(f'{one}.response')} = {_black(f'{other}.response')} END"
    )


def _black(text: str) -> str:
    for white in _WHITE:
        text = f"replace({text}, {white}, '')"
    return text
