"""One engine as a child process: started, watched until it is healthy, stopped with everything it started."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import services
from services.evaluator.endpoints.engine_options import HOST, EngineModel, EngineOptions
from services.evaluator.engine import process_table
from services.evaluator.engine.keeper import Start
from services.evaluator.engine.process_table import MARK

log = logging.getLogger(__name__)

_KEEPER = "services.evaluator.engine.keeper"
_ROOT = Path(services.__file__).parents[1]
_HEALTH_EVERY_S = 0.1
_SLOW_STOP_S = 30.0
TAIL_LINES = 30
TAIL_BYTES = 4000

Healthy = Callable[[int], Awaitable[bool]]
"""Whether the engine on this port is ready."""


class EngineError(Exception):
    """An engine that did not start. `message` is a sentence; `final`: another try would fail in the same way."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.final = final


class EngineProcess:
    """A started engine. `ended` is done once it and all that it started are gone; its result says in words how it
    ended."""

    def __init__(
        self, model: str, port: int, keeper: asyncio.subprocess.Process, records: Path, log_file: Path
    ) -> None:
        self.model = model
        self.port = port
        self.stopping = False
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keeper = keeper
        self._records = records
        self._log_file = log_file
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls, endpoint: str, options: EngineOptions, model: EngineModel) -> EngineProcess:
        """Starts the model's command; it need not be healthy yet. Raises EngineError when the keeper cannot be
        started."""
        records, log_file = folder(options, endpoint), log_path(options, endpoint)
        directory = options.directory or options.state_dir
        port, mark = _free_port(), secrets.token_hex(16)
        command = options.command_for(model, port)
        start = Start(
            parent=os.getpid(),
            command=command,
            directory=str(directory),
            env={**options.env, MARK: mark},
            mark=mark,
            log=str(log_file),
            record=str(records / f"{mark}.json"),
            grace_s=options.stop_grace_s,
        )
        try:
            records.mkdir(parents=True, exist_ok=True)
            log_file.parent.mkdir(parents=True, exist_ok=True)
            keeper = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _KEEPER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd=_ROOT,
                env=dict(options.env),
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"The engine of {endpoint} cannot be started: {error}.") from error
        log.info("%s: starting the engine for %s on port %d: %s", endpoint, model.name, port, " ".join(command))
        engine = cls(model.name, port, keeper, records, log_file)
        assert keeper.stdin is not None
        keeper.stdin.write(start.line())
        return engine

    async def until_healthy(self, healthy: Healthy, timeout_s: float) -> None:
        """Raises EngineError when the engine ends before, or is not healthy in time; it is then stopped."""
        deadline = time.monotonic() + timeout_s
        while not self.ended.done() and time.monotonic() < deadline:
            if await healthy(self.port) and not self.ended.done():
                return
            await asyncio.wait({self.ended}, timeout=_HEALTH_EVERY_S)
        if self.ended.done():
            raise EngineError(f"The engine for {self.model} {self.ended.result()} before it was ready.")
        await self.stop()
        raise EngineError(
            f"The engine for {self.model} was not ready after {timeout_s:g} s. If it loads slowly, raise "
            "start_timeout_s.",
            final=True,
        )

    async def stop(self) -> None:
        """SIGTERM, after the grace SIGKILL; returns when no process of the engine is left."""
        self.stopping = True
        assert self._keeper.stdin is not None
        with suppress(OSError):
            self._keeper.stdin.write(b"stop\n")
        while not self.ended.done():
            done, _ = await asyncio.wait({self.ended}, timeout=_SLOW_STOP_S)
            if not done:
                log.warning("the engine for %s does not stop; waiting before another one starts", self.model)

    def tail(self) -> str:
        """The end of its log."""
        return tail(self._log_file)

    async def _watch(self) -> None:
        how = ""
        assert self._keeper.stdout is not None
        async for line in self._keeper.stdout:
            event = json.loads(line)
            if "error" in event:
                how = f"could not be started ({event['error']})"
            elif "ended" in event:
                how = _ending(event["ended"])
        await self._keeper.wait()
        if not how:
            # The keeper was killed. The kernel then kills the engine, but not what the engine has started.
            how = "lost the process that watches it"
            while not await asyncio.to_thread(process_table.end_left, self._records):
                log.error("processes of the engine for %s do not stop", self.model)
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        log.info("the engine for %s %s", self.model, how)
        self.ended.set_result(how)


def folder(options: EngineOptions, endpoint: str) -> Path:
    """Holds the records of an endpoint's engines."""
    return options.state_dir / "engines" / endpoint


def log_path(options: EngineOptions, endpoint: str) -> Path:
    """The output of the endpoint's engine since its last start; the previous one is `….1`."""
    return options.state_dir / "logs" / f"engine-{endpoint}.log"


def tail(path: Path) -> str:
    """The last lines of a log: at most 30, and at most 4,000 bytes."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4 * TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
    except OSError:
        return ""
    return "\n".join(lines).encode()[-TAIL_BYTES:].decode("utf-8", "ignore")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _ending(status: int | None) -> str:
    if status is None:
        return "ended"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was terminated by {signal.Signals(-code).name}"
    except ValueError:
        return f"was terminated by signal {-code}"
