"""Experiments on a real MLflow server, as its own answers show them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.bus import end_tasks
from services.results.mlflow import publishing
from services.results.mlflow.client import MlflowError
from services.results.mlflow.publishing import Publishing
from services.results.mlflow.settings import MlflowSettings
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from tests.unit.results.experiments.made import Made, all_of
from tests.unit.results.mlflow.jobs import complete
from tests.waiting import until

pytestmark = pytest.mark.mlflow
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-mlflow"
NAME = "mlflow.example"
TIPS = json.dumps(["Walk to the market.", "Call an old friend."])
_START_S = 120.0


@contextmanager
def _server(
    folder: Path, *options: str, port: int = 0, end: signal.Signals = signal.SIGTERM
) -> Iterator[tuple[int, str]]:
    """Port and address, of a server that knows one name. `end` is how it ends; the folder keeps what it has."""
    port = port or free_port()
    command = [
        *(str(ENVIRONMENT / "bin" / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--allowed-hosts", f"{NAME}:{port}", *options),
    ]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=log, stderr=log, start_new_session=True)
    try:
        _until_ready(port, process)
        yield port, f"http://127.0.0.1:{port}"
    finally:
        # Its workers are children in its process group.
        os.killpg(process.pid, end)
        process.wait()


def _until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, "MLflow's server has ended"
            assert time.monotonic() < deadline, "MLflow's server did not start"
            time.sleep(0.2)


def _ask(url: str, port: int, path: str, body: Any = None) -> Any:
    return json.loads(_read(url, port, path, body))


def _read(url: str, port: int, path: str, body: Any = None) -> bytes:
    request = urllib.request.Request(
        f"{url}/api/2.0/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Host": f"{NAME}:{port}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def _runs(url: str, port: int, name: str) -> list[Any]:
    experiment = _ask(url, port, f"mlflow/experiments/get-by-name?experiment_name={name}")["experiment"]
    asked = {"experiment_ids": [experiment["experiment_id"]], "max_results": 100, "order_by": ["params.scenario"]}
    return list(_ask(url, port, "mlflow/runs/search", asked)["runs"])


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    opened = open_file(tmp_path / "results.duckdb")
    yield opened
    opened.close()


@pytest.mark.parametrize("store", ["proxied", "elsewhere"])
async def test_an_experiment_is_there_with_its_scores(connection: Connection, tmp_path: Path, store: str) -> None:
    made = Made(connection, prompts=["p"])
    complete(connection, made.job("a", {0: TIPS, 1: "é" * 20_000}))
    folder = tmp_path / "server"
    folder.mkdir()
    options = [] if store == "proxied" else ["--no-serve-artifacts", "--default-artifact-root", str(folder / "files")]
    with _server(folder, *options) as (port, url):
        settings = MlflowSettings(url=url)
        with pytest.raises(MlflowError, match="--allowed-hosts"):
            await Publishing(Database(connection), settings).look()
        settings = MlflowSettings(url=url, host=f"{NAME}:{port}")
        await Publishing(Database(connection), settings).look()
        assert [_tags(run)["judge_pending"] for run in _runs(url, port, made.name)] == ["true", "true"]

        for score in (5, 2):
            made.rate("a", {0: all_of(score)})
            await Publishing(Database(connection), settings).look()
        first, second = _runs(url, port, made.name)
        assert _tags(first)["artifact:candidates.json"] == TIPS
        assert _tags(first)["judge_pending"] == "false"
        metrics = {one["key"]: one["value"] for one in first["data"]["metrics"]}
        assert (metrics["relevance"], metrics["composite"]) == (2.0, 0.25)
        assert {one["key"]: one["value"] for one in first["data"]["params"]}["model"] == "a"
        assert first["info"]["status"] == "FINISHED"
        # What does not fit into a tag is whole as a file, where the server keeps files.
        assert _tags(second)["artifact:raw.txt"] == "é" * len(_tags(second)["artifact:raw.txt"])
        if store == "proxied":
            place = f"{second['info']['experiment_id']}/{second['info']['run_id']}/artifacts/raw.txt"
            assert _read(url, port, f"mlflow-artifacts/artifacts/{place}").decode() == "é" * 20_000


async def test_a_server_that_was_killed_gets_the_rest_once(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publishing, "LOOK_S", 0.05)
    monkeypatch.setattr(publishing, "_LONGEST_S", 1.0)
    folder, database = tmp_path / "server", Database(connection)
    folder.mkdir()

    def whole(name: str, runs: int) -> bool:
        found = _runs(url, port, name)
        ended = all("touchstone.digest" in _tags(run) and run["info"]["status"] == "FINISHED" for run in found)
        return len(found) == runs and ended

    def sent(job_id: str) -> bool:
        told = connection.cursor().execute("SELECT count(*) FROM mlflow_jobs WHERE job_id = ?", [job_id]).fetchone()
        return told == (1,)

    publishes: list[asyncio.Task[None]] = []
    try:
        with _server(folder, end=signal.SIGKILL) as (port, url):
            settings = MlflowSettings(url=url, host=f"{NAME}:{port}")
            publishes.append(asyncio.create_task(Publishing(database, settings).run()))
            await _completed(database, connection, name="first", job="a")
            await until(lambda: sent("a"))
            assert whole("first", 4)
        await _completed(database, connection, name="second", job="b")
        await until(lambda: "MLflow gets them later" in caplog.text)
        assert not sent("b")
        # A server that is back with what it had.
        starting = _server(folder, port=port)
        await asyncio.to_thread(starting.__enter__)
        try:
            await until(lambda: sent("b"))
            assert whole("second", 4)
            assert whole("first", 4)
        finally:
            starting.__exit__(None, None, None)
    finally:
        await end_tasks(publishes)
        await database.close()


async def _completed(database: Database, connection: Connection, name: str, job: str) -> None:
    """An experiment of four answers, and news of it."""
    complete(connection, Made(connection, name=name).job(job))
    await database.write(lambda _: None)


def _tags(run: Any) -> dict[str, str]:
    return {tag["key"]: tag.get("value", "") for tag in run["data"]["tags"]}
