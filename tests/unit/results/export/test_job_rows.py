"""Exported jobs."""

from __future__ import annotations

from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import event, job, plan
from tests.unit.results.export.files import full, rows
from touchstone.v1 import metric_pb2
from touchstone.v1.results_service_pb2 import ExportRequest as Ask


def test_a_job_has_one_row_with_its_averages(connection: Connection) -> None:
    full(connection)
    writes.store_events(connection, [event("0010", job("running", plan("t", 3), minute=1))])
    running, done = rows(connection, Ask(kind=Ask.KIND_JOBS))
    result = job_reads.get_job_result(connection, "j")
    assert (done["job_id"], done["status"], done["sealed"]) == ("j", "completed", True)
    assert (done["score"], done["score_stderr"]) == (result.suite_score.mean, result.suite_score.stderr)
    assert done["averages"]["accuracy"]["tasks"] == 2
    assert (done["items"], done["answered"], done["unparsed"]) == (53, 63, 1)
    assert done["created_at"] == "2026-11-20T08:00:00.000Z"
    assert (running["status"], running["sealed"], running["score"], running["averages"]) == ("running", False, None, {})


def test_more_jobs_than_are_read_at_once_come_whole(connection: Connection) -> None:
    made = [event(f"{i:04d}", job(f"job {i:03d}", plan("t", 1), minute=i)) for i in range(120)]
    connection.begin()
    writes.store_events(connection, made)
    connection.commit()
    found = rows(connection, Ask(kind=Ask.KIND_JOBS))
    assert [row["job_id"] for row in found] == [f"job {i:03d}" for i in reversed(range(120))]


def test_a_marked_run_says_so(connection: Connection) -> None:
    full(connection)
    connection.execute("INSERT INTO marks VALUES (1, 'j', 2, 'wrong prompt', '', 'ann', now()::TIMESTAMP)")
    (row,) = rows(connection, Ask(kind=Ask.KIND_JOBS))
    assert (row["mark"], row["mark_reason"]) == ("invalidated", "wrong prompt")
    result = job_reads.get_job_result(connection, "j")
    assert isinstance(result, metric_pb2.JobResult)
    assert row["not_ranked_reason"] == result.not_ranked_reason
