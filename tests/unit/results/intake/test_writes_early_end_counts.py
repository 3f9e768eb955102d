"""Jobs that failed or were cancelled: their counts are those of their stored items, in whatever order things come."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import ERROR, answer, batch, event, job, plan
from touchstone.v1 import job_pb2, results_service_pb2

CANCELLED, FAILED = job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_FAILED


def ended(state: int, done: int, event_id: str = "2", attempt: int = 1) -> job_pb2.JobEvent:
    """As the scheduler has counted when it ended."""
    made = job("j", plan("a", 10), plan("b", 10), state=state, attempt=attempt)
    made.progress.items_total, made.progress.items_done = 20, done
    made.progress.tasks.add(task="a", items_total=10, items_done=done)
    made.progress.tasks.add(task="b", items_total=10)
    return event(event_id, made)


def counts(connection: Connection) -> tuple[int, int, list[tuple[str, int, int]]]:
    read = job_reads.get_job(connection, "j")
    listed = job_reads.list_jobs(connection, results_service_pb2.ResultsServiceListJobsRequest()).jobs
    assert list(listed) == [read]
    progress = read.progress
    tasks = [(task.task, task.items_done, task.items_failed) for task in progress.tasks]
    return progress.items_done, progress.items_failed, tasks


@pytest.mark.parametrize("state", [CANCELLED, FAILED])
@pytest.mark.parametrize("write", [writes.insert_items, writes.store_items])
def test_items_that_come_after_the_end_are_counted(connection: Connection, state: int, write: object) -> None:
    assert callable(write)
    writes.store_items(connection, [batch("j", "a", [answer(i) for i in range(3)])])
    writes.store_events(connection, [ended(state, 3)])
    assert counts(connection) == (3, 0, [("a", 3, 0), ("b", 0, 0)])
    write(connection, [batch("j", "b", [answer(0), answer(1, outcome=ERROR)])])
    assert counts(connection) == (5, 1, [("a", 3, 0), ("b", 2, 1)])


def test_the_event_of_the_end_may_come_last(connection: Connection) -> None:
    writes.store_items(connection, [batch("j", "a", [answer(i) for i in range(5)])])
    writes.store_events(connection, [ended(CANCELLED, 3)])
    assert counts(connection)[0] == 5


def test_the_trail_keeps_what_was_known_then(connection: Connection) -> None:
    writes.store_events(connection, [ended(CANCELLED, 3)])
    writes.store_items(connection, [batch("j", "a", [answer(i) for i in range(5)])])
    (told,) = job_reads.list_events(connection, results_service_pb2.ListEventsRequest()).events
    assert told.job.progress.items_done == 3
    assert counts(connection)[0] == 5


@pytest.mark.parametrize("state", [job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED])
def test_other_jobs_keep_the_schedulers_counts(connection: Connection, state: int) -> None:
    writes.store_events(connection, [ended(state, 3)])
    writes.store_items(connection, [batch("j", "a", [answer(i) for i in range(5)])])
    assert counts(connection)[0] == 3
