"""The services as one process each, as on several hosts: with a NATS cluster, two schedulers, and tokens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import grpc

from deploy.local import health
from deploy.local.ports import free_port
from tests.nats_server import NatsCluster
from touchstone_client import Settings

START_S = 120.0
SERVICE_TOKEN = "service-secret"
SCHEDULERS = ("scheduler-1", "scheduler-2")
SERVICES = ("results", *SCHEDULERS, "evaluator-1", "gateway")
"""The last one is a gateway."""


class Hosts:
    """Processes by name: the service's, and a number where there are several. Evaluators listen on every address.

    Here they are all on loopback; a subclass may place them elsewhere. `settings` are further variables of all.
    """

    def __init__(
        self,
        folder: Path,
        cluster: NatsCluster,
        names: Sequence[str] = SERVICES,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder, self.cluster, self.names, self.settings = folder, cluster, names, settings
        self.trusted: grpc.ChannelCredentials | None = None
        """For the services' TLS."""
        self._ports: dict[str, int] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(exist_ok=True)

    def host(self, name: str) -> str:
        """The host of a process, by number or by name."""
        return "localhost" if name == "scheduler-2" else "127.0.0.1"

    def inside(self, name: str) -> Sequence[str]:
        """What stands before the command of a process, to run it on its host."""
        return ()

    def address(self, name: str) -> str:
        return f"{self.host(name)}:{self._port(name)}"

    def page_url(self, gateway: str = "gateway") -> str:
        return f"http://{self.address(gateway)}"

    def client(self, token: str) -> Settings:
        return Settings(",".join(map(self.address, SCHEDULERS)), self.address("results"), token)

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
            "TOUCHSTONE_SCHEDULER": ",".join(map(self.address, SCHEDULERS)),
            "TOUCHSTONE_RESULTS": self.address("results"),
            **self._listens(kind, name),
            f"TOUCHSTONE_{kind.upper()}_NAME": name,
            "TOUCHSTONE_STATE_DIR": str(state),
            "TOUCHSTONE_REQUESTS_PER_MINUTE": "1000000",
            **self.settings,
        }
        return {key: value for key, value in os.environ.items() if not key.startswith("TOUCHSTONE_")} | mine

    def _listens(self, kind: str, name: str) -> dict[str, str]:
        if kind == "gateway":
            return {"TOUCHSTONE_HTTP_HOST": self.host(name), "TOUCHSTONE_HTTP_PORT": str(self._port(name))}
        address = f"0.0.0.0:{self._port(name)}" if kind == "evaluator" else self.address(name)
        return {f"TOUCHSTONE_{kind.upper()}_LISTEN": address}

    def start(self, *names: str) -> None:
        for name in names:
            command = (*self.inside(name), sys.executable, "-m", f"services.{name.partition('-')[0]}")
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
            command, env=self.environ(self.names[-1]), capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.splitlines()[0]

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def running(self, name: str) -> bool:
        return self._processes[name].poll() is None

    async def ready(self, name: str, service: str = "") -> bool:
        """Whether the process says so, or one of its services."""
        if name.startswith("gateway"):
            return await health.http(f"{self.page_url(name)}/readyz")()
        return await health.grpc_health(self.address(name), self.trusted, service)()

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
            for name in SCHEDULERS:
                if name in self._processes and await self.ready(name, health.SCHEDULER):
                    return name
            await asyncio.sleep(0.1)


@asynccontextmanager
async def hosts(folder: Path, cluster: NatsCluster) -> AsyncIterator[Hosts]:
    """NATS and all services, started together and ready."""
    made = Hosts(folder, cluster)
    try:
        cluster.begin()
        made.start(*made.names)
        await made.until_ready(*made.names)
        yield made
    finally:
        made.close()
