"""Figures over all jobs, and scores over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import overview
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.boards.shown import NOW, series
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run, seal
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb


def figures(connection: Connection, visible: Visibility = EVERYTHING, **filters: Any) -> pb.GetOverviewResponse:
    return overview(connection, pb.GetOverviewRequest(**filters), NOW, visible)


def test_nothing_is_counted_without_jobs(connection: Connection) -> None:
    empty = figures(connection)
    assert (empty.total_jobs, empty.runs_with_metric, empty.models) == (0, 0, 0)
    assert not empty.HasField("mean")
    assert not empty.HasField("latest")


def test_cards_count_jobs_and_models_and_average_over_runs_of_models(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), plan("u", 4), model="one"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), model="one"), right=2, wrong=2, minute=2)
    run(connection, job("floor", plan("t", 4), model="majority", baseline=True), right=1, wrong=3, minute=3)
    for number, state in enumerate((job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_RUNNING)):
        made = job(f"other{number}", model="two", state=state, minute=4)
        writes.store_events(connection, [event(f"0{number}", made)])
    found = figures(connection)
    assert (found.total_jobs, found.completed_jobs, found.failed_jobs, found.cancelled_jobs) == (6, 3, 1, 1)
    assert (found.models, found.mean, found.runs_with_metric) == (1, 0.75, 2)
    assert (found.latest.job_id, found.complete_jobs) == ("floor", 3)
    assert figures(connection, metric="f1").runs_with_metric == 0


def test_an_incomplete_job_is_completed_and_not_complete(connection: Connection) -> None:
    made = job("j", plan("t", 2))
    writes.store_items(connection, [batch("j", "t", [answer(0), answer(1, outcome=ERROR)])])
    seal(connection, made)
    made.state, made.incomplete = job_pb2.Job.STATE_COMPLETED, True
    writes.store_events(connection, [event("1", made, "completed")])
    found = figures(connection)
    assert (found.completed_jobs, found.complete_jobs, found.runs_with_metric) == (1, 0, 0)


def test_averages_are_over_runs_that_rank_and_whole_ones_where_there_are_any(connection: Connection) -> None:
    run(connection, job("few", plan("t", 2), item_set="few", subset=True), right=1, wrong=1, minute=1)
    run(connection, job("most", plan("t", 4), item_set="most", subset=True), right=1, wrong=3, minute=2)
    assert (figures(connection).mean, figures(connection).runs_with_metric) == (0.25, 1)
    run(connection, job("whole", plan("t", 4)), right=3, wrong=1, minute=3)
    run(connection, job("lost", plan("t", 4), model="silent"), right=0, wrong=3, minute=4)
    found = figures(connection)
    assert (found.mean, found.runs_with_metric, found.completed_jobs, found.models) == (0.75, 1, 4, 2)


def test_suite_days_project_and_visibility_bound_what_is_counted(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), project_id=1, owner="ann"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), project_id=2, owner="bob", suite="mmlu"), right=2, wrong=2, minute=2)
    old = job("old", plan("t", 4), model="past")
    old.created_at.FromDatetime(START - timedelta(days=40))
    run(connection, old, right=1, wrong=3)
    assert figures(connection).total_jobs == 3
    assert figures(connection, days=30).total_jobs == 2
    assert figures(connection, days=30, suite="glue").mean == 1.0
    for found in (
        figures(connection, days=30, suite="mmlu"),
        figures(connection, project_id=2),
        figures(connection, Visibility("bob")),
    ):
        assert (found.total_jobs, found.mean, found.models, found.latest.job_id) == (1, 0.5, 1, "b")
    with pytest.raises(InvalidRequestError):
        figures(connection, days=-1)


def test_averages_mix_neither_suites_nor_modes(connection: Connection) -> None:
    for number, (suite, mode, right) in enumerate(
        (
            ("glue", suite_pb2.MODE_GENERATE, 4),
            ("glue", suite_pb2.MODE_GENERATE, 2),
            ("glue", suite_pb2.MODE_LOGLIKELIHOOD, 1),
            ("mmlu", suite_pb2.MODE_UNSPECIFIED, 0),
        )
    ):
        made = job(f"j{number}", plan("t", 4), suite=suite)
        made.spec.mode = mode
        run(connection, made, right=right, wrong=4 - right, minute=number)
    found = figures(connection)
    assert [(one.suite, one.mode, one.mean, one.runs) for one in found.means] == [
        ("glue", suite_pb2.MODE_GENERATE, 0.75, 2),
        ("glue", suite_pb2.MODE_LOGLIKELIHOOD, 0.25, 1),
        ("mmlu", suite_pb2.MODE_GENERATE, 0.0, 1),
    ]
    assert (found.mean, found.runs_with_metric, found.completed_jobs) == (0.75, 2, 4)
    assert (figures(connection, suite="mmlu").mean, len(figures(connection, suite="glue").means)) == (0.0, 2)


def test_an_unknown_mode_is_refused(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4)), right=4)
    with pytest.raises(InvalidRequestError) as raised:
        series(connection, mode=9)
    assert raised.value.field == "mode"
    with pytest.raises(InvalidRequestError) as raised:
        leaderboard(connection, pb.GetLeaderboardRequest(suite="glue", mode=9))  # type: ignore[arg-type]
    assert raised.value.field == "mode"
