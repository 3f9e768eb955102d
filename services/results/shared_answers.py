"""One answer for equal questions that come at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from services.results.waiting_lines import PARTY, Party


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
