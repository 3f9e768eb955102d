"""The real launcher with all its processes, on ports and a state directory that outlive it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from deploy.local import health
from deploy.local.ports import free_port
from deploy.local.settings import ROOT
from deploy.local.state import process_info
from deploy.local.supervisor import Probe

T = TypeVar("T")

LAUNCHER = "launcher"
EVALUATORS = ("evaluator-1", "evaluator-2")
SERVICES = ("nats", "scheduler", "results", "gateway", *EVALUATORS)
PROCESSES = (*SERVICES, LAUNCHER)
ACK_WAIT_S = 3
START_TIMEOUT_S = 120.0
_LISTEN = {
    "scheduler": "TOUCHSTONE_SCHEDULER_LISTEN",
    "results": "TOUCHSTONE_RESULTS_LISTEN",
    "evaluator-1": "TOUCHSTONE_EVALUATOR_LISTEN",
    "evaluator-2": "TOUCHSTONE_EVALUATOR_LISTEN",
}
_PORTS = ("HTTP", "NATS", "NATS_MONITOR", "SCHEDULER", "RESULTS", "EVALUATOR")


class Launched:
    """`python -m deploy.local serve` and its children, found through the pids that it records."""

    def __init__(self, folder: Path, data_dir: Path, endpoints: Path, extra: Mapping[str, str]) -> None:
        self.state_dir = folder / "state"
        self.state_dir.mkdir(exist_ok=True)
        self._log = folder / "launcher.log"
        ports: set[int] = set()
        while len(ports) < len(_PORTS):
            ports.add(free_port())
        self.ports = dict(zip(_PORTS, sorted(ports), strict=True))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TOUCHSTONE_")},
            **{f"TOUCHSTONE_{name}_PORT": str(port) for name, port in self.ports.items()},
            "TOUCHSTONE_STATE_DIR": str(self.state_dir),
            "TOUCHSTONE_DATA_DIR": str(data_dir),
            "TOUCHSTONE_ENDPOINTS": str(endpoints),
            "TOUCHSTONE_EVALUATORS": str(len(EVALUATORS)),
            "TOUCHSTONE_ACK_WAIT_S": str(ACK_WAIT_S),
            **extra,
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def page_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['HTTP']}"

    @property
    def nats_url(self) -> str:
        return (self.state_dir / "nats-url").read_text().strip()

    @property
    def nats_monitor_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['NATS_MONITOR']}"

    @property
    def scheduler(self) -> str:
        return f"127.0.0.1:{self.ports['SCHEDULER']}"

    @property
    def results(self) -> str:
        return f"127.0.0.1:{self.ports['RESULTS']}"

    async def start(self) -> None:
        """Starts the launcher alone; see `until_ready`."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "deploy.local", "serve"),
                env=self.environment,
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(60):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    # -- processes -------------------------------------------------------------------------------------------------

    def pid(self, name: str) -> int | None:
        """The process that runs under this name now, proven by its start time and its environment."""
        if name == LAUNCHER:
            return self._process.pid if self._process and self._process.returncode is None else None
        try:
            pid, started = json.loads((self.state_dir / "children.json").read_text())["children"][name]
        except (OSError, ValueError, KeyError):
            return None
        info = process_info(pid)
        if info is None or info.zombie or info.started != started:
            return None
        return pid if self._environ(pid).get("TOUCHSTONE_STATE_DIR") == str(self.state_dir) else None

    @staticmethod
    def _environ(pid: int) -> dict[str, str]:
        try:
            pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return {}
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    async def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Signals the process, once it is there; returns its pid. A killed launcher must take its children along."""
        pid = await until(lambda: self.pid(name), START_TIMEOUT_S, f"{name} does not run")
        children = [child for each in SERVICES if (child := self.pid(each))] if name == LAUNCHER else []
        os.kill(pid, number)
        if name == LAUNCHER and number == signal.SIGKILL:
            assert self._process is not None
            await self._process.wait()
            await until(lambda: not any(_alive(child) for child in children), 20, "children outlive their launcher")
        return pid

    async def replaced(self, name: str, old: int) -> int:
        """The pid of the successor, as soon as there is one."""

        def successor() -> int | None:
            pid = self.pid(name)
            return pid if pid != old else None

        return await until(successor, START_TIMEOUT_S, f"{name} is not started again")

    async def until_ready(self, *names: str) -> None:
        for name in names or SERVICES:
            await until_answered(partial(self._ready, name), START_TIMEOUT_S, f"{name} is not ready")

    async def _ready(self, name: str) -> bool:
        pid = self.pid(name)
        return pid is not None and await self._probe(name, pid)()

    def _probe(self, name: str, pid: int) -> Probe:
        match name:
            case "nats":
                return health.http(f"{self.nats_monitor_url}/healthz")
            case "gateway":
                return health.http(f"{self.page_url}/readyz")
        service = health.SCHEDULER if name == "scheduler" else ""
        return health.grpc_health(self._environ(pid).get(_LISTEN[name], "127.0.0.1:1"), service=service)

    def log(self, name: str) -> str:
        path = self._log if name == LAUNCHER else self.state_dir / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""


def _alive(pid: int) -> bool:
    info = process_info(pid)
    return info is not None and not info.zombie


async def until(condition: Callable[[], T | None], timeout_s: float, otherwise: str) -> T:
    """Waits for a condition to hold; returns what it gave."""

    async def ask() -> T | None:
        return condition()

    return await until_answered(ask, timeout_s, otherwise)


async def until_answered(question: Callable[[], Awaitable[T | None]], timeout_s: float, otherwise: str) -> T:
    """Asks until there is an answer, and returns it."""
    deadline = time.monotonic() + timeout_s
    while not (answer := await question()):
        assert time.monotonic() < deadline, f"{otherwise} after {timeout_s:g} s"
        await asyncio.sleep(0.02)
    return answer
