"""Packs a unit's item results into few messages, and notes calls before they are made where a job has a budget.

A job with a budget may lose an evaluator at any moment, and its unanswered calls may be charged. So each call is noted
in RESULTS before it begins. The process then loses only the calls that were noted and not answered, and the scheduler
gives the rest of the unit's money to others.

That holds only while no other evaluator has the unit: a frozen evaluator may continue after the scheduler has taken its
units back. So each message of the unit names the previous one, and NATS refuses it if another one came between: the
scheduler's, or another evaluator's.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Container, Iterable

from services.bus import Bus, OvertakenError, Turn, heed_cancel
from services.evaluator.pacing.pace import Rate
from services.evaluator.storing import until_stored
from services.evaluator.units.units_in_hand import FaultError, Held, Stop
from touchstone.v1 import item_result_pb2

MOST_ITEMS = 64
MOST_BYTES = 512 * 1024
LINGER_S, RUSH_LINGER_S = 0.02, 0.25
"""How long a result may wait for others. What a killed evaluator has received and not sent is asked for, and paid,
again."""
RUSH_PER_S = 100.0
"""Calls of the endpoint per second from which on messages of few results would cost more than the calls."""
_MOST_RESULT_BYTES = 1_000_000
"""NATS refuses messages above 1 MB, however often they are sent."""

_LONG_CHARACTERS = 256

Store = Callable[[list[item_result_pb2.ItemResult], bool], Awaitable[None]]
"""Stores results; the flag marks the unit's last message. Returns after JetStream has them."""


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
        """Returns once one more call is noted; False when it must not be made, as another evaluator now has the
        unit."""
        self._begun += 1
        mine = self._begun
        async with self._lock:
            # Calls that have begun to wait meanwhile are noted together.
            if self._noted < mine and not self._overtaken:
                count = self._begun
                unit, number = self._held.unit, self._held.number
                if await self._in_turn(
                    lambda turn: self._bus.publish_begun(unit, self._evaluator, count, turn, delivery=number)
                ):
                    self._noted = count
            return self._noted >= mine

    async def publish(self, publish: Callable[[Turn | None], Awaitable[int]]) -> None:
        """Stores answers in their turn. Stores them even if the turn has passed, as they are paid."""
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


class Packer:
    """Collects the results of one unit and stores them in order: at most 64 items or 512 KB per message, and at most
    20 ms after the first one waits, or 250 ms while `rate` is high. One result alone may exceed the bytes; `result.py`
    keeps it below NATS's limit.
    """

    def __init__(self, expected: int, store: Store, rate: Rate | None = None) -> None:
        self._rate = rate
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
        rate: Rate | None = None,
    ) -> Packer:
        """A packer for the results of a unit in hand. It publishes until JetStream has them, as results of this
        delivery; 0 means the present one. `told` are positions whose costs are already known; `begun` publishes in its
        turn. `rate` is that of the endpoint's calls."""
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
            share_parameters(batch)

            # Sent again after a lost acknowledgement, it must not pay and count its answers twice.
            name = uuid.uuid4().hex

            async def publish(turn: Turn | None = None) -> int:
                number = delivery or held.number
                return await bus.publish_items(batch, delivery=number, done=done, told=told, turn=turn, name=name)

            if begun is not None:
                await begun.publish(publish)
            else:
                await until_stored(publish, f"items of {held.label}")

        return cls(expected, store, rate)

    def add(self, result: item_result_pb2.ItemResult) -> None:
        """Raises FaultError for a result that no message can hold: each delivery of its unit would pay its calls
        again, and lose them."""
        size = result.ByteSize()
        if size > _MOST_RESULT_BYTES:
            raise FaultError(
                f"The result of item {result.item} takes {size:,} bytes with its reference and choices, and at most "
                f"{_MOST_RESULT_BYTES:,} can be stored. Make its texts shorter."
            )
        if not self._waiting:
            self._since = time.monotonic()
            self._wake.set()
        self._waiting.append((result, size))
        self._bytes += size
        self._missing -= 1
        if self._full or not self._missing:
            self._wake.set()

    async def begin(self, known: Iterable[item_result_pb2.ItemResult], *, at_once: bool) -> None:
        """Adds results that need no call. `at_once`: they are stored before any call is noted, so that everything noted
        and not stored is a call."""
        for result in known:
            self.add(result)
        if at_once and self._missing:
            await self.flush()

    async def room(self, most: int) -> None:
        """Waits while more than this many results wait. Lets others run in any case."""
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

    @property
    def _linger_s(self) -> float:
        return RUSH_LINGER_S if self._rate is not None and self._rate.per_second > RUSH_PER_S else LINGER_S

    async def _due(self) -> None:
        while self._missing and not self._full:
            self._wake.clear()
            left = self._since + self._linger_s - time.monotonic() if self._waiting else None
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


def share_parameters(batch: item_result_pb2.ItemResultBatch) -> None:
    """Moves the items' long parameters to the batch, each text once: the tools of a dataset's rows are mostly the
    same, and take more bytes than everything else in a result."""
    places: dict[str, int] = {}
    for result in batch.items:
        text = result.parameters
        if len(text) >= _LONG_CHARACTERS:
            result.shared_parameters = places.setdefault(text, len(places) + 1)
            result.ClearField("parameters")
    if places:
        batch.parameters.extend(places)
