"""Callers' reads: a bounded number at once by turns of users, long ones apart, equal ones computed once.

What the service reads for itself goes to the database directly, which keeps threads for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import Message

from services import rpc
from services.results.read_queue.waiting_lines import PARTY, Party, WaitingLine
from services.results.storage.database import LONG_READERS, READERS, Connection, Database
from services.results.visibility import Visibility

T = TypeVar("T")

WAIT_S = 20.0
"""With the answer itself less than the 30 s that the gateway waits."""
_MOST_WAITING = 500
_MOST_LONG_WAITING = 50
_SHARDS_AT_ONCE = 2


@dataclass(slots=True)
class _Flight:
    """One computation, those who wait for it, and the database's version when it began; None before that."""

    task: asyncio.Task[Any]
    party: Party
    waiting: int = 0
    version: int | None = None


class SharedAnswers:
    """Computes the answer to equal questions once. `version` counts the database's changes.

    A question joins a computation that began after the last change, or that has not begun; so an answer is never older
    than its question. Of equal questions at most one computation runs and one waits for it.
    """

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._running: dict[Hashable, _Flight] = {}
        self._next: dict[Hashable, _Flight] = {}

    async def get(self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, Any]], user: str) -> Any:
        """What `compute` returns or raises, which finds those who wait for it in PARTY. It is cancelled when nobody
        waits any more."""
        flight = self._running.get(key) or self._next.get(key)
        if flight is None:
            flight = self._start(key, compute, user, None)
        elif flight.version is not None and flight.version != self._version():
            flight = self._next.get(key) or self._start(key, compute, user, flight)
        flight.party.join(user)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()

    def _start(
        self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, Any]], user: str, before: _Flight | None
    ) -> _Flight:
        async def fly() -> Any:
            if before is not None:
                await asyncio.wait((before.task,))
                if self._next.get(key) is flight:
                    self._running[key] = self._next.pop(key)
            flight.version = self._version()
            try:
                return await compute()
            finally:
                self._forget(key, flight)

        party, context = Party(user), copy_context()
        context.run(PARTY.set, party)
        flight = _Flight(asyncio.get_running_loop().create_task(fly(), context=context), party)
        (self._running if before is None else self._next)[key] = flight
        return flight

    def _forget(self, key: Hashable, flight: _Flight) -> None:
        for flights in (self._running, self._next):
            if flights.get(key) is flight:
                del flights[key]


class Questions:
    """Over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._quick = WaitingLine(READERS - 1, _MOST_WAITING, WAIT_S)
        self._long = WaitingLine(LONG_READERS - 1, _MOST_LONG_WAITING, WAIT_S)
        self._shards = WaitingLine(_SHARDS_AT_ONCE, _MOST_WAITING, WAIT_S)
        self._shared = SharedAnswers(lambda: database.version)

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """As the database's `read`. Raises BusyError when too many wait, or after WAIT_S seconds of waiting."""
        return await self._quick.run(self._database.read(ask), _party())

    async def read_long(self, ask: Callable[[Connection], T]) -> T:
        """As `read`, for what may take seconds."""
        return await self._long.run(self._database.read_long(ask), _party())

    async def read_shards(self, work: Coroutine[Any, Any, T]) -> T:
        """As `read`, for what fetches rows of datasets from NATS: a shard takes megabytes while it is read."""
        return await self._shards.run(work, _party())

    async def once(self, request: Message, visible: Visibility, answer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `answer` returns or raises, computed once for equal requests that see the same. It may use nothing of
        its caller but these two."""
        key = (request.DESCRIPTOR.full_name, request.SerializeToString(deterministic=True), visible)
        shared: T = await self._shared.get(key, answer, rpc.identity().user)
        return shared


def _party() -> Party:
    return PARTY.get(None) or Party(rpc.identity().user)
