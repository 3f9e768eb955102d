"""What a job that ended early has done: its stored items. Answers that were under way when it was cancelled or failed
arrive after the event of its end, whose counts would otherwise stay wrong."""

from __future__ import annotations

from collections.abc import Iterable

from services.results.storage.database import Connection, first_row
from services.words.jobs import ENDED_EARLY
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR

_COUNTS = (
    f"SELECT task, count(*), count(*) FILTER (outcome = {OUTCOME_INFRASTRUCTURE_ERROR}) FROM items "
    "WHERE job_id = $job_id AND list_contains($tasks::VARCHAR[], task) GROUP BY task"
)


def counted(connection: Connection, job: job_pb2.Job) -> job_pb2.Job:
    """The job with the counts of its stored items where it failed or was cancelled; any other as it is."""
    if job.state not in ENDED_EARLY or not job.plan:
        return job
    tasks = [plan.task for plan in job.plan]
    rows = connection.execute(_COUNTS, {"job_id": job.job_id, "tasks": tasks}).fetchall()
    stored = {task: (items, errors) for task, items, errors in rows}
    corrected = job_pb2.Job()
    corrected.CopyFrom(job)
    progress = corrected.progress
    progress.items_done = sum(items for items, _ in stored.values())
    progress.items_failed = sum(errors for _, errors in stored.values())
    for task in progress.tasks:
        task.items_done, task.items_failed = stored.get(task.task, (0, 0))
    return corrected


def count_late(connection: Connection, job_ids: Iterable[str]) -> None:
    """Corrects the counts of jobs that had ended early before this transaction stored items of theirs."""
    for job_id in job_ids:
        found = first_row(
            connection,
            "SELECT job FROM jobs WHERE job_id = $job_id AND list_contains($states::UTINYINT[], state)",
            {"job_id": job_id, "states": [int(state) for state in ENDED_EARLY]},
        )
        if found is not None:
            job = counted(connection, job_pb2.Job.FromString(found[0])).SerializeToString()
            connection.execute("UPDATE jobs SET job = $job WHERE job_id = $job_id", {"job_id": job_id, "job": job})
