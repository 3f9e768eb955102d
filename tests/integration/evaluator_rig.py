"""Plays the scheduler and the results service around a real evaluator worker and a real NATS."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from services.bus import (
    JOBS,
    KIND_FAULT,
    KIND_ITEMS,
    KIND_PLAN,
    RESULTS,
    WORK,
    Bus,
    Datasets,
    JobHeaders,
    ResultHeaders,
    connect,
    job_key,
    kv_subject,
)
from services.evaluator.catalogue import Catalogue
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.make_provider import provider
from services.evaluator.providers.protocol.provider import Provider
from services.evaluator.settings import Settings
from services.evaluator.stored.responses import ResponseStore
from services.evaluator.worker import Worker
from tests.nats_server import NatsServer
from touchstone.v1 import endpoint_pb2, item_result_pb2, job_pb2, suite_pb2, unit_pb2

RUNNING = job_pb2.Job.STATE_RUNNING
CATALOGUE = Catalogue(None)
TASK = "sentiment"


@dataclass(frozen=True, slots=True)
class Stored:
    """One message of the RESULTS stream."""

    headers: ResultHeaders
    subject: str
    data: bytes

    @property
    def batch(self) -> item_result_pb2.ItemResultBatch:
        return item_result_pb2.ItemResultBatch.FromString(self.data)

    @property
    def fault(self) -> unit_pb2.Fault:
        return unit_pb2.Fault.FromString(self.data)

    @property
    def plan(self) -> unit_pb2.Plan:
        return unit_pb2.Plan.FromString(self.data)


class Rig:
    """One job at a time is enough for most tests; `job` makes further ones."""

    def __init__(self, bus: Bus, server: NatsServer) -> None:
        self.bus = bus
        self.server = server

    async def job(self, job_id: str = "", *, state: job_pb2.Job.State = RUNNING, attempt: int = 1) -> str:
        """Writes a job's record; returns its id."""
        job_id = job_id or str(uuid.uuid4())
        headers = JobHeaders(state, attempt).encode()
        await self.bus.js.publish(kv_subject(JOBS, job_key(job_id)), b"", headers=headers)
        return job_id

    def unit(
        self, job_id: str, number: int, start: int, stop: int, *, endpoint: str = "stub", model: str = "stub"
    ) -> unit_pb2.Unit:
        spec = job_pb2.JobSpec(endpoint=endpoint, model=model, suite=job_pb2.SuiteWork(suite="demo"))
        return unit_pb2.Unit(job_id=job_id, attempt=1, unit=number, spec=spec, task=TASK, start=start, stop=stop)

    async def release(self, *units: unit_pb2.Unit, endpoint: str = "stub") -> None:
        for unit in units:
            assert await self.bus.release(endpoint, 3, unit)

    async def release_items(self, job_id: str, items: int, unit_size: int = 32) -> None:
        """Units over the first `items` of the task, all at once."""
        for number, start in enumerate(range(0, items, unit_size)):
            await self.release(self.unit(job_id, number, start, min(start + unit_size, items)))

    async def stored(self, kind: str = "") -> list[Stored]:
        """Everything on the RESULTS stream, in order."""
        found: list[Stored] = []
        last = (await self.bus.js.stream_info(RESULTS)).state.last_seq
        for sequence in range(1, last + 1):
            msg = await self.bus.js.get_msg(RESULTS, seq=sequence)
            headers = ResultHeaders.decode(msg.headers)
            if not kind or headers.kind == kind:
                found.append(Stored(headers, str(msg.subject), msg.data or b""))
        return found

    async def items(self) -> list[item_result_pb2.ItemResult]:
        return [item for stored in await self.stored(KIND_ITEMS) for item in stored.batch.items]

    async def work_left(self) -> int:
        """Units that are not acknowledged."""
        return (await self.bus.js.stream_info(WORK)).state.messages

    async def until_acknowledged(self, timeout_s: float = 90) -> float:
        """Waits until no unit is left; returns the seconds that took."""
        return await until(lambda: _is_zero(self.work_left()), timeout_s)

    async def fault(self, timeout_s: float = 90) -> unit_pb2.Fault:
        await until(lambda: _any(self.stored(KIND_FAULT)), timeout_s)
        return (await self.stored(KIND_FAULT))[0].fault

    async def plan(self, spec: job_pb2.JobSpec, prices: endpoint_pb2.Prices | None = None) -> unit_pb2.Plan:
        """What the evaluator answers to a planning unit; `prices` are those of an earlier attempt."""
        job_id = await self.job(state=job_pb2.Job.STATE_PLANNING)
        unit = unit_pb2.Unit(job_id=job_id, attempt=1, unit=-1, spec=spec, prices=prices)
        await self.release(unit, endpoint="plan")

        async def answers() -> list[Stored]:
            return [s for s in await self.stored(KIND_PLAN) if s.subject == f"results.{job_id}.plan"]

        await until(lambda: _any(answers()), 90)
        return (await answers())[0].plan

    async def work(self, endpoint: str, ack_wait_s: float) -> JetStreamContext.PullSubscription:
        """An evaluator's place at the endpoint's units, without an evaluator."""
        return await self.bus.js.pull_subscribe_bind(await self.bus.work_consumer(endpoint, ack_wait_s), stream=WORK)

    async def released_again(self, subject_part: str) -> Msg | None:
        """A unit that waits to be delivered, taken without acknowledging; None when there is none."""
        subscription = await self.work(subject_part, 1)
        try:
            return (await subscription.fetch(1, timeout=10))[0]
        except nats.errors.TimeoutError:
            return None


class Link:
    """A TCP relay to NATS that a test can cut, so that one client is away while others are not."""

    def __init__(self, server: NatsServer) -> None:
        self._target = server.port
        self._open = True
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.cut()
        if self._listener is not None:
            self._listener.close()

    def cut(self) -> None:
        self._open = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._open = True

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back}
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        self._writers -= {writer, back}

    @staticmethod
    async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()


async def _is_zero(number: Awaitable[int]) -> bool:
    return await number == 0


async def _any(found: Awaitable[Sequence[object]]) -> bool:
    return bool(await found)


async def until(condition: Callable[[], object], timeout_s: float = 60, every_s: float = 0.02) -> float:
    """Waits for an asynchronous or plain condition; returns the seconds that took."""
    started = time.monotonic()
    while True:
        held = condition()
        if inspect.isawaitable(held):
            held = await held
        if held:
            return time.monotonic() - started
        if time.monotonic() - started > timeout_s:
            raise AssertionError(f"not within {timeout_s} s")
        await asyncio.sleep(every_s)


@asynccontextmanager
async def open_rig(server: NatsServer) -> AsyncIterator[Rig]:
    bus = await connect(server.url, "test")
    await bus.ensure(256 * 1024 * 1024)
    try:
        yield Rig(bus, server)
    finally:
        await bus.close()


def settings(name: str = "evaluator-1", **changes: Any) -> Settings:
    """Short times."""
    short = Settings(name, "127.0.0.1:0", ack_wait_s=3.0, grace_s=2.0, first_outage_s=2.0, outage_s=5.0)
    return replace(short, **changes)


def stub_endpoint(url: str, kind: str = "openai", **changes: Any) -> Endpoint:
    return replace(Endpoint("stub", kind, url, concurrency=8), **changes)


@asynccontextmanager
async def running(
    server: NatsServer,
    endpoints: Sequence[Endpoint],
    options: Settings | None = None,
    *,
    url: str = "",
    catalogue: Catalogue = CATALOGUE,
    store: ResponseStore | None = None,
    make_provider: Callable[[Endpoint], Provider] = provider,
) -> AsyncIterator[Worker]:
    """A worker in this process with a connection of its own; drained at the end."""
    options = options or settings()
    bus = await connect(url or server.url, options.name)
    worker = Worker(options, bus, catalogue, endpoints, make_provider, store, datasets=Datasets(bus))
    stop, ready = asyncio.Event(), asyncio.Event()

    async def is_ready() -> None:
        ready.set()

    task = asyncio.create_task(worker.run(stop, is_ready))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield worker
    finally:
        stop.set()
        await task
        await bus.close()


async def start_process(
    server: NatsServer, endpoints_file: Path, name: str = "evaluator-p", **environment: str
) -> asyncio.subprocess.Process:
    """`python -m services.evaluator` with short times."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.evaluator",
        env=os.environ
        | {
            "TOUCHSTONE_NATS_URL": server.url,
            "TOUCHSTONE_NATS_MONITOR_URL": server.monitor_url,
            "TOUCHSTONE_ENDPOINTS": str(endpoints_file),
            "TOUCHSTONE_EVALUATOR_NAME": name,
            "TOUCHSTONE_EVALUATOR_LISTEN": "127.0.0.1:0",
            "TOUCHSTONE_ACK_WAIT_S": "2",
        }
        | environment,
        stderr=asyncio.subprocess.PIPE,
    )


def prompt_answers(label: Callable[[str], str] = lambda reference: reference) -> dict[str, str]:
    """Prompt → answer for every item of the task; `label` chooses the label to answer with from the right one."""
    task = CATALOGUE.task("demo", TASK, suite_pb2.MODE_GENERATE)
    return {
        "\n\n".join(message.content for message in item.messages): task.answer(label(item.reference))
        for item in task.items(range(task.size()))
    }
