"""Runs one endpoint's units: one queue of items feeds all of its slots, so that they never drain between units."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from services.bus import Bus
from services.evaluator import item_result
from services.evaluator.endpoint_calls import Guest, ItemCall, UnitCalls
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Response
from services.evaluator.measuring import measured
from services.evaluator.pacing.fair_queue import Turns
from services.evaluator.pacing.limiter import Limiter
from services.evaluator.pacing.pace import Pace, Paces, Rate
from services.evaluator.pacing.retry import Troubles, delay_s
from services.evaluator.pacing.shares import Flow
from services.evaluator.plugins.contract import PluginError
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.provider import LoadingProvider, Provider, ProviderError, Request
from services.evaluator.scoring import Scoring
from services.evaluator.settings import Settings
from services.evaluator.stored.responses import KnownAnswers
from services.evaluator.storing import TRANSIENT
from services.evaluator.units.doubts import Doubts
from services.evaluator.units.packer import Begun, Packer
from services.evaluator.units.puller import Puller
from services.evaluator.units.unit_loader import Loader
from services.evaluator.units.units_in_hand import FaultError, Hand, Held, Stop
from touchstone.v1 import suite_pb2

log = logging.getLogger(__name__)

_FLUSH_S = 5.0
_ON_THE_WAY_S = 0.15
_MOST_AHEAD = 4
_MOST_HELD_UNITS = 16
"""Units, or multiples of the items wanted at once: the most that may wait for models that are refused."""
_LONG_LOADING_S = 1.0
_MAY_BE_CHARGED = "The call was not retried: it may already be charged, and the job has a budget."


class EndpointWorker:
    """One endpoint's slots. The next unit is pulled as soon as fewer items wait than there are slots."""

    def __init__(
        self,
        endpoint: Endpoint,
        provider: Provider,
        bus: Bus,
        hand: Hand,
        loader: Loader,
        answers: KnownAnswers,
        settings: Settings,
    ) -> None:
        self.endpoint = endpoint
        self.provider = provider
        self._loading = provider if isinstance(provider, LoadingProvider) else None
        self.paces = Paces(endpoint.concurrency)
        self._bus = bus
        self._hand = hand
        self._loader = loader
        self._answers = answers
        self._settings = settings
        limit = endpoint.requests_per_minute
        self._limiter = Limiter(bus, endpoint.name, limit, self._fill) if limit else None
        self._resume: dict[str, asyncio.TimerHandle] = {}
        """By model, and for the whole endpoint under the empty name: when a pause ends."""
        self._turns: Turns[ItemCall | Guest] = Turns()
        self._running: dict[asyncio.Task[None], ItemCall | Guest] = {}
        self._resting: dict[ItemCall, asyncio.TimerHandle] = {}
        """Calls that wait to be tried again. They leave their slots to other models, but count as their own model's
        calls."""
        self._coming: dict[Held, int] = {}
        self._troubles = Troubles(settings.first_outage_s, settings.outage_s)
        self._room = asyncio.Event()
        self._room.set()
        self._unit_items = settings.unit_size
        self._rate = Rate()
        self._scoring = Scoring(self._broken)
        self._doubts = Doubts()
        self._puller = Puller(bus, endpoint.name, settings.ack_wait_s, self._room, self._units_wanted)

    @property
    def slots_busy(self) -> int:
        return len(self._running)

    async def open(self) -> None:
        await self._puller.open()

    async def run(self) -> None:
        """Pulls and runs units until cancelled; units in hand continue."""
        await self._puller.run(self._receive)

    async def permit(self) -> None:
        """Keeps the endpoint's limit until cancelled. Cancel it only after the units in hand have ended."""
        if self._limiter is not None:
            await self._limiter.run()

    # -- calls of users ----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def slot(self, owner: str, model: str) -> AsyncGenerator[None]:
        """A slot for a call that belongs to no job, in turn with the jobs' calls and within the endpoint's limits."""
        guest = Guest(owner, model)
        self._turns.add(guest.flow, [guest])
        self._fill()
        try:
            await guest.admitted.wait()
            yield
        finally:
            self._turns.drop(guest.flow, lambda call: call is guest)
            guest.ended.set()

    def busy_with(self, model: str) -> str:
        """Another model that an exclusive endpoint is working with; empty for none."""
        if not self.endpoint.exclusive:
            return ""
        models = [call.model for call in self._running.values()]
        models += [held.unit.spec.model for held in self._coming]
        models += [self._turns.peek(flow).model for flow in self._turns.waiting()]
        return next((other for other in models if other != model), "")

    # -- units -------------------------------------------------------------------------------------------------

    def _receive(self, msg: Msg) -> None:
        held = self._hand.take(self.endpoint.name, msg, self._run, self._ended)
        if held is not None and not self._loader.lacking(held.unit):
            unit = held.unit
            self._coming[held] = len(unit.positions) or unit.stop - unit.start
            self._unit_items = max(1, self._coming[held])
            self._look_for_room()

    def _ended(self, held: Held) -> None:
        self._coming.pop(held, None)
        self._look_for_room()

    def _units_wanted(self) -> int:
        """Units to ask for, assuming that the next ones are as large as the last."""
        return -(-self._items_missing() // self._unit_items)

    @property
    def _is_slowed(self) -> bool:
        return self.paces.slowed or bool(self._resting)

    def _items_missing(self) -> int:
        # One call for every slot, plus what the slots take up while a unit is on its way.
        ahead = min(int(self._rate.per_second * _ON_THE_WAY_S), _MOST_AHEAD * self.endpoint.concurrency)
        wanted = self.endpoint.concurrency + ahead
        waiting = len(self._turns)
        if self._is_slowed and waiting < _MOST_HELD_UNITS * max(wanted, self._unit_items):
            # Those of a model that is refused or fails must not keep others from being fetched.
            waiting = sum(self._sendable(time.monotonic(), None).values())
        return wanted - waiting - sum(self._coming.values())

    def _look_for_room(self) -> None:
        if self._items_missing() > 0:
            self._room.set()
        else:
            self._room.clear()

    async def _run(self, held: Held) -> None:
        loaded = await self._loader.load(held.unit)
        identify = self._answers.identity(held.unit)
        known = await self._answers.of(held, loaded, identify)
        begun: Begun | None = None
        if held.may_cost and held.unit.counted_until:
            begun = Begun(self._bus, held, self._settings.name)
            await begun.open(len(known.results))
        name = self._settings.name
        packer = Packer.of(held, len(loaded.items), self._bus, name, told=known.told, begun=begun, rate=self._rate)
        held.begun = len(known.results)
        await packer.begin(known.results.values(), at_once=begun is not None)
        flow = Flow(held.unit.owner, held.unit.job_id)
        unit = UnitCalls(held, flow, loaded.task, packer, begun, self._troubles.of(held.job), identify)
        self._turns.add(
            flow,
            [
                ItemCall(unit, position, repeat, item)
                for position, repeat, item in loaded.items
                if position not in known.results
            ],
        )
        self._coming.pop(held, None)
        self._fill()
        try:
            await packer.run()
        except BaseException:
            await self._drop(unit)
            if held.stopped.done() and held.stopped.result() in (Stop.JOB_FAULTY, Stop.DRAINING):
                await self._keep_answers(packer)
            raise

    async def _drop(self, unit: UnitCalls) -> None:
        """Takes the unit's items out of the queue and ends its calls, which closes their connections."""
        self._turns.drop(unit.flow, lambda call: call.unit is unit)
        for call in [call for call in self._resting if call.unit is unit]:
            self._resting.pop(call).cancel()
        ended = {task for task, call in self._running.items() if call.unit is unit}
        for task in ended:
            task.cancel()
        self._fill()
        if ended:
            await asyncio.wait(ended)

    async def _keep_answers(self, packer: Packer) -> None:
        """Earlier answers are paid; if NATS is away too, they are lost and asked for again."""
        self._scoring.score()
        try:
            async with asyncio.timeout(_FLUSH_S):
                await packer.flush()
        except TRANSIENT:
            log.warning("could not store the answers of a unit that is ending")

    # -- slots -------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Fills free slots with the calls whose turn it is."""
        while (call := self._next()) is not None:
            task = asyncio.create_task(self._slot(call))
            self._running[task] = call
            task.add_done_callback(self._free)
        if self._limiter is not None:
            free = self.paces.whole.slots - len(self._running)
            self._limiter.want(self._sendable(time.monotonic(), None), free)
        self._look_for_room()

    def _next(self, ending: ItemCall | Guest | None = None) -> ItemCall | Guest | None:
        """The call that goes out now, taken from the queue. `ending` is a call whose slot it may have."""
        now = time.monotonic()
        busy = len(self._running) - (ending is not None)
        if not self._turns or busy >= self.paces.whole.slots or self._paused("", self.paces.whole, now):
            return None
        flow: Flow | None = None
        if self._limiter is not None or self._is_slowed:
            sendable = self._sendable(now, ending)
            flow = self._limiter.next(sendable) if self._limiter is not None else next(iter(sendable), None)
            if flow is None:
                return None
        self._rate.count(now)
        call = self._turns.take(flow)
        if isinstance(call, ItemCall):
            call.unit.held.started = True
        return call

    def _sendable(self, now: float, ending: ItemCall | Guest | None) -> dict[Flow, int]:
        """Waiting calls by flow, in the order of turns, without calls of models that must wait."""
        waiting = self._turns.waiting()
        if not self._is_slowed:
            return waiting
        busy = Counter(call.model for call in self._running.values() if call is not ending)
        busy.update(call.model for call in self._resting)
        found: dict[Flow, int] = {}
        for flow, calls in waiting.items():
            model = self._turns.peek(flow).model
            pace = self.paces.of(model)
            if pace is not None and self._paused(model, pace, now):
                continue
            if count := min(calls, self.paces.room(model, busy[model], now)):
                found[flow] = count
        return found

    def _paused(self, model: str, pace: Pace, now: float) -> bool:
        """Whether the endpoint asked for a pause, as a whole or of one model; slots are filled at its end."""
        if model in self._resume:
            return True
        left = pace.limited_s(now)
        if left > 0:
            self._resume[model] = asyncio.get_running_loop().call_later(left, self._go_on, model)
        return left > 0

    def _go_on(self, model: str) -> None:
        del self._resume[model]
        self._fill()

    async def _slot(self, call: ItemCall | Guest | None) -> None:
        """Makes one call after the other: a task for each would cost a twentieth of the evaluator's time."""
        task = asyncio.current_task()
        assert task is not None
        while call is not None:
            self._running[task] = call
            await (self._attempt(call) if isinstance(call, ItemCall) else call.hold())
            if task.cancelling():
                return  # A cancellation that came together with the answer.
            call = self._next(call)
            if len(self._running) < self.paces.whole.slots:
                self._fill()
            elif not self._room.is_set():
                self._look_for_room()

    def _free(self, task: asyncio.Task[None]) -> None:
        call = self._running.pop(task)
        self._fill()
        if not task.cancelled() and isinstance(call, ItemCall) and (error := task.exception()) is not None:
            self._broken(call, error)

    def _broken(self, call: ItemCall, error: BaseException) -> None:
        """Ends the job of a call for an error that another try would not repair."""
        held, item = call.unit.held, call.item
        if isinstance(error, PluginError):
            error = FaultError(error.message)
        if isinstance(error, FaultError):
            self._hand.fail(held, error)
        else:
            log.error("item %d of %s failed", item.index, held.unit.task, exc_info=error, extra=held.logged)
            self._hand.fail(
                held,
                FaultError(
                    f"The evaluator failed on item {item.index} of {held.unit.task} with {type(error).__name__}. "
                    "Its log has the details."
                ),
            )

    # -- calls -------------------------------------------------------------------------------------------------

    async def _attempt(self, call: ItemCall) -> None:
        """Calls once. Afterwards the item has its result, or waits again. Raises FaultError when the job must fail."""
        unit, tries = call.unit, call.tries
        tries.calls += 1
        sent = math.inf
        try:
            if self._loading is not None:
                await self._loaded(self._loading, unit)
            if unit.begun is not None and tries.calls == 1 and not await unit.begun.note():
                return  # The unit ends here.
            unit.held.begun += tries.calls == 1
            sent = time.monotonic()
            response = await measured(self.endpoint.name, self._ask(call), call)
        except ProviderError as error:
            # Loading does not count as a call: however long it took, an outage begins when it fails.
            await self._failed(call, error, min(sent, time.monotonic()))
            return
        if response.doubtful:
            self._doubts.tell(unit.held, response.doubtful)
        unit.trouble.outage.success(time.monotonic())
        unit.trouble.budget.answered += 1
        self.paces.succeeded(call.model, time.monotonic())
        await self._scoring.add(call, response)

    async def _loaded(self, loading: LoadingProvider, unit: UnitCalls) -> None:
        """Waits until the unit's model can be called."""
        model, began = unit.held.unit.spec.model, time.monotonic()
        await loading.ready(model)
        waited_s = time.monotonic() - began
        if waited_s >= _LONG_LOADING_S and unit.trouble.loading.due(time.monotonic()):
            log.info("%s: %s was loaded in %.0f s", self.endpoint.name, model, waited_s, extra=unit.held.logged)

    async def _ask(self, call: ItemCall) -> Response:
        unit, task, item = call.unit.held.unit, call.unit.task, call.item
        spec = unit.spec
        sampling = spec.sampling if item.sampling is None else item.sampling
        repeats, of_job = max(1, spec.suite.repeats), prices.of_unit(unit)
        request = Request(spec.model, sampling, task, item, call.repeat, spec.stream, repeats, of_job)
        if task.mode == suite_pb2.MODE_LOGLIKELIHOOD:
            return await self.provider.loglikelihoods(request)
        return await self.provider.generate(request)

    async def _failed(self, call: ItemCall, error: ProviderError, sent: float) -> None:
        """Decides after a failed call: raises FaultError, gives the item up, or puts it back after a wait."""
        now = time.monotonic()
        unit, tries = call.unit, call.tries
        outage, budget = unit.trouble.outage, unit.trouble.budget
        if failed := unit.trouble.failing.due(now):
            what = f"{failed} calls have failed; the last one:" if failed > 1 else "a call has failed:"
            log.warning("%s: %s %s", self.endpoint.name, what, error.message, extra=unit.held.logged)
        if error.rate_limited:
            self.paces.refused(call.model, sent, now, whole=error.of_endpoint)
        if error.of_key:
            self.paces.denied(call.model, error.message, now)
        if error.fatal or outage.failure(error, sent, now):
            raise FaultError(error.message, error.detail)
        over = tries.failed(error, outage, budget, now)
        if not over and unit.held.unit.spec.budget_usd and not error.free:
            # A job with a budget reserves the cost of one call per item.
            over, tries.note = True, _MAY_BE_CHARGED
        if over:
            message = f"{error.message} {tries.note}".rstrip()
            unit.packer.add(item_result.failed(unit.task, call.item, call.position, call.repeat, message, tries.calls))
            return
        wait = min(delay_s(error, tries.failures), outage.left_s(error, now))
        if error.rate_limited:
            self.paces.pause(call.model, wait, now, whole=error.of_endpoint)
            # Behind the others of its job: an item that is always refused does not hold them up.
            self._turns.put_back(unit.flow, call, last=True)
        else:
            self._resting[call] = asyncio.get_running_loop().call_later(wait, self._rested, call)

    def _rested(self, call: ItemCall) -> None:
        del self._resting[call]
        self._turns.put_back(call.unit.flow, call)
        self._fill()
