"""What each job scores over the matched rows that all have with a final outcome: by the rule of its own score, and as
sealed where they are all its own, so that a score has one value everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from services.results.runs import job_reads
from services.results.scores import aggregation, metric_kinds, suite_score, task_counts
from services.results.scores.task_counts import Counts
from services.results.storage.database import Connection, query
from services.words import weighting
from touchstone.v1 import job_pb2, metric_pb2

_RESAMPLES = 2_000
"""As behind intervals of comparisons on common items."""


def scores(connection: Connection, rows: pa.Table, jobs: Sequence[job_pb2.Job]) -> list[metric_pb2.Metric]:
    """In the order of the jobs; without a mean where nothing is scored. Of rows of some tasks it is the score of a
    suite of those."""
    jobs = [weighting.complete(job) for job in jobs]
    places = ", ".join(f"place_{number}" for number in range(len(jobs)))
    connection.register("matched", rows)
    connection.execute(query("side_by_side/common").format(places=places), {"jobs": [job.job_id for job in jobs]})
    connection.unregister("matched")
    counted = [task_counts.read_counts(connection, job) for job in jobs]
    found = [_computed(connection, job, counts) for job, counts in zip(jobs, counted, strict=True)]
    connection.execute("DROP TABLE temp.items")
    return [
        _sealed(connection, job, counts) or computed for job, counts, computed in zip(jobs, counted, found, strict=True)
    ]


def _computed(connection: Connection, job: job_pb2.Job, counts: dict[str, Counts]) -> metric_pb2.Metric:
    plans = _scored(job, counts)
    if all(plan.beside for plan in plans):
        plans = [_alone(plan) for plan in plans]
    chosen = job_pb2.Job(job_id=job.job_id, plan=plans)
    data = task_counts.read_data(connection, chosen, counts, ended=False)
    measured = {plan.task: aggregation.measure(data[plan.task], plan.metrics, _RESAMPLES) for plan in plans}
    averages = {metric.metric: metric for metric, _ in suite_score.averages_by_metric(plans, measured)}
    return averages.get(suite_score.SCORE, metric_pb2.Metric())


def _scored(job: job_pb2.Job, counts: dict[str, Counts]) -> list[job_pb2.TaskPlan]:
    return [plan for plan in job.plan if plan.task in counts and counts[plan.task].scored.total()]


def _alone(plan: job_pb2.TaskPlan) -> job_pb2.TaskPlan:
    """Of tasks that are beside the suite's score there is no score but their own."""
    found = job_pb2.TaskPlan()
    found.CopyFrom(plan)
    found.beside = False
    return found


def _sealed(connection: Connection, job: job_pb2.Job, counts: dict[str, Counts]) -> metric_pb2.Metric | None:
    """Of all of the job's answers, or of all of one task; None for others, and before it is sealed."""
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
