"""What the services say now, asked twice a second for all live pages of a gateway together, and only while there are
any."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime

from services.bus import Bus, end_tasks
from services.errors import NoRoomError, TouchstoneError
from services.gateway.backend import Backend
from services.gateway.reads.catalogue import Catalogue
from touchstone.v1 import endpoint_pb2, job_pb2, queue_pb2

BEAT_S = 0.5
_SETTLED_BEATS = 5
"""Stored lists follow the queue within about two seconds: then they are asked for once more."""
_NAMES = {"scheduler": "the scheduler", "results": "the results service", "nats": "NATS"}


class Pulse:
    """`queue` is None while the scheduler does not answer; `notice` says what everybody should know.

    `marks` change with what pages show: "queue" with the queue, the endpoints and the number of evaluators, "jobs" with
    the states of jobs. Marks stay while the scheduler does not answer.
    """

    def __init__(self, backend: Backend, catalogue: Catalogue, nats: Callable[[], Bus | None]) -> None:
        self._backend = backend
        self._catalogue = catalogue
        self._nats = nats
        self._pages = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: dict[str, datetime] = {}
        self._silent: dict[str, datetime] = {}
        self._asked = False
        self._past: deque[str] = deque(maxlen=_SETTLED_BEATS)
        self._turn = asyncio.Event()
        self.queue: queue_pb2.Queue | None = None
        self.notice = ""
        self.marks: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Asks the services while at least one such block runs."""
        self._pages += 1
        if self._pages == 1:
            self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._look())]
        try:
            yield
        finally:
            self._pages -= 1
            if not self._pages:
                tasks, self._tasks, self.marks, self._asked = self._tasks, [], {}, False
                self._past.clear()
                await end_tasks(tasks)

    async def turn(self, most_s: float) -> None:
        """Waits until something may have changed, for `most_s` seconds at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._turn.wait()

    @property
    def silence(self) -> str:
        """Which services do not answer, and since when, as a sentence; empty while all do."""
        if not self._silent:
            return ""
        names = " and ".join(_NAMES[name] for name in self._silent)
        since = min(self._silent.values()).strftime("%H:%M:%S")
        return f"Reconnecting to {names}. Figures are from {since} UTC."

    @property
    def answering(self) -> bool:
        """Whether all services are known to answer."""
        return self._asked and not self._silent

    async def _listen(self) -> None:
        while True:
            answering = await self._backend.health()
            bus = self._nats()
            if bus is not None:
                answering["nats"] = bus.connected
            now = datetime.now(UTC)
            silent = {name: self._heard.setdefault(name, now) for name, well in answering.items() if not well}
            self._heard |= {name: now for name, well in answering.items() if well}
            changed, self._asked = not self._asked or silent.keys() != self._silent.keys(), True
            if changed:
                self._silent = silent
                self._tell()
            await asyncio.sleep(BEAT_S)

    async def _look(self) -> None:
        while True:
            try:
                queue, endpoints = await asyncio.gather(self._catalogue.queue(), self._catalogue.endpoints())
            except NoRoomError as error:
                self.queue, self.notice = None, error.message
            except TouchstoneError:
                self.queue, self.notice = None, ""
            else:
                self.queue, self.notice = queue, queue.notice
                self._past.append(_digest(_states(queue)))
                self.marks = {
                    "queue": _digest([queue.SerializeToString(deterministic=True), *_fleet(endpoints)]),
                    "jobs": f"{self._past[-1]}{self._past[0]}",
                }
            self._tell()
            await asyncio.sleep(BEAT_S)

    def _tell(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()


def _states(queue: queue_pb2.Queue) -> list[bytes]:
    jobs: list[job_pb2.Job] = [*queue.running, *queue.scoring, *queue.pending]
    return [f"{one.job_id} {one.state} {one.progress.items_done} {one.progress.items_total}".encode() for one in jobs]


def _fleet(endpoints: Iterable[endpoint_pb2.Endpoint]) -> list[bytes]:
    """Without the time at which an endpoint was last looked at, which always changes."""
    return [
        f"{one.endpoint} {one.state} {one.detail} {one.slots_busy}/{one.slots_total} {one.resident_model}".encode()
        for one in endpoints
    ]


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:12]
