"""The files that a batch has, by what became of its requests."""

from __future__ import annotations

import pytest

from services.gateway.openai import objects
from touchstone.v1 import job_pb2

COMPLETED, FAILED = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED
CANCELLED, RUNNING = job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_RUNNING


@pytest.mark.parametrize(
    ("state", "total", "done", "failed", "kinds"),
    [
        (RUNNING, 10, 5, 1, []),
        (COMPLETED, 10, 10, 0, ["output"]),
        (COMPLETED, 10, 10, 1, ["output", "error"]),
        (CANCELLED, 10, 5, 0, ["output", "error"]),
        (CANCELLED, 10, 10, 0, ["output"]),
        (CANCELLED, 0, 0, 0, ["error"]),
        (FAILED, 10, 3, 3, ["error"]),
    ],
)
def test_a_finished_batch_has_files_of_what_answered_failed_or_was_not_run(
    state: job_pb2.Job.State, total: int, done: int, failed: int, kinds: list[str]
) -> None:
    progress = job_pb2.Progress(items_total=total, items_done=done, items_failed=failed)
    assert objects.made_kinds(job_pb2.Job(state=state, progress=progress)) == kinds
