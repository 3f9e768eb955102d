"""Runs one endpoint's units: one queue of items feeds all of its slots, so that they never drain between units."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from nats.aio.msg import Msg

from services.bus import Bus
from services.evaluator import result
from services.evaluator.endpoints import Endpoint
from services.evaluator.hand import FaultError, Hand, Held, JobKey, Stop
from services.evaluator.load import Loader
from services.evaluator.pace import Pace
from services.evaluator.packer import Packer
from services.evaluator.providers.base import Provider, ProviderError
from services.evaluator.puller import Puller
from services.evaluator.retry import Outage, Tries, delay_s
from services.evaluator.settings import Settings
from services.evaluator.storing import TRANSIENT, heed_cancel, until_stored
from services.evaluator.tasks.base import Item, Task
from touchstone.v1 import item_result_pb2

log = logging.getLogger(__name__)

_JOBS_REMEMBERED = 256
_FLUSH_S = 5.0


@dataclass(slots=True, eq=False)
class _Call:
    """One item waiting for a slot or in one."""

    held: Held
    task: Task
    position: int
    item: Item
    packer: Packer
    outage: Outage
    tries: Tries = field(default_factory=Tries)


class EndpointWorker:
    """One endpoint's slots. The next unit is pulled as soon as fewer items wait than there are slots."""

    def __init__(
        self, endpoint: Endpoint, provider: Provider, bus: Bus, hand: Hand, loader: Loader, settings: Settings
    ) -> None:
        self.endpoint = endpoint
        self.provider = provider
        self.pace = Pace(endpoint.requests_per_minute)
        self._bus = bus
        self._hand = hand
        self._loader = loader
        self._settings = settings
        self._waiting: deque[_Call] = deque()
        self._running: dict[asyncio.Task[None], _Call] = {}
        self._coming: dict[Held, int] = {}
        self._outages: OrderedDict[JobKey, Outage] = OrderedDict()
        self._room = asyncio.Event()
        self._room.set()
        self._puller = Puller(bus, endpoint.name, settings.ack_wait_s, self._room)

    @property
    def slots_busy(self) -> int:
        return len(self._running)

    async def open(self) -> None:
        await self._puller.open()

    async def run(self) -> None:
        """Pulls and runs units until cancelled; units in hand go on."""
        await self._puller.run(self._receive)

    def _receive(self, msg: Msg) -> None:
        held = self._hand.take(self.endpoint.name, msg, self._run, self._ended)
        if held is not None:
            unit = held.unit
            self._coming[held] = len(unit.positions) or unit.stop - unit.start
            self._look_for_room()

    def _ended(self, held: Held) -> None:
        self._coming.pop(held, None)
        self._look_for_room()

    def _look_for_room(self) -> None:
        if len(self._waiting) + sum(self._coming.values()) < self.endpoint.concurrency:
            self._room.set()
        else:
            self._room.clear()

    async def _run(self, held: Held) -> None:
        loaded = await self._loader.load(held.unit)

        async def store(items: list[item_result_pb2.ItemResult], done: bool) -> None:
            batch = item_result_pb2.ItemResultBatch(
                job_id=held.unit.job_id,
                attempt=held.unit.attempt,
                unit=held.unit.unit,
                task=held.unit.task,
                items=items,
                evaluator=self._settings.name,
            )
            await until_stored(
                lambda: self._bus.publish_items(batch, delivery=held.delivery, done=done), f"items of {held.label}"
            )

        packer = Packer(len(loaded.items), store)
        outage = self._outage(held.job)
        calls = [_Call(held, loaded.task, position, item, packer, outage) for position, item in loaded.items]
        self._waiting.extend(calls)
        self._coming.pop(held, None)
        self._fill()
        try:
            await packer.run()
        finally:
            await self._drop(held)
            if held.stopped.done() and held.stopped.result() is Stop.JOB_FAULTY:
                await self._keep_answers(packer)

    async def _drop(self, held: Held) -> None:
        """Takes the unit's items out of the queue and ends its calls, which closes their connections."""
        if any(call.held is held for call in self._waiting):
            self._waiting = deque(call for call in self._waiting if call.held is not held)
        ended = {task for task, call in self._running.items() if call.held is held}
        for task in ended:
            task.cancel()
        self._fill()
        if ended:
            await asyncio.wait(ended)

    async def _keep_answers(self, packer: Packer) -> None:
        """A failed job keeps what was answered before; if NATS is away too, that is lost and a retry asks again."""
        try:
            async with asyncio.timeout(_FLUSH_S):
                await packer.flush()
        except TRANSIENT:
            log.warning("answers of a failed job could not be stored")

    def _outage(self, job: JobKey) -> Outage:
        if job not in self._outages:
            self._outages[job] = Outage(self._settings.first_outage_s, self._settings.outage_s)
            while len(self._outages) > _JOBS_REMEMBERED:
                self._outages.popitem(last=False)
        self._outages.move_to_end(job)
        return self._outages[job]

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self.endpoint.concurrency:
            call = self._waiting.popleft()
            call.held.started = True
            task = asyncio.create_task(self._answer(call))
            self._running[task] = call
            task.add_done_callback(self._free)
        self._look_for_room()

    def _free(self, task: asyncio.Task[None]) -> None:
        call = self._running.pop(task)
        self._fill()
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, FaultError):
            self._hand.fail(call.held, error)
        elif error is not None:
            log.error("item %d of %s failed", call.item.index, call.held.unit.task, exc_info=error)
            self._hand.fail(
                call.held,
                FaultError(
                    f"The evaluator failed on item {call.item.index} of {call.held.unit.task} with "
                    f"{type(error).__name__}. Its log has the details."
                ),
            )

    async def _answer(self, call: _Call) -> None:
        """Calls until there is an answer or the item is given up. Raises FaultError when the job must fail."""
        spec = call.held.unit.spec
        tries = call.tries
        while True:
            heed_cancel()
            await self.pace.turn()
            tries.calls += 1
            sent = time.monotonic()
            try:
                response = await self.provider.generate(spec.model, spec.sampling, call.task, call.item)
            except ProviderError as error:
                await self._failed(call, error, sent)
                if tries.given_up:
                    item = result.failed(call.task, call.item, call.position, error.message, tries.calls)
                    call.packer.add(item)
                    return
            else:
                call.outage.success(time.monotonic())
                call.packer.add(result.answered(call.task, call.item, call.position, response, tries.calls))
                return

    async def _failed(self, call: _Call, error: ProviderError, sent: float) -> None:
        """Decides after a failed call: raises FaultError, gives the item up, or waits for the next try."""
        now = time.monotonic()
        if error.fatal or call.outage.failure(error, sent, now):
            raise FaultError(error.message)
        if call.tries.failed(error, call.outage, now):
            return
        wait = delay_s(error, call.tries.failures, call.tries.jitter)
        if error.rate_limited:
            self.pace.limit(wait)
        else:
            wait = min(wait, call.outage.left_s(now))
        await asyncio.sleep(wait)
