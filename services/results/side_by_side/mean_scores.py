"""What each job scores over the matched rows that all have with a final outcome, by the statistics of metrics."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from services.results import scores, task_reads
from services.results.database import Connection, query
from services.results.scores import Lost
from services.results.statistics import Estimate
from touchstone.v1 import job_pb2


def mean_scores(connection: Connection, rows: pa.Table, jobs: Sequence[job_pb2.Job]) -> list[Estimate]:
    """In the order of the jobs. On all rows of one task it is the estimate of that task's first metric."""
    connection.register("matched", rows)
    found = [_mean_score(connection, number, job) for number, job in enumerate(jobs)]
    connection.unregister("matched")
    return found


def _mean_score(connection: Connection, number: int, job: job_pb2.Job) -> Estimate:
    passage = f"passage_{number}"
    grouped = connection.execute(f"SELECT DISTINCT task FROM matched WHERE {passage} <> ''").fetchall()
    clustered = {task for (task,) in grouped} | {plan.task for plan in job.plan if task_reads.repeats_of(plan) > 1}
    units = query("side_units").format(passage=passage, score=f"score_{number}")
    asked = connection.execute(f"WITH units AS ({units}) {query('scores')}", {"by_cluster": sorted(clustered)})
    parts = [(one, Lost(), task in clustered) for task, one in task_reads.scores_by_task(asked.fetchnumpy()).items()]
    if len(parts) == 1:
        ((one, lost, is_clustered),) = parts
        return scores.estimate(one, lost, clustered=is_clustered)
    return scores.pooled(parts)
