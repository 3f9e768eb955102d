"""Limits per user, held in this process: requests in an exact sliding window, and open event streams."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from services.errors import LimitReachedError, UnavailableError
from services.telemetry import metrics
from services.words import refusals

T = TypeVar("T")


class SlidingWindow:
    """At most `limit` admissions of one user in any `window_s` seconds. Refusals do not count."""

    def __init__(self, limit: int, window_s: float = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._admitted: dict[str, deque[float]] = {}

    def admit(self, user: str) -> None:
        """Raises LimitReachedError, which says when the oldest admission leaves the window."""
        now = self._clock()
        times = self._admitted.setdefault(user, deque())
        while times and now - times[0] >= self._window_s:
            times.popleft()
        if len(times) >= self._limit:
            metrics.REFUSALS.add("requests")
            wait = max(1, math.ceil(times[0] + self._window_s - now))
            raise LimitReachedError(
                f"More than {refusals.counted(self._limit, 'request')} in {self._window_s:.0f} seconds. "
                f"Try again in {wait} s.",
                wait,
            )
        times.append(now)
        if len(self._admitted) > 10_000:
            self._forget(now)

    @property
    def users(self) -> int:
        """Users that are remembered."""
        return len(self._admitted)

    def _forget(self, now: float) -> None:
        idle = [user for user, times in self._admitted.items() if not times or now - times[-1] >= self._window_s]
        for user in idle:
            del self._admitted[user]


class Streams:
    """Long answers or requests under way, per user, and the event that ends them all. `what` names them in the refusal
    when there are too many, `limit` in metrics."""

    def __init__(self, per_user: int, what: str = "live pages and event streams", limit: str = "streams") -> None:
        self._per_user = per_user
        self._what = what
        self._limit = limit
        self._open: Counter[str] = Counter()
        self.stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends every stream, so that the server can stop."""
        self.stopping.set()

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work. Raises UnavailableError when the server stops before; then the work is cancelled."""
        going = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait((going, stopping), return_when=asyncio.FIRST_COMPLETED)
            if going.done():
                return going.result()
            raise UnavailableError("The server is stopping. Send this again in a moment.")
        finally:
            stopping.cancel()
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)

    @contextmanager
    def slot(self, user: str) -> Iterator[None]:
        """Holds one stream of the user. Raises LimitReachedError when all are taken."""
        if self._open[user] >= self._per_user:
            metrics.REFUSALS.add(self._limit)
            raise LimitReachedError(refusals.open_already(self._per_user, self._what), 10)
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]
