"""Scores of configurations over time."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.boards import overview
from services.results.intake import writes
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file
from services.results.visibility import Visibility
from tests.parts import NIGHTLY
from tests.unit.results.boards import shown
from tests.unit.results.boards.shown import NOW, series
from tests.unit.results.builders import START, event, job, plan, run
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

SEEDS = range(6 if NIGHTLY else 2)
NAMES = [f"m{n}" for n in range(5)]


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
    assert series(connection, configurations=["one@local"], item_set="x") == {"one@local x": ["a", "c"]}
    assert series(connection, configurations=["one@local", "none"], points=1) == {
        "one@local y": ["d"],
        "one@local x": ["c"],
    }
    too_many = pb.ListTrendsRequest(configurations=["c"] * 501)
    for bad in (
        pb.ListTrendsRequest(limit=65),
        pb.ListTrendsRequest(days=4000),
        pb.ListTrendsRequest(points=301),
        too_many,
    ):
        with pytest.raises(InvalidRequestError):
            overview.list_trends(connection, bad, NOW)


@pytest.fixture(scope="module", params=SEEDS)
def irregular(
    request: pytest.FixtureRequest, new_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    """Irregular runs, which no test changes: to make them takes longer than all that is asked of them."""
    path = tmp_path_factory.mktemp("irregular") / "results.duckdb"
    shutil.copy(new_file, path)
    with closing(open_file(path)) as connection:
        _irregular_runs(connection, request.param)
        yield connection


def test_the_newest_points_of_configurations_are_the_same_however_few_runs_are_read(
    irregular: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs at irregular times: long ones, bursts, failed and incomplete ones, and configurations with few runs."""
    reads: list[object] = []
    points = overview._points

    def counted(connection: Connection, where: dict[str, Any]) -> list[tuple[Any, ...]]:
        reads.append(where["completed_after"])
        return points(connection, where)

    monkeypatch.setattr(overview, "_points", counted)
    monkeypatch.setattr(overview, "_recent_points", lambda *_: None)
    asked: dict[str, Any] = {"configurations": [f"{name}@local" for name in NAMES], "days": 3650, "item_set": "set-1"}
    quick = [series(irregular, points=most, **asked) for most in (1, 2, 3, 12)]
    assert any(reads), "some were read from recent runs alone"
    monkeypatch.setattr(overview, "_newest_points", lambda *_: None)
    assert quick == [series(irregular, points=most, **asked) for most in (1, 2, 3, 12)]


def test_the_newest_points_of_all_series_are_the_same_however_few_runs_are_read(
    irregular: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((last,),) = irregular.execute("SELECT max(completed_at) FROM run_scores").fetchall()
    monkeypatch.setattr(shown, "NOW", last)
    asked = list(itertools.product((1, 2, 4), (1, 2, 4), (1, 3, 40)))
    recent, sufficed = overview._recent_points, []

    def counted(connection: Connection, where: dict[str, Any], now: datetime) -> list[tuple[Any, ...]] | None:
        found = recent(connection, where, now)
        sufficed.append(found is not None)
        return found

    def all_series() -> list[dict[str, list[str]]]:
        return [series(irregular, limit=limit, points=most, days=days) for limit, most, days in asked]

    monkeypatch.setattr(overview, "_recent_points", counted)
    quick = all_series()
    assert set(sufficed) == {True, False}, "some were read from recent runs alone"
    monkeypatch.setattr(overview, "_recent_points", lambda *_: None)
    assert quick == all_series()


def _irregular_runs(connection: Connection, seed: int) -> None:
    chance = random.Random(seed)
    minute = 0
    for number in range(40):
        minute += chance.choice([1, 1, 2, 300])
        model = chance.choice(NAMES[: 2 + number // 8])
        state = chance.choice([job_pb2.Job.STATE_RUNNING] * 6 + [job_pb2.Job.STATE_FAILED])
        made = job(f"j{number:02d}", plan("t", 4), model=model, minute=minute, state=state)
        run(connection, made, right=chance.choice([4, 4, 4, 3]), minute=minute + chance.choice([0, 0, 900]))


def test_trends_hold_runs_that_rank_of_the_days_asked_for(connection: Connection) -> None:
    old = job("old", plan("t", 4))
    old.created_at.FromDatetime(START - timedelta(days=40))
    run(connection, old, right=4, minute=1)
    run(connection, job("lost", plan("t", 10)), right=4, minute=2)
    run(connection, job("good", plan("t", 4)), right=3, wrong=1, minute=3)
    failed = job("failed", plan("t", 4), state=job_pb2.Job.STATE_FAILED)
    run(connection, failed, right=4, minute=4)
    writes.store_events(connection, [event("999999", failed, "failed")])
    assert series(connection) == {"m1@local set-1": ["good"]}
    assert series(connection, days=50) == {"m1@local set-1": ["old", "good"]}
    (trend,) = overview.list_trends(connection, pb.ListTrendsRequest(suite="glue", metric="accuracy"), NOW).trends
    assert (trend.points[0].score.mean, trend.points[0].score.n, trend.model) == (0.75, 4, "m1")
    assert trend.points[0].completed_at.ToDatetime() == START.replace(tzinfo=None) + timedelta(minutes=3, seconds=31)


def test_a_user_who_sees_own_jobs_alone_has_trends_of_them_alone(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), owner="ann"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), owner="bob"), right=4, minute=2)
    assert series(connection, Visibility("ann")) == {"m1@local set-1": ["a"]}
    assert series(connection, project_id=7) == {}
