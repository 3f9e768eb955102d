"""Which calls of a unit may be charged, told before they are made.

A job with a budget may lose an evaluator at any moment, and calls of it may be charged whose answers nobody has seen.
So each call is noted in RESULTS before it begins. What is lost with the process is then what was noted and not
answered, and the scheduler gives the rest of the unit's money to others.

That holds only while nobody else has the unit: an evaluator that stood still may go on after the scheduler has taken
its units back. So each message of the unit names the one before it, and NATS refuses it when another one came between:
the taking back, or the word of another evaluator.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from services.bus import Bus, OvertakenError, Turn
from services.evaluator.units.hand import Held, Stop
from services.evaluator.units.storing import until_stored


class Begun:
    """The messages of one unit in hand whose job has a budget."""

    def __init__(self, bus: Bus, held: Held, evaluator: str) -> None:
        self._bus, self._held, self._evaluator = bus, held, evaluator
        self._name = uuid.uuid4().hex
        self._lock = asyncio.Lock()
        self._last = 0
        self._begun = self._noted = 0
        self._overtaken = False

    async def open(self, stored: int) -> None:
        """`stored` counts the unit's items that need no call."""
        unit = self._held.unit
        self._begun = stored
        self._last, _ = await until_stored(
            lambda: self._bus.last_result(unit.job_id, unit.unit), f"the place of {self._held.label}"
        )
        if self._last > unit.counted_until:
            self._let_go()

    async def note(self) -> bool:
        """Returns once one more call is noted; False when it must not be made, as the unit is another's by now."""
        self._begun += 1
        mine = self._begun
        async with self._lock:
            # Calls that began to wait meanwhile are noted together.
            if self._noted < mine and not self._overtaken:
                count = self._begun
                unit, number = self._held.unit, self._held.number
                if await self._in_turn(
                    lambda turn: self._bus.publish_begun(unit, self._evaluator, count, turn, delivery=number)
                ):
                    self._noted = count
            return self._noted >= mine

    async def publish(self, publish: Callable[[Turn | None], Awaitable[int]]) -> None:
        """Stores answers in their turn, and where that has passed, all the same: they are paid."""
        async with self._lock:
            if self._overtaken or not await self._in_turn(publish):
                await until_stored(lambda: publish(None), f"items of {self._held.label}")

    async def _in_turn(self, publish: Callable[[Turn], Awaitable[int]]) -> bool:
        turn = Turn(self._last, f"{self._name}.{self._last}")
        try:
            self._last = await until_stored(lambda: publish(turn), f"the begun calls of {self._held.label}")
        except OvertakenError:
            self._let_go()
        return not self._overtaken

    def _let_go(self) -> None:
        self._overtaken = True
        self._held.stop(Stop.OVERTAKEN)
