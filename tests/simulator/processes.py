"""The simulated installation: which processes there are, what each runs, and who starts it again."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import lru_cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import grpc.aio
import nats.aio.client
import nats.errors
import nats.js.api
from nats.nuid import NUID

from services import bus, rpc
from services.bus import key_values, room
from services.bus.contract import stream_configs
from services.errors import UnavailableError
from services.evaluator import worker
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.imports.store import ImportsOfResults
from services.evaluator.settings import Settings as EvaluatorSettings
from services.evaluator.stored.responses import ResultsStore
from services.evaluator.units import puller
from services.results import server as results_server
from services.results.intake import feeds, ordered_stream
from services.results.settings import Settings as ResultsSettings
from services.scheduler import server as scheduler_server
from services.scheduler.lifecycle import end_jobs, maintenance
from services.scheduler.schedules import schedules
from services.scheduler.settings import Limits, WebhookSettings
from services.scheduler.settings import Settings as SchedulerSettings
from tests.simulator.calls import Wires
from tests.simulator.jetstream import FakeServer
from tests.simulator.loop import Process, SimLoop, current
from tests.simulator.model import Models

TOKEN = "service-token"
SCHEDULER, STANDBY, RESULTS = "127.0.0.1:1001", "127.0.0.1:1003", "127.0.0.1:1002"
ENDPOINT = "simulated"
SCHEDULERS = {"scheduler": "s1", "standby": "s2"}
"""By process, the name under which it leads."""
CALLS = 3
"""At once, of each evaluator."""
SLOTS = 2
"""Jobs that may run at once."""
TRIES = 4
"""Calls of a webhook before it is given up."""

_JOB_LOGS: Any = sys.modules["services.bus.job_logs"]
"""The module: its package has a function of the same name."""
_BUS = bus.Settings("nats://127.0.0.1:1", "", 64 * 1024**2, 1)
_CATALOGUE: list[Catalogue] = []
_fields = lru_cache(256)(dataclasses.fields)
_parse = lru_cache(4096)(nats.aio.client.Client._parse_header_lines)
_QUICKER: list[tuple[Any, str, Any]] = [
    (nats.aio.client.Client, "_parse_header_lines", staticmethod(lambda raw: dict(_parse(raw)))),
    (nats.js.api, "fields", lambda of: _fields(of if isinstance(of, type) else type(of))),
]
"""Pure functions of the NATS client that would compute the same again and again: a tenth of a simulation."""
_LOOKS: list[tuple[Any, str, float]] = [
    (puller, "_LOOK_S", 2.0),
    (puller, "_PULL_S", 4.0),
    (worker, "_AGAIN_S", 2.0),
    (ordered_stream, "_IDLE_S", 2.5),
    (feeds, "_ROOM_CHECK_S", 5.0),
    (room, "_LOOK_EVERY_S", 5.0),
    (end_jobs, "_LOOK_S", 1.0),
    (schedules, "_TICK_S", 1.5),
    (maintenance, "_TICK_S", 1.5),
    (maintenance, "_LOST_AFTER_S", 6.0),
    (key_values, "_MARKER_S", 3),
]
"""Seconds that services wait between two looks at something, in place of their own."""


def catalogue() -> Catalogue:
    """The demo suite alone, read once for all simulations: it is data, and the same everywhere."""
    if not _CATALOGUE:
        made = Catalogue(None)
        made._listed = {name: suite for name, suite in made._listed.items() if name == "demo"}
        _CATALOGUE.append(made)
    return _CATALOGUE[0]


class _OwnHandler(_JOB_LOGS.JobLogHandler):  # type: ignore[misc]
    """Processes share one logging tree here: each stores its own lines only."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._process = current()

    def emit(self, record: Any) -> None:
        if current() is self._process:
            super().emit(record)


class _NoFiles:
    """In place of finished jobs' files."""

    def __init__(self, *_: object) -> None: ...

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()


class _Roomy(bus.Room):
    """There is always room. The real one looks at this machine's disk."""

    async def run(self) -> None:
        await asyncio.Event().wait()


class Installation:
    """Starts processes, again and again, as the launcher does."""

    def __init__(self, loop: SimLoop, nats: FakeServer, wires: Wires, models: Models, chance: Random) -> None:
        self.loop, self.nats, self.wires, self.models, self._chance = loop, nats, wires, models, chance
        self.running: dict[str, Process] = {}
        self.starts: dict[str, int] = {}
        self.ended: list[tuple[str, BaseException]] = []
        """Processes that ended by an error other than NATS or the disk being away."""
        self.broken = asyncio.Event()
        """Set by the first of them."""
        self.changed_at = -math.inf
        """When a process has ended last, or began again."""
        self.restarting = True
        self.trace: Callable[[str], None] = lambda line: None
        self._mains: dict[str, Callable[[asyncio.Event], Coroutine[Any, Any, None]]] = {}
        self._stops: dict[str, asyncio.Event] = {}
        loop.on_crash = self._crashed

    def add(self, name: str, main: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        self._mains[name] = main
        self._start(name)

    def _start(self, name: str) -> None:
        stop = asyncio.Event()
        process, task = self.loop.spawn(name, lambda: self._mains[name](stop))
        self.running[name], self._stops[name] = process, stop
        self.starts[name] = self.starts.get(name, 0) + 1
        self.trace(f"{name} starts ({self.starts[name]}.)")
        task.add_done_callback(lambda task: self._ended(name, process, task))

    def _ended(self, name: str, process: Process, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, UnavailableError | nats.errors.Error):
            self.ended.append((name, error))
            self.broken.set()
        self.trace(f"{name} ends{f' with {error!r}' if error is not None else ''}")
        self.loop.kill(process)

    def _crashed(self, process: Process) -> None:
        self.changed_at = self.loop.time()
        if self.running.get(process.name) is process:
            self.trace(f"{process.name} is gone after {process.steps} steps")
            self.nats.network.later(self._chance.uniform(0.1, 1.0), self._again, process.name, process)

    def _again(self, name: str, gone: Process) -> None:
        if self.restarting and self.running.get(name) is gone:
            self.changed_at = self.loop.time()
            self._start(name)

    def kill(self, name: str) -> None:
        """SIGKILL."""
        process = self.running[name]
        if process.alive:
            self.loop.kill(process)

    def stop(self, name: str) -> None:
        """SIGTERM: the process ends in order and is started again."""
        self._stops[name].set()


@contextmanager
def replaced(nats_server: FakeServer, wires: Wires, *, with_logs: bool, brief: bool, caller: Any) -> Iterator[None]:
    """Inside, the services find the simulated network, wires and receivers where the real ones were.

    A `brief` simulation leaves out what takes most of the time and tells least: streams are there from the beginning,
    and who only looks whether something has changed looks less often.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(nats.aio.client, "TcpTransport", nats_server.network.transport))
        stack.enter_context(patch.object(grpc.aio, "server", wires.server))
        stack.enter_context(patch.object(grpc.aio, "insecure_channel", wires.channel))
        stack.enter_context(patch.object(scheduler_server, "HttpCaller", caller))
        stack.enter_context(patch.object(bus.Room, "from_env", lambda *_: _Roomy()))
        stack.enter_context(patch.object(NUID, "next", _next_id(count(1))))
        for owner, name, quicker in _QUICKER:
            stack.enter_context(patch.object(owner, name, quicker))
        if brief:
            for config in stream_configs(_BUS.results_max_bytes):
                nats_server.create_stream(str(config.name), config.as_dict())
            stack.enter_context(patch.object(bus.Bus, "ensure", _nothing))
            for module, name, pause in _LOOKS:
                stack.enter_context(patch.object(module, name, pause))
        # A simulated process has no disk.
        stack.enter_context(patch.object(results_server, "JobFiles", _NoFiles))
        if with_logs:
            stack.enter_context(patch.object(_JOB_LOGS, "JobLogHandler", _OwnHandler))
        else:
            stack.enter_context(patch.object(bus, "job_logs", lambda *_: nullcontext()))
        yield


def scheduler(name: str, address: str = SCHEDULER) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    settings = SchedulerSettings(
        name=name,
        listen=address,
        results=RESULTS,
        bus=_BUS,
        rpc=rpc.Settings("token", TOKEN),
        limits=Limits(running_jobs=SLOTS, pending_per_owner=50),
        webhooks=WebhookSettings(loopback=True, span_s=4.0, tries=TRIES),
    )
    return lambda stop: scheduler_server.serve(settings, stop)


def results() -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    settings = ResultsSettings(
        listen=RESULTS,
        database=Path("/nowhere/touchstone.duckdb"),
        backups="/nowhere/backups",
        bus=_BUS,
        rpc=rpc.Settings("token", TOKEN),
        answers_max_bytes=0,
    )
    return lambda stop: results_server.serve(settings, stop)


def evaluator(name: str, models: Models) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    settings = EvaluatorSettings(
        name, "127.0.0.1:0", ack_wait_s=3.0, grace_s=2.0, unit_size=2, first_outage_s=20.0, outage_s=60.0
    )
    endpoint = Endpoint(ENDPOINT, "openai", "http://127.0.0.1:2", concurrency=CALLS)

    async def main(stop: asyncio.Event) -> None:
        """As `services.evaluator.server`, which reads its settings from the environment."""
        connection = await bus.open_bus(_BUS, f"evaluator {name}")
        channel = rpc.channel(RESULTS)
        try:
            async with bus.job_logs(connection.publish_log, f"evaluator {name}", [TOKEN]):
                work = worker.Worker(
                    settings,
                    connection,
                    catalogue(),
                    [endpoint],
                    lambda _: models.provider(name),
                    ResultsStore(channel, TOKEN),
                    ImportsOfResults(channel, TOKEN),
                    bus.Datasets(connection),
                )
                await work.run(stop, _nothing)
        finally:
            await channel.close()
            await connection.close()

    return main


async def _nothing(*_: Any) -> None:
    pass


def _next_id(numbers: count[int]) -> Callable[[Any], bytearray]:
    """Ids of requests, of their usual length but quicker than drawn ones."""
    return lambda _: bytearray(b"%022d" % next(numbers))
