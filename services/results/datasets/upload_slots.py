"""The places for uploads, shared between their owners."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.errors import LimitReachedError
from services.words import sentences

_PATIENCE_S = 5.0
"""How long an owner's second upload may continue while another owner waits."""
_AGAIN_S = 10


@dataclass(eq=False, slots=True)
class _Waiting:
    owner: str
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(eq=False, slots=True)
class _Held:
    owner: str
    ends: asyncio.Timeout
    asked_back: bool = False


class UploadSlots:
    """At most `at_once` uploads. An owner may have several only while no other owner waits. Then the newest ends, so
    that nobody keeps all places with uploads that trickle for an hour."""

    def __init__(self, at_once: int, wait_s: float, patience_s: float = _PATIENCE_S) -> None:
        self._at_once, self._wait_s, self._patience_s = at_once, wait_s, patience_s
        self._held: list[_Held] = []
        self._given = 0
        """Places held or promised."""
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        """Raises LimitReachedError when no place is free for too long, and when this one is needed for another
        owner."""
        await self._turn(owner)
        try:
            async with asyncio.timeout(None) as ends:
                held = _Held(owner, ends)
                self._held.append(held)
                try:
                    yield
                finally:
                    self._held.remove(held)
        except TimeoutError as error:
            if not ends.expired():
                raise
            raise LimitReachedError(
                "Another user is waiting to upload, and you already have an upload in progress. Try again when it "
                "has ended.",
                _AGAIN_S,
            ) from error
        finally:
            self._pass_on()

    async def _turn(self, owner: str) -> None:
        if self._given < self._at_once:
            self._given += 1
            return
        mine = _Waiting(owner)
        self._waiting.append(mine)
        asking = asyncio.get_running_loop().call_later(self._patience_s, self._ask_back, owner)
        try:
            async with asyncio.timeout(self._wait_s):
                await mine.turn
        except BaseException as error:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._pass_on()
            if isinstance(error, TimeoutError):
                raise LimitReachedError(sentences.busy(self._at_once, "uploads"), _AGAIN_S) from error
            raise
        finally:
            asking.cancel()

    def _pass_on(self) -> None:
        """Gives a place to the owner who has waited longest, preferring those without one."""
        having = {held.owner for held in self._held}
        left = [waiting for waiting in self._waiting if not waiting.turn.done()]
        first = min(left, key=lambda waiting: waiting.owner in having, default=None)
        if first is None:
            self._given -= 1
            return
        self._waiting.remove(first)
        first.turn.set_result(None)

    def _ask_back(self, owner: str) -> None:
        """Ends the newest upload of an owner with several, for an owner without one."""
        having = Counter(held.owner for held in self._held if not held.asked_back)
        if having[owner]:
            return
        for held in reversed(self._held):
            if having[held.owner] > 1 and not held.asked_back:
                held.asked_back = True
                held.ends.reschedule(asyncio.get_running_loop().time())
                return
