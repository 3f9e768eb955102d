"""Jobs of planned tasks."""

from __future__ import annotations

from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import answer, batch, job, known, plan
from touchstone.v1 import job_pb2, metric_pb2


def planned(
    task: str, items: int = 4, *metrics: str, category: str = "", beside: bool = False, title: str = "", group: str = ""
) -> job_pb2.TaskPlan:
    made = plan(task, items, *metrics, group=group)
    made.category, made.beside, made.title = category, beside, title or task
    return made


def measured(connection: Connection, right: dict[str, int], *plans: job_pb2.TaskPlan) -> metric_pb2.JobResult:
    """Each task's first items are right, the others wrong."""
    known(connection, *plans)
    for task in plans:
        results = [answer(i, "yes" if i < right[task.task] else "no") for i in range(task.items)]
        writes.store_items(connection, [batch("j", task.task, results)])
    return job_result.compute(connection, job("j", *plans), seal=True).result


def figures(result: metric_pb2.JobResult) -> dict[tuple[str, str, str], tuple[float, int]]:
    return {(a.category, a.metric.metric, a.rule): (round(a.metric.mean, 9), a.tasks) for a in result.averages}
