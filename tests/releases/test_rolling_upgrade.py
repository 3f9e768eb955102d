"""A job that the services of the last release began is finished by the present ones, which replace them one by one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx
import pytest

from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from tests.nats_server import NatsServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import API, until
from tests.stub_thread import stub_thread
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR
from touchstone_client import Client, Settings, UnreachableError

pytestmark = pytest.mark.stack

RELEASE = "863a2f00133c50ab6e776e4562c7e1c95f973672"
"""The commit of 0.2.0."""
ORDER = ("results", "evaluator", "scheduler", "gateway")
"""As docs/operations.md has it."""
MODELS = ("stub",)
CONFIG = {"provider": "stub", "model": "stub"}
ITEMS, SLOTS, LATENCY_S = 1600, 8, 0.3
"""Of the demo suite, and slow enough that the job lasts longer than the upgrade."""


class Services:
    """One process each, of the release or of the present version, at fixed ports."""

    def __init__(self, folder: Path, released: Path, nats: NatsServer, stub: OpenAIServer, endpoints: Path) -> None:
        self.stub = stub
        self._folder = folder
        self._released = released
        self._ports = {name: free_port() for name in ORDER}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._settings = {
            "TOUCHSTONE_NATS_URL": nats.url,
            "TOUCHSTONE_NATS_MONITOR_URL": nats.monitor_url,
            "TOUCHSTONE_STATE_DIR": str(folder / "state"),
            "TOUCHSTONE_ENDPOINTS": str(endpoints),
            "TOUCHSTONE_SCHEDULER": f"127.0.0.1:{self._ports['scheduler']}",
            "TOUCHSTONE_RESULTS": f"127.0.0.1:{self._ports['results']}",
            "TOUCHSTONE_HTTP_PORT": str(self._ports["gateway"]),
            "TOUCHSTONE_REQUESTS_PER_MINUTE": "1000000",
            "TOUCHSTONE_UNIT_SIZE": "8",
            **{
                f"TOUCHSTONE_{name.upper()}_LISTEN": f"127.0.0.1:{self._ports[name]}"
                for name in ("results", "evaluator", "scheduler")
            },
        }
        (folder / "state").mkdir()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._ports['gateway']}"

    @property
    def client(self) -> Settings:
        return Settings(self._settings["TOUCHSTONE_SCHEDULER"], self._settings["TOUCHSTONE_RESULTS"])

    def start(self, name: str, *, released: bool) -> None:
        tree = self._released if released else ROOT
        own = {key: value for key, value in os.environ.items() if not key.startswith("TOUCHSTONE_")}
        own |= self._settings | {"PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "protos/gen", tree / "client")))}
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"services.{name}"], cwd=tree, env=own, stdout=log, stderr=log
            )

    def replace(self, name: str) -> None:
        """An orderly end, and the present version in its place."""
        self.end(name)
        self.start(name, released=False)

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        process = self._processes.pop(name)
        process.send_signal(number)
        process.wait(60)

    def close(self) -> None:
        for name in list(self._processes):
            self.end(name, signal.SIGKILL)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """The tree of the release."""
    folders = ("services", "client", "deploy", "protos/gen", "web", "pyproject.toml")
    made = subprocess.run(["git", "archive", RELEASE, *folders], cwd=ROOT, capture_output=True)
    if made.returncode:
        pytest.skip(f"the history of this checkout does not go back to {RELEASE[:8]}")
    with tarfile.open(fileobj=BytesIO(made.stdout)) as archive:
        archive.extractall(tmp_path / "released", filter="data")
    return tmp_path / "released"


@pytest.fixture
def services(tmp_path: Path, released: Path) -> Iterator[Services]:
    nats = NatsServer().start(tmp_path / "nats")
    with stub_thread() as stubs:
        stub = stubs.start(OpenAIServer(Behaviour(latency_s=LATENCY_S, models=MODELS)))
        endpoints = tmp_path / "endpoints.toml"
        endpoints.write_text(
            f'[[endpoint]]\nname = "stub"\nkind = "openai"\nbase_url = "{stub.url}"\nconcurrency = {SLOTS}\n'
        )
        made = Services(tmp_path, released, nats, stub, endpoints)
        try:
            for name in ORDER:
                made.start(name, released=True)
            yield made
        finally:
            made.close()
            nats.stop()


def test_services_are_replaced_one_by_one_while_a_job_runs(services: Services) -> None:
    http = httpx.Client(base_url=services.url, trust_env=False, timeout=60)

    def ready() -> bool:
        try:
            return http.get("/readyz").is_success
        except httpx.HTTPError:
            return False

    until(ready, 120)
    body = {"project_id": 1, "suite": "demo", "config": CONFIG}
    # A job is refused until the evaluator has announced its suites and its models.
    while not (started := http.post(f"{API}/run", json=body)).is_success:
        assert started.status_code == 400, started.text
        time.sleep(0.2)
    job_id = started.json()["job_id"]
    with Client(services.client) as client:

        def done() -> int:
            """-1 while the scheduler is away."""
            try:
                return client.job(job_id).progress.items_done
            except UnreachableError:
                return -1

        for name in ORDER:
            until(lambda: done() >= 0)
            before = done()
            until(lambda: done() > before)  # noqa: B023
            services.replace(name)
        until(ready, 120)
        assert done() < ITEMS, "The job ended before the upgrade."
        services.stub.behaviour = Behaviour(models=MODELS)
        assert client.wait(job_id, 240).state == job_pb2.Job.STATE_COMPLETED
        items = list(client.items(job_id))
        assert len(items) == len({(one.task, one.result.position) for one in items}) == ITEMS
        assert OUTCOME_INFRASTRUCTURE_ERROR not in {one.result.outcome for one in items}
