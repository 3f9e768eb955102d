"""The services as one process each, as on several hosts: with a NATS cluster, two schedulers, and tokens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deploy.local import health
from deploy.local.ports import free_port
from tests.nats_server import NatsCluster
from touchstone_client import Settings

START_S = 120.0
SERVICE_TOKEN = "service-secret"
SERVICES = ("results", "scheduler-1", "scheduler-2", "evaluator-1", "gateway")


class Hosts:
    """Processes by name: the service's, and a number where there are several. Evaluators listen on every address."""

    def __init__(self, folder: Path, cluster: NatsCluster) -> None:
        self.folder, self.cluster = folder, cluster
        self._ports: dict[str, int] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(exist_ok=True)

    @property
    def schedulers(self) -> list[str]:
        return [f"127.0.0.1:{self._port('scheduler-1')}", f"localhost:{self._port('scheduler-2')}"]

    @property
    def results(self) -> str:
        return f"127.0.0.1:{self._port('results')}"

    @property
    def page_url(self) -> str:
        return f"http://127.0.0.1:{self._port('gateway')}"

    def client(self, token: str, timeout_s: float = 10.0) -> Settings:
        return Settings(",".join(self.schedulers), self.results, token, timeout_s=timeout_s)

    def _port(self, name: str) -> int:
        return self._ports.setdefault(name, free_port())

    def environ(self, name: str) -> dict[str, str]:
        kind = name.partition("-")[0]
        state = self.folder / ("results" if kind == "results" else name)
        state.mkdir(exist_ok=True)
        mine = {
            "TOUCHSTONE_AUTH": "token",
            "TOUCHSTONE_SERVICE_TOKEN": SERVICE_TOKEN,
            "TOUCHSTONE_NATS_URL": ",".join(self.cluster.urls),
            "TOUCHSTONE_NATS_MONITOR_URL": ",".join(self.cluster.monitor_urls),
            "TOUCHSTONE_NATS_REPLICAS": "3",
            "TOUCHSTONE_SCHEDULER": ",".join(self.schedulers),
            "TOUCHSTONE_RESULTS": self.results,
            "TOUCHSTONE_HTTP_PORT": str(self._port("gateway")),
            f"TOUCHSTONE_{kind.upper()}_LISTEN": f"{self._listens(kind)}:{self._port(name)}",
            f"TOUCHSTONE_{kind.upper()}_NAME": name,
            "TOUCHSTONE_STATE_DIR": str(state),
            "TOUCHSTONE_REQUESTS_PER_MINUTE": "1000000",
        }
        return {key: value for key, value in os.environ.items() if not key.startswith("TOUCHSTONE_")} | mine

    def _listens(self, kind: str) -> str:
        return "0.0.0.0" if kind == "evaluator" else "127.0.0.1"

    def start(self, *names: str) -> None:
        for name in names:
            command = (sys.executable, "-m", f"services.{name.partition('-')[0]}")
            with (self.folder / f"{name}.log").open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    command, env=self.environ(name), stdout=log, stderr=log, start_new_session=True
                )

    def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        process = self._processes.pop(name)
        process.send_signal(number)
        process.wait(timeout=60)

    def close(self) -> None:
        for name in list(self._processes):
            self.end(name)

    def token(self) -> str:
        """A new admin's."""
        command = (sys.executable, "-m", "services.gateway", "token", "create", "--user", "ann", "--role", "admin")
        done = subprocess.run(
            command, env=self.environ("gateway"), capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.splitlines()[0]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def running(self, name: str) -> bool:
        return self._processes[name].poll() is None

    async def ready(self, name: str, service: str = "") -> bool:
        """Whether the process says so, or one of its services."""
        if name == "gateway":
            return await health.http(f"{self.page_url}/readyz")()
        return await health.grpc_health(f"127.0.0.1:{self._port(name)}", service=service)()

    async def until_ready(self, *names: str, ready: bool = True, timeout_s: float = START_S) -> float:
        """Waits until all say so, or that they are not; returns the seconds that took."""
        began = time.monotonic()
        for name in names:
            while await self.ready(name) is not ready:
                assert self.running(name), f"{name} ended:\n{self.log(name)[-3000:]}"
                assert time.monotonic() - began < timeout_s, f"{name} ready is not {ready}:\n{self.log(name)[-3000:]}"
                await asyncio.sleep(0.1)
        return time.monotonic() - began

    async def leader(self) -> str:
        """The scheduler that leads."""
        while True:
            for name in ("scheduler-1", "scheduler-2"):
                if name in self._processes and await self.ready(name, health.SCHEDULER):
                    return name
            await asyncio.sleep(0.1)


@asynccontextmanager
async def hosts(folder: Path, cluster: NatsCluster) -> AsyncIterator[Hosts]:
    """NATS and all services, started together and ready."""
    made = Hosts(folder, cluster)
    try:
        cluster.begin()
        made.start(*SERVICES)
        await made.until_ready(*SERVICES)
        yield made
    finally:
        made.close()
