"""Packs a unit's item results into few messages."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Container, Iterable

from services.bus import Bus, Turn, heed_cancel
from services.evaluator.units.begun import Begun
from services.evaluator.units.hand import Held
from services.evaluator.units.storing import until_stored
from touchstone.v1 import item_result_pb2

MOST_ITEMS = 64
MOST_BYTES = 512 * 1024
LINGER_S = 0.25

Store = Callable[[list[item_result_pb2.ItemResult], bool], Awaitable[None]]
"""Stores results; the flag marks the unit's last message. Returns after JetStream has them."""


class Packer:
    """Collects the results of one unit and stores them in order: at most 64 items or 512 KB a message, and at most
    250 ms after the first one waits. One result alone may exceed the bytes; `result.py` keeps it below NATS's limit.
    """

    def __init__(self, expected: int, store: Store) -> None:
        self._missing = expected
        self._store = store
        self._waiting: list[tuple[item_result_pb2.ItemResult, int]] = []
        self._bytes = 0
        self._since = 0.0
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()

    @classmethod
    def of(
        cls,
        held: Held,
        expected: int,
        bus: Bus,
        evaluator: str,
        *,
        delivery: int = 0,
        told: Container[int] = (),
        begun: Begun | None = None,
    ) -> Packer:
        """For the results of a unit in hand, published until JetStream has them, as those of this delivery; 0 means the
        one in hand. `told` are positions whose costs are known already; `begun` publishes in its turn."""
        unit = held.unit

        async def store(items: list[item_result_pb2.ItemResult], done: bool) -> None:
            batch = item_result_pb2.ItemResultBatch(
                job_id=unit.job_id,
                attempt=unit.attempt,
                unit=unit.unit,
                task=unit.task,
                items=items,
                evaluator=evaluator,
            )

            # Sent again where only the acknowledgement was lost, it must not pay and count its answers twice.
            name = uuid.uuid4().hex

            async def publish(turn: Turn | None = None) -> int:
                number = delivery or held.number
                return await bus.publish_items(batch, delivery=number, done=done, told=told, turn=turn, name=name)

            if begun is not None:
                await begun.publish(publish)
            else:
                await until_stored(publish, f"items of {held.label}")

        return cls(expected, store)

    def add(self, result: item_result_pb2.ItemResult) -> None:
        size = result.ByteSize()
        if not self._waiting:
            self._since = time.monotonic()
            self._wake.set()
        self._waiting.append((result, size))
        self._bytes += size
        self._missing -= 1
        if self._full or not self._missing:
            self._wake.set()

    async def begin(self, known: Iterable[item_result_pb2.ItemResult], *, at_once: bool) -> None:
        """Adds results that need no call. `at_once`: they are stored before any call is noted, so that what is noted
        and not stored are calls."""
        for result in known:
            self.add(result)
        if at_once and self._missing:
            await self.flush()

    async def room(self, most: int) -> None:
        """Waits while more than so many results wait. Lets others run in any case."""
        await asyncio.sleep(0)
        while len(self._waiting) > most:
            self._taken.clear()
            await self._taken.wait()

    async def run(self) -> None:
        """Returns when every expected result is stored, the last message marked as the unit's last."""
        done = False
        while not done:
            await self._due()
            batch = self._take()
            done = not self._missing and not self._waiting
            await self._store(batch, done)
            if not done:
                heed_cancel()

    async def flush(self) -> None:
        """Stores what waits, without ending the unit."""
        while self._waiting:
            await self._store(self._take(), False)

    @property
    def _full(self) -> bool:
        return len(self._waiting) >= MOST_ITEMS or self._bytes >= MOST_BYTES

    async def _due(self) -> None:
        while self._missing and not self._full:
            self._wake.clear()
            left = self._since + LINGER_S - time.monotonic() if self._waiting else None
            if left is not None and left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    await self._wake.wait()
            except TimeoutError:
                return

    def _take(self) -> list[item_result_pb2.ItemResult]:
        taken: list[item_result_pb2.ItemResult] = []
        size = 0
        while len(taken) < min(MOST_ITEMS, len(self._waiting)):
            result, result_size = self._waiting[len(taken)]
            if taken and size + result_size > MOST_BYTES:
                break
            taken.append(result)
            size += result_size
        del self._waiting[: len(taken)]
        self._bytes -= size
        self._taken.set()
        self._since = time.monotonic()
        return taken
