"""What an MLflow server gets of jobs, whatever happens to it meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from services.bus import end_tasks
from services.results.mlflow import publishing
from services.results.mlflow.client import MlflowError
from services.results.mlflow.publishing import Publishing
from services.results.mlflow.settings import ALL, MlflowSettings
from services.results.storage.database import Connection, Database
from tests.servers.mlflow_server import MlflowRun, MlflowServer, mlflow_server
from tests.unit.results.builders import job, plan, run
from tests.unit.results.experiments.made import Made, all_of
from tests.unit.results.mlflow.jobs import complete
from tests.waiting import until
from touchstone.v1 import job_pb2

TIPS = json.dumps(["Walk to the market.", "Call an old friend."])
ANSWERS = {0: TIPS, 1: "- One tip.", 2: "no list"}
ROW_3_FAILED = {3}


@pytest.fixture
async def server() -> AsyncIterator[MlflowServer]:
    async with mlflow_server() as started:
        yield started


def _experiment(connection: Connection) -> Made:
    made = Made(connection)
    complete(connection, made.job("a", {**ANSWERS, 3: ""}, ROW_3_FAILED))
    return made


def _judge(connection: Connection, made: Made) -> None:
    made.judge("judge", "a", {0: all_of(5), 1: all_of(2), 2: None})
    ((blob,),) = connection.execute("SELECT job FROM jobs WHERE job_id = 'judge-a-1'").fetchall()
    complete(connection, job_pb2.Job.FromString(blob))


async def _once(connection: Connection, server: MlflowServer, **settings: str) -> None:
    await Publishing(Database(connection), MlflowSettings(url=server.url, **settings)).look()


def _by_row(server: MlflowServer, made: Made) -> dict[int, MlflowRun]:
    return {int(run.tags["touchstone.place"].split("/")[-2]): run for run in server.of(made.name)}


async def test_every_answer_of_an_experiment_is_a_run(connection: Connection, server: MlflowServer) -> None:
    made = _experiment(connection)
    await _once(connection, server)
    runs = _by_row(server, made)
    assert sorted(runs) == [0, 1, 2, 3]
    assert runs[0].params["model"] == "a"
    assert runs[0].params["prompt_version"] == "p"
    assert runs[0].params["scenario"] == "s-0001"
    assert runs[2].params["prompt_version"] == "q"
    assert runs[0].tags["judge_pending"] == "true"
    assert json.loads(runs[0].tags["artifact:candidates.json"]) == json.loads(TIPS)
    assert runs[1].tags["artifact:candidates.json"] == '["One tip."]'
    assert runs[0].tags["artifact:raw.txt"] == TIPS == runs[0].files["raw.txt"]
    assert {"prompt.txt", "raw.txt", "candidates.json"} == runs[0].files.keys()
    assert runs[0].metrics["diversity"] == 1.0
    assert "relevance" not in runs[0].metrics
    assert [runs[row].status for row in range(4)] == ["FINISHED"] * 3 + ["FAILED"]
    assert runs[3].tags["judge_pending"] == "false"
    assert not runs[3].metrics


async def test_scores_follow_on_their_scales_and_peoples_count_first(
    connection: Connection, server: MlflowServer
) -> None:
    made = _experiment(connection)
    await _once(connection, server)
    _judge(connection, made)
    await _once(connection, server)
    runs = _by_row(server, made)
    assert len(server.runs) == 4
    assert (runs[0].metrics["relevance"], runs[0].metrics["composite"]) == (5.0, 1.0)
    assert (runs[1].metrics["tone"], runs[1].metrics["composite"]) == (2.0, 0.25)
    assert [runs[row].tags["judge_pending"] for row in range(3)] == ["false", "false", "true"]
    assert "relevance" not in runs[2].metrics
    made.rate("a", {1: all_of(4)})
    await _once(connection, server)
    assert (runs[1].metrics["tone"], runs[1].tags["touchstone.scored_by"]) == (4.0, "people")
    assert (runs[0].metrics["tone"], runs[0].tags["touchstone.scored_by"]) == (5.0, "judge")
    assert len(server.runs) == 4


async def test_nothing_is_sent_twice(connection: Connection, server: MlflowServer) -> None:
    _experiment(connection)
    await _once(connection, server)
    told = server.requests
    await _once(connection, server)
    assert server.requests == told
    # As after a database that was rebuilt: the server's own runs say what it got.
    connection.execute("DELETE FROM mlflow_jobs")
    await _once(connection, server)
    assert server.requests - told < 5


@pytest.mark.parametrize("fault", ["lost", "cut"])
async def test_each_answer_has_one_run_wherever_it_was_cut_off(
    connection: Connection, server: MlflowServer, fault: str
) -> None:
    made = _experiment(connection)
    await _once(connection, server)
    requests = server.requests
    for number in range(1, requests + 1):
        connection.execute("DELETE FROM mlflow_jobs")
        server.runs.clear()
        server.experiments.clear()
        server.requests = 0
        server.fail = lambda asked, number=number: fault if asked == number else ""  # type: ignore[misc]
        with suppress(MlflowError):
            await _once(connection, server)
        await _once(connection, server)
        runs = _by_row(server, made)
        assert sorted(runs) == [0, 1, 2, 3], number
        assert len(server.runs) == 4, number
        assert all("touchstone.digest" in run.tags and run.status != "RUNNING" for run in runs.values()), number
        assert (runs[0].params["model"], runs[0].metrics["diversity"]) == ("a", 1.0), number


async def test_a_server_that_comes_back_gets_everything(
    connection: Connection, server: MlflowServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publishing, "LOOK_S", 0.01)
    made = _experiment(connection)
    server.fail = lambda number: "lost"
    database = Database(connection)
    task = asyncio.create_task(Publishing(database, MlflowSettings(url=server.url)).run())
    try:
        await until(lambda: server.requests > 2)
        assert [record.levelname for record in caplog.records].count("WARNING") == 1
        assert "Jobs go on, and MLflow gets them later." in caplog.text
        server.fail = lambda number: ""
        await until(lambda: len(server.runs) == 4 and all("touchstone.digest" in r.tags for r in server.runs.values()))
        assert sorted(_by_row(server, made)) == [0, 1, 2, 3]
    finally:
        await end_tasks([task])
        await database.close()


async def test_other_jobs_are_sent_where_they_are_wanted(connection: Connection, server: MlflowServer) -> None:
    made = _experiment(connection)
    _judge(connection, made)
    run(connection, job("suite-job", plan("t", 2)), right=1, wrong=1)
    await _once(connection, server)
    assert list(server.experiments) == [made.name]
    await _once(connection, server, runs=ALL)
    (other,) = server.experiments.keys() - {made.name}
    assert other.startswith("touchstone/")
    (told,) = server.of(other)
    assert told.tags["touchstone.job_id"] == "suite-job"
    assert 0.5 in told.metrics.values()
    # The job that judges has no run of its own: its scores are those of the answers.
    assert len(server.runs) == 5


async def test_a_server_that_refuses_its_name_says_what_to_do(connection: Connection, server: MlflowServer) -> None:
    _experiment(connection)
    server.host = "mlflow.example:5000"
    with pytest.raises(MlflowError, match="--allowed-hosts, or set TOUCHSTONE_MLFLOW_HOST"):
        await _once(connection, server)
    await _once(connection, server, host="mlflow.example:5000")
    assert len(server.runs) == 4
