"""Which task of a job an item belongs to."""

from __future__ import annotations

from touchstone_client.client import Client
from touchstone_client.errors import InvalidError


def task_of(client: Client, job_id: str, task: str) -> str:
    """The given task, else the job's only one. Raises InvalidError if it has several."""
    if task:
        return task
    names = [plan.task for plan in client.job(job_id).plan]
    if len(names) == 1:
        return names[0]
    raise InvalidError.of(f"--task is required: job {job_id} has {', '.join(names) or 'no tasks yet'}.")
