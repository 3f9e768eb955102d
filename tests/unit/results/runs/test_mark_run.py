"""Who may mark a run, and what is kept of it."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from tests.unit.results.builders import event, job, plan
from tests.unit.results.runs.marked import INVALIDATED, NOW, SUPERSEDED, VALID, current, mark, three_runs, user
from touchstone.v1 import results_service_pb2 as pb


def test_a_reason_that_is_a_sentence_ends_once(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third", INVALIDATED, "The prompt was wrong.")
    result = job_reads.get_job_result(connection, "third")
    assert result.not_ranked_reason == "the run was invalidated: The prompt was wrong"
    assert result.mark_reason == "The prompt was wrong."


def test_every_mark_is_kept_with_who_gave_it_and_when(connection: Connection) -> None:
    three_runs(connection)
    mark(connection, "third", caller=user("ann"))
    mark(connection, "third", VALID, "it was right after all")
    kept = connection.execute("SELECT job_id, mark, reason, actor, marked_at FROM marks ORDER BY number").fetchall()
    assert kept == [
        ("third", INVALIDATED, "the prompt was wrong", "ann", NOW),
        ("third", VALID, "it was right after all", "local", NOW),
    ]


def test_marks_need_a_reason_a_finished_run_and_a_right_to_it(connection: Connection) -> None:
    three_runs(connection)
    writes.store_events(connection, [event("000009", job("live", plan("t", 4)))])
    with pytest.raises(PermissionDeniedError):
        mark(connection, "third", caller=user("bob"))
    with pytest.raises(NotFoundError):
        mark(connection, "nobody")
    with pytest.raises(ConflictError):
        mark(connection, "live")
    bad: list[tuple[pb.RunMark, str, str]] = [
        (INVALIDATED, " ", ""),
        (INVALIDATED, "x" * 501, ""),
        (INVALIDATED, "why", "second"),
        (SUPERSEDED, "why", ""),
        (SUPERSEDED, "why", "third"),
        (SUPERSEDED, "why", "nobody"),
        (SUPERSEDED, "why", "live"),
        (pb.RUN_MARK_UNSPECIFIED, "why", ""),
    ]
    for how, reason, by in bad:
        with pytest.raises(InvalidRequestError):
            mark(connection, "third", how, reason, by)
    assert current(connection) == [("third", "second", 3)]
