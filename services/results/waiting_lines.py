"""How many questions are answered at once, and how long the others wait."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from services.errors import BusyError

T = TypeVar("T")

_SHARE = 0.2
"""Weight of the newest work in the mean that tells how fast the line moves."""
_LONGEST_RETRY_S = 30


class WaitingLine:
    """At most `at_once` works at a time; up to `most` others wait in order, each for `wait_s` at most."""

    def __init__(self, at_once: int, most: int, wait_s: float) -> None:
        self._free = at_once
        self._at_once = at_once
        self._most = most
        self._wait_s = wait_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._mean_s = 0.1

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to. Raises BusyError when the line is full or does not move; the work is not begun then.

        A caller that goes away while it runs leaves it running: it holds its place until it is done.
        """
        try:
            await self._enter()
        except BaseException:
            work.close()
            raise
        loop = asyncio.get_running_loop()
        began = loop.time()
        running = loop.create_task(work)

        def done(task: asyncio.Task[T]) -> None:
            self._mean_s += _SHARE * (loop.time() - began - self._mean_s)
            self._leave()
            if not task.cancelled():
                task.exception()  # of a caller that has gone nobody else asks

        running.add_done_callback(done)
        return await asyncio.shield(running)

    async def _enter(self) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        if len(self._waiting) >= self._most:
            raise self._busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._wait_s):
                await turn
        except TimeoutError:
            self._give_up(turn)
            raise self._busy() from None
        except BaseException:
            self._give_up(turn)
            raise

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self._leave()  # its turn came at the same moment
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _busy(self) -> BusyError:
        wait_s = len(self._waiting) * self._mean_s / self._at_once
        seconds = min(_LONGEST_RETRY_S, max(1, math.ceil(wait_s)))
        return BusyError(f"Too many questions are waiting for the results service. Try again in {seconds} s.", seconds)
