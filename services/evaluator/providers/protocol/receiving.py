"""How many bytes of answers this process holds at once while it reads them.

An answer counts from `SMALL_BYTES` on, so that usual ones never wait. An answer without room waits, which makes its
provider wait, too. The oldest unfinished answer continues in any case, up to the bound of a single answer. So calls
cannot block each other, and the process holds at most the limit plus one answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from services.evaluator.providers.protocol.provider import ProviderError

USUAL_BYTES = 256 * 1024 * 1024
SMALL_BYTES = 256 * 1024
WAIT_S = 120.0


class Room:
    """What all calls share. `most_bytes` may be set before the first call."""

    def __init__(self, most_bytes: int = USUAL_BYTES) -> None:
        self.most_bytes = most_bytes
        self.held_bytes = 0
        self._shares: OrderedDict[Share, asyncio.Event] = OrderedDict()
        """Answers that count, the oldest first, with the events that wake them."""

    def share(self, name: str) -> Share:
        """Room for one answer of the endpoint with this name."""
        return Share(self, name)

    async def fit(self, share: Share, size: int) -> None:
        """Raises ProviderError when there is no room for a long time."""
        counted = max(0, size - SMALL_BYTES)
        if counted > share.counted:
            wake = self._shares.setdefault(share, asyncio.Event())
            if not self._has_room(share, counted):
                await self._wait(share, counted, wake)
        self._count(share, counted)

    def leave(self, share: Share) -> None:
        """Frees the room: the answer has been read, or given up."""
        self._shares.pop(share, None)
        self._count(share, 0)
        for wake in self._shares.values():
            wake.set()

    def _has_room(self, share: Share, counted: int) -> bool:
        fits = self.held_bytes - share.counted + counted <= self.most_bytes
        return fits or next(iter(self._shares)) is share

    def _count(self, share: Share, counted: int) -> None:
        self.held_bytes += counted - share.counted
        share.counted = counted

    async def _wait(self, share: Share, counted: int, wake: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                while not self._has_room(share, counted):
                    wake.clear()
                    await wake.wait()
        except TimeoutError:
            raise ProviderError(
                f"{share.name} sends answers that together are too large to read: more than "
                f"{self.most_bytes // 2**20} MiB. Lower max_tokens or concurrency, or raise "
                "TOUCHSTONE_RECEIVE_MAX_BYTES.",
                retryable=True,
            ) from None


class Share:
    """The room that one answer takes. `counted` is in bytes."""

    def __init__(self, room: Room, name: str) -> None:
        self.name = name
        self.counted = 0
        self._room = room

    async def fit(self, size: int) -> None:
        """Waits until the answer may hold `size` bytes. Raises ProviderError."""
        if self.counted or size > SMALL_BYTES:
            await self._room.fit(self, size)

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.leave(self)


ROOM = Room()
"""The room of this process, for all endpoints."""
