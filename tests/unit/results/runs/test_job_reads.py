"""Jobs are read with their results and events."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.results.boards.leaderboard import leaderboard
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, known, plan, run, seal
from tests.unit.results.runs.marked import mark
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb


def test_job_pages_walk_all_jobs_newest_first_even_with_equal_times(connection: Connection) -> None:
    jobs = [job(f"j{n:02d}", minute=n // 4) for n in range(23)]
    writes.store_events(connection, [event(f"{n:04d}", j) for n, j in enumerate(jobs)])
    token, found = "", []
    while True:
        page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(page_size=5, page_token=token))
        found += [j.job_id for j in page.jobs]
        assert page.total_size == 23
        token = page.next_page_token
        if not token:
            break
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 23


def test_job_filters_are_joined_by_and(connection: Connection) -> None:
    jobs = [
        job("a", model="m1", suite="glue", owner="ann", project_id=1, minute=0),
        job("b", model="m2", suite="glue", owner="bob", project_id=2, minute=1),
        job("c", model="m2", suite="demo", owner="ann", project_id=2, minute=2, state=job_pb2.Job.STATE_FAILED),
    ]
    writes.store_events(connection, [event(f"{n:04d}", j) for n, j in enumerate(jobs)])

    def listed(**filters: object) -> str:
        request = pb.ResultsServiceListJobsRequest(**filters)  # type: ignore[arg-type]
        response = job_reads.list_jobs(connection, request)
        assert response.total_size == len(response.jobs)
        return "".join(j.job_id for j in response.jobs)

    assert listed() == "cba"
    assert listed(model="m2") == "cb"
    assert listed(model="m2", suite="glue") == "b"
    assert listed(states=[job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_PENDING]) == "c"
    assert listed(owner="ann", project_id=2) == "c"
    assert listed(created_after=START + timedelta(minutes=1)) == "cb"


def test_event_pages_walk_the_whole_trail_oldest_first(connection: Connection) -> None:
    writes.store_events(connection, [event(f"{n:04d}", job(f"j{n % 3}")) for n in range(11)])
    token, found = "", []
    while True:
        page = job_reads.list_events(connection, pb.ListEventsRequest(page_size=4, page_token=token))
        found += [e.event_id for e in page.events]
        token = page.next_page_token
        if not token:
            break
    assert found == [f"{n:04d}" for n in range(11)]
    one = job_reads.list_events(connection, pb.ListEventsRequest(job_id="j1"))
    assert [e.event_id for e in one.events] == ["0001", "0004", "0007", "0010"]


def test_jobs_are_listed_without_counts_where_nobody_needs_them(connection: Connection) -> None:
    writes.store_events(connection, [event(f"{n:04d}", job(f"j{n}")) for n in range(3)])
    page = job_reads.list_jobs(connection, pb.ResultsServiceListJobsRequest(page_size=2, without_counts=True))
    assert ([one.job_id for one in page.jobs], page.total_size, bool(page.next_page_token)) == (["j2", "j1"], 0, True)


def test_a_running_job_shows_metrics_so_far_and_no_suite_score_before_every_task_has_items(
    connection: Connection,
) -> None:
    known(connection, plan("t", 100), plan("u", 100))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no")])])
    result = job_reads.get_job_result(connection, "j")
    assert not result.sealed
    assert result.tasks[0].metrics[0].mean == 0.5
    assert (result.tasks[0].items, result.tasks[0].items_planned, result.tasks[0].correct) == (2, 100, 1)
    assert (result.tasks[0].metrics[0].bound_low, result.tasks[0].metrics[0].bound_high) == (0.5, 0.5)
    assert result.tasks[1].metrics[0].n == 0
    assert result.accuracy_so_far.mean == 0.5
    assert not result.HasField("suite_score")
    assert result.not_ranked_reason == "the job is not finished"
    writes.store_items(connection, [batch("j", "u", [answer(0)])])
    assert job_reads.get_job_result(connection, "j").suite_score.mean == 0.75


def test_a_failed_job_keeps_its_tasks_metrics_without_a_suite_score(connection: Connection) -> None:
    known(connection, plan("t", 2), plan("u", 2), state=job_pb2.Job.STATE_FAILED)
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1)]), batch("j", "u", [answer(0)])])
    result = job_reads.get_job_result(connection, "j")
    assert [task.metrics[0].mean for task in result.tasks] == [1.0, 1.0]
    assert (result.tasks[1].metrics[0].bound_low, result.tasks[1].metrics[0].bound_high) == (0.5, 1.0)
    assert not result.HasField("suite_score")
    assert result.not_ranked_reason == "the job failed"


def test_a_retried_job_shows_live_metrics_again_until_it_is_sealed_again(connection: Connection) -> None:
    known(connection, plan("t", 2))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, outcome=ERROR)])])
    seal(connection, job("j", plan("t", 2)))
    assert job_reads.get_job_result(connection, "j").sealed
    writes.store_events(connection, [event("0009", job("j", plan("t", 2), attempt=2), "retried")])
    assert not job_reads.get_job_result(connection, "j").sealed


def test_infrastructure_errors_count_as_outcomes_and_in_no_metric(connection: Connection) -> None:
    known(connection, plan("t", 4))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, "no"), answer(2, outcome=ERROR)])])
    result = job_reads.get_job_result(connection, "j")
    assert result.outcomes.infrastructure_error == 1
    assert result.outcomes.answered == 2
    assert result.tasks[0].metrics[0].n == 2
    assert result.tasks[0].majority_share == 1.0


def test_a_sealed_result_is_the_one_that_was_stored(connection: Connection) -> None:
    response = run(connection, job("j", plan("t", 10)), right=7, wrong=3)
    assert job_reads.get_job_result(connection, "j") == response.result
    assert response.result.latency_p50_ms == pytest.approx(14.5)
    assert (response.result.input_tokens, response.result.output_tokens) == (200, 30)


def _around(connection: Connection, job_id: str, visible: Visibility = EVERYTHING) -> tuple[str, str]:
    request = pb.ResultsServiceGetJobRequest(job_id=job_id, with_runs_around=True)
    found = job_reads.answer_job(connection, request, visible)
    assert found.job.job_id == job_id
    return found.previous.job_id, found.following.job_id


def test_the_runs_around_a_job_are_of_its_configuration_however_many_others_lie_between(
    connection: Connection,
) -> None:
    for minute, (name, configuration) in enumerate((("a", "one"), ("x", "other"), ("b", "one"), ("c", "one"))):
        run(connection, job(name, plan("t", 1), configuration=configuration, minute=minute), right=1, minute=minute)
    # Copies, as to store a hundred runs one by one takes ten seconds.
    for table in ("jobs", "seals", "metrics", "run_scores"):
        connection.execute(
            f"INSERT INTO {table} SELECT {table}.* REPLACE (job_id || copy_no AS job_id) "
            f"FROM {table}, range(105) AS r(copy_no) WHERE job_id = 'x'"
        )
    run(connection, job("d", plan("t", 1), configuration="one", suite="mmlu", minute=200), right=1, minute=200)
    assert [_around(connection, name) for name in "abcd"] == [("", "b"), ("a", "c"), ("b", ""), ("", "")]
    assert not job_reads.answer_job(connection, pb.ResultsServiceGetJobRequest(job_id="b")).HasField("previous")


def test_runs_that_were_sealed_in_one_moment_are_in_the_order_of_boards(connection: Connection) -> None:
    for name in "acb":
        run(connection, job(name, plan("t", 1), configuration="one"), right=1)
    (entry,) = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue")).entries
    assert (entry.job_id, entry.previous_job_id) == ("a", "b")
    assert [_around(connection, name) for name in "abc"] == [("b", ""), ("c", "a"), ("", "b")]


def test_a_run_that_is_not_sealed_yet_comes_after_those_that_are(connection: Connection) -> None:
    run(connection, job("a", plan("t", 1), configuration="one"), right=1)
    writes.store_events(connection, [event("0000", job("live", plan("t", 1), configuration="one", minute=-5))])
    assert [_around(connection, name) for name in ("live", "a")] == [("a", ""), ("", "")]


def test_marked_failed_and_hidden_runs_are_passed_over(connection: Connection) -> None:
    for minute, name in enumerate("abcde"):
        owner = "bob" if name == "d" else "ann"
        made = job(name, plan("t", 1), configuration="one", owner=owner, minute=minute)
        run(connection, made, right=1, minute=minute)
    mark(connection, "b")
    failed = job("c", plan("t", 1), configuration="one", minute=2, state=job_pb2.Job.STATE_FAILED)
    writes.store_events(connection, [event("999999-failed", failed, "failed")])
    assert _around(connection, "e") == ("d", "")
    assert _around(connection, "d") == ("a", "e")
    assert _around(connection, "e", Visibility("ann")) == ("a", "")
