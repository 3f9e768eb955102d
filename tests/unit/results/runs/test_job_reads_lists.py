"""Jobs as lists choose them: filters, order, counts, averages beside them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run, seal
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb


def listed(connection: Connection, visible: Visibility | None = None, **filters: Any) -> list[str]:
    """Ids over all pages of two, which must tell the same total."""
    found: list[str] = []
    totals = set()
    token = ""
    while True:
        request = pb.ResultsServiceListJobsRequest(page_size=2, page_token=token, **filters)
        page = job_reads.list_jobs(connection, request, *([visible] if visible else []))
        found += [job.job_id for job in page.jobs]
        totals.add(page.total_size)
        token = page.next_page_token
        if not token:
            assert totals == {len(found)}
            counted = (page.completed, page.finished)
            assert counted == tuple(sum(STATES[one] in among for one in found) for among in (ENDED[:1], ENDED))
            return found


ENDED = (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)
ROWS = (
    ("a", "GPT-4", "glue", "ann", 1, job_pb2.Job.STATE_COMPLETED),
    ("b", "gpt-4o", "glue", "bob", 1, job_pb2.Job.STATE_FAILED),
    ("c", "100%_gpt", "mmlu", "ann", 2, job_pb2.Job.STATE_RUNNING),
    ("d", "llama", "mmlu", "bob", 2, job_pb2.Job.STATE_COMPLETED),
    # Of one moment: order and pages are kept by the id.
    ("e", "llama", "glue", "ann", 2, job_pb2.Job.STATE_COMPLETED),
)
STATES = {row[0]: row[-1] for row in ROWS}


def some(connection: Connection) -> None:
    for number, (job_id, model, suite, owner, project, state) in enumerate(ROWS):
        made = job(
            job_id, suite=suite, model=model, owner=owner, project_id=project, state=state, minute=min(number, 3)
        )
        made.spec.endpoint = "cloud" if model == "llama" else "local"
        writes.store_events(connection, [event(f"{number:04d}", made)])


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, "edcba"),
        ({"model": "llama"}, "ed"),
        ({"model_query": "GPT"}, "cba"),
        ({"model_query": "0%_"}, "c"),
        ({"model_query": "gpt", "suite": "glue"}, "ba"),
        ({"project_id": 2}, "edc"),
        ({"endpoint": "cloud", "suite": "mmlu"}, "d"),
        ({"project_id": 2, "owner": "ann", "states": [job_pb2.Job.STATE_COMPLETED]}, "e"),
        ({"states": [job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_RUNNING]}, "cb"),
    ],
)
def test_filters_are_joined_and_pages_walk_newest_first(
    connection: Connection, filters: dict[str, Any], found: str
) -> None:
    some(connection)
    assert listed(connection, **filters) == list(found)


def test_a_time_bound_takes_jobs_of_that_very_moment(connection: Connection) -> None:
    some(connection)
    request = pb.ResultsServiceListJobsRequest()
    request.created_after.FromDatetime(START + timedelta(minutes=2))
    page = job_reads.list_jobs(connection, request)
    assert ([job.job_id for job in page.jobs], page.total_size) == (["e", "d", "c"], 3)
    request.created_after.seconds = 1 << 62
    with pytest.raises(InvalidRequestError):
        job_reads.list_jobs(connection, request)


def test_a_user_who_sees_own_jobs_alone_lists_and_counts_them_alone(connection: Connection) -> None:
    some(connection)
    assert listed(connection, Visibility("bob")) == ["d", "b"]
    assert listed(connection, Visibility("bob"), owner="ann") == []


def test_averages_stand_beside_sealed_jobs_only_while_they_are_of_the_present_attempt(connection: Connection) -> None:
    run(connection, job("done", plan("t", 4), minute=1), right=3, wrong=1, minute=1)
    run(connection, job("unread", plan("t", 10), minute=2), right=5, wrong=4, unparsed=1, minute=2)
    writes.store_events(connection, [event("000003", job("live", plan("t", 4), minute=3))])
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    assert [scores.job_id for scores in page.scores] == [job.job_id for job in page.jobs] == ["live", "unread", "done"]
    live, unread, done = page.scores
    assert [(metric.metric, metric.mean, metric.n) for metric in done.averages] == [
        ("score", 0.75, 4),
        ("accuracy", 0.75, 4),
    ]
    assert (len(live.averages), live.not_ranked_reason, done.not_ranked_reason) == (0, "", "")
    assert unread.not_ranked_reason == done.caution == ""
    assert unread.caution == "10.0% of the answers could not be read"
    assert unread.averages[0].answered_mean == pytest.approx(5 / 9)
    again = job("done", plan("t", 4), minute=1, attempt=2)
    writes.store_events(connection, [event("999999-done", again, "retried")])
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    assert [len(scores.averages) for scores in page.scores] == [0, 2, 0]
    assert not job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest()).scores


def test_an_incomplete_run_is_listed_with_its_bounds(connection: Connection) -> None:
    made = job("j", plan("t", 4))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1), answer(2, "no"), answer(3, outcome=ERROR)])])
    seal(connection, made)
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True))
    accuracy = page.scores[0].averages[1]
    assert (accuracy.bound_low, accuracy.bound_high) == (0.5, 0.75)
    assert page.scores[0].not_ranked_reason == "1 item has no answer"


@pytest.mark.parametrize("state", [-1, 99, 300])
def test_a_state_that_is_none_is_refused(connection: Connection, state: int) -> None:
    request = pb.ResultsServiceListJobsRequest(states=[state])  # type: ignore[list-item]
    with pytest.raises(InvalidRequestError, match="is not a valid state"):
        job_reads.list_jobs(connection, request)


def test_events_of_one_batch_are_stored_once_and_the_newest_moves_the_job(connection: Connection) -> None:
    states = (job_pb2.Job.STATE_PENDING, job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_COMPLETED)
    told = [event(f"{9 + n}", job(name, state=state)) for name in "ab" for n, state in enumerate(states)]
    for n, one in enumerate(told):
        one.event_id = f"{9 + n}"
    late, *rest = reversed(told)
    writes.store_events(connection, [late, *rest, late])
    writes.store_events(connection, told[:2])
    stored = connection.execute("SELECT event_id, job_id, event FROM events ORDER BY length(event_id), event_id")
    assert stored.fetchall() == [(one.event_id, one.job.job_id, one.SerializeToString()) for one in told]
    rows = connection.execute("SELECT job_id, event_id, state FROM jobs ORDER BY job_id").fetchall()
    assert rows == [("a", "11", int(states[-1])), ("b", "14", int(states[-1]))]
