"""Figures over all jobs, and scores over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results import duckdb_store, trends
from services.results.database import Connection
from services.results.leaderboard import leaderboard
from services.results.overview import overview
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run, seal
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1 import results_service_pb2 as pb

NOW = START.replace(tzinfo=None) + timedelta(hours=1)


def figures(connection: Connection, visible: Visibility = EVERYTHING, **filters: Any) -> pb.GetOverviewResponse:
    return overview(connection, pb.GetOverviewRequest(**filters), NOW, visible)


def series(connection: Connection, visible: Visibility = EVERYTHING, **filters: Any) -> dict[str, list[str]]:
    """Jobs of each series by its configuration and item set."""
    found = trends.list_trends(connection, pb.ListTrendsRequest(**{"suite": "glue", **filters}), NOW, visible)
    return {f"{t.configuration} {t.item_set}": [point.job_id for point in t.points] for t in found.trends}


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
        duckdb_store.store_events(connection, [event(f"0{number}", made)])
    found = figures(connection)
    assert (found.total_jobs, found.completed_jobs, found.failed_jobs, found.cancelled_jobs) == (6, 3, 1, 1)
    assert (found.models, found.mean, found.runs_with_metric) == (1, 0.75, 2)
    assert (found.latest.job_id, found.complete_jobs) == ("floor", 3)
    assert figures(connection, metric="f1").runs_with_metric == 0


def test_an_incomplete_job_is_completed_and_not_complete(connection: Connection) -> None:
    made = job("j", plan("t", 2))
    duckdb_store.store_items(connection, [batch("j", "t", [answer(0), answer(1, outcome=ERROR)])])
    seal(connection, made)
    made.state, made.incomplete = job_pb2.Job.STATE_COMPLETED, True
    duckdb_store.store_events(connection, [event("1", made, "completed")])
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


def test_trends_are_a_series_per_configuration_and_item_set_oldest_first(connection: Connection) -> None:
    for minute, (job_id, model, item_set) in enumerate(
        (("a", "one", "x"), ("b", "two", "x"), ("c", "one", "x"), ("d", "one", "y"), ("e", "two", "x"))
    ):
        run(
            connection, job(job_id, plan("t", 4), model=model, item_set=item_set, minute=minute), right=4, minute=minute
        )
    assert series(connection) == {"two@local x": ["b", "e"], "one@local y": ["d"], "one@local x": ["a", "c"]}
    assert series(connection, limit=1) == {"two@local x": ["b", "e"]}
    assert list(series(connection, model="one")) == ["one@local y", "one@local x"]
    assert series(connection, suite="mmlu") == {}
    for bad in (pb.ListTrendsRequest(limit=65), pb.ListTrendsRequest(days=4000)):
        with pytest.raises(InvalidRequestError):
            trends.list_trends(connection, bad, NOW)


def test_trends_hold_runs_that_rank_of_the_days_asked_for(connection: Connection) -> None:
    old = job("old", plan("t", 4))
    old.created_at.FromDatetime(START - timedelta(days=40))
    run(connection, old, right=4, minute=1)
    run(connection, job("lost", plan("t", 10)), right=4, minute=2)
    run(connection, job("good", plan("t", 4)), right=3, wrong=1, minute=3)
    failed = job("failed", plan("t", 4), state=job_pb2.Job.STATE_FAILED)
    run(connection, failed, right=4, minute=4)
    duckdb_store.store_events(connection, [event("999999", failed, "failed")])
    assert series(connection) == {"m1@local set-1": ["good"]}
    assert series(connection, days=50) == {"m1@local set-1": ["old", "good"]}
    (trend,) = trends.list_trends(connection, pb.ListTrendsRequest(suite="glue", metric="accuracy"), NOW).trends
    assert (trend.points[0].score.mean, trend.points[0].score.n, trend.model) == (0.75, 4, "m1")
    assert trend.points[0].completed_at.ToDatetime() == START.replace(tzinfo=None) + timedelta(minutes=3, seconds=31)


def test_a_user_who_sees_own_jobs_alone_has_trends_of_them_alone(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), owner="ann"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), owner="bob"), right=4, minute=2)
    assert series(connection, Visibility("ann")) == {"m1@local set-1": ["a"]}
    assert series(connection, project_id=7) == {}
