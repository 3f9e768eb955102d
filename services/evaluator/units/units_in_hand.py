"""Units in hand: the life of each from its delivery to its acknowledgement.

Delivery is at least once. A unit is acknowledged only after the last message of its results is stored, so a process
that dies at any moment loses nothing: NATS delivers its units again after `ack_wait_s` without a heartbeat.

A unit that comes for the third time may be what kills its evaluators, so from then on it has the process to itself: a
crash then shows that the unit caused it. After three such crashes it goes to the dead letters and its job fails.
Deliveries alone prove nothing: when everything is killed, the unit also comes again.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any

from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from services.bus import STORED_ENDPOINT, Bus, Found, JobHeaders, SettingAside, batched_endpoint, of_job, unit_token
from services.evaluator.pacing.notices import Firsts
from services.evaluator.plugins.contract import NotHereError, PluginError
from services.evaluator.storing import TRANSIENT, UNSTORED, until_stored
from services.evaluator.units import tracing
from services.evaluator.units.suspects import Gate, Suspects
from services.words.jobs import ENDED_EARLY, LIVE
from touchstone.v1 import job_pb2, unit_pb2

log = logging.getLogger(__name__)

JobKey = tuple[str, int]
"""Job id and attempt."""
UnitKey = tuple[str, int, int]
"""Job id, attempt and unit number."""

ALONE_FROM_DELIVERY = 3
DEAD_FROM_CRASHES = 3
_ASKS = LIVE - {job_pb2.Job.STATE_FINALIZING}
"""States of a job whose units are worked on."""
_STALE_READ_S = 0.5
_NOT_HERE_S = 1.0
"""For which a unit that needs another evaluator is kept, so that others have time to ask."""
_LOOK_UP_S = (0.0, 0.05, 0.15, 0.3, 0.5, 0.5)
"""Waits before each look: the news of a write comes before its batch is committed, which may take a moment."""
_REMEMBERED = 4096
_KNOWN_S = 1.0
"""A job that was found running counts as running for this long, unless there is news of it."""


class Stop(enum.Enum):
    """Why a unit in hand ends before its work is done."""

    JOB_OVER = enum.auto()
    JOB_FAULTY = enum.auto()
    DRAINING = enum.auto()
    OVERTAKEN = enum.auto()


class FaultError(Exception):
    """The unit's whole job cannot run; the message is the sentence that a user reads."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


class Held:
    """One unit in hand. The runner sets `started` when work that is worth finishing has begun, and counts in `begun`
    the items that are stored or whose call has begun."""

    def __init__(self, endpoint: str, unit: unit_pb2.Unit, msg: Msg) -> None:
        self.endpoint = endpoint
        self.unit = unit
        self.msg = msg
        self.delivery = msg.metadata.num_delivered
        self.earlier = unit.earlier_deliveries + self.delivery - 1
        self.number = self.earlier + 1
        self.started = False
        self.begun = 0
        self.stopped: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()

    @property
    def key(self) -> UnitKey:
        return (self.unit.job_id, self.unit.attempt, self.unit.unit)

    @property
    def job(self) -> JobKey:
        return (self.unit.job_id, self.unit.attempt)

    @property
    def label(self) -> str:
        return f"unit {unit_token(self.unit.unit)} of job {self.unit.job_id}"

    @property
    def logged(self) -> dict[str, str]:
        """`extra` of a line in its job's log."""
        return of_job(self.unit.job_id)

    @property
    def may_cost(self) -> bool:
        """Running it costs some of a job's budget."""
        priced = bool(self.unit.task and self.unit.spec.budget_usd) and self.endpoint != STORED_ENDPOINT
        return priced and not self.is_batch

    @property
    def alone(self) -> bool:
        """It has come so often that it may crash its evaluators. In a job with a budget each message comes once."""
        return (self.number if self.may_cost else self.delivery) >= ALONE_FROM_DELIVERY and not self.is_batch

    @property
    def is_batch(self) -> bool:
        """It goes through a provider's batch API: it lasts for hours, mostly waiting, and a note lets the next
        evaluator continue. So deliveries neither indicate crashes nor cost anything."""
        return bool(batched_endpoint(self.endpoint))

    def outlives(self, headers: JobHeaders | None) -> bool:
        """Whether its job, by these headers, is finished, unknown, or at another attempt."""
        return headers is None or headers.is_past(self.unit.attempt)

    def stop(self, why: Stop) -> None:
        if not self.stopped.done():
            self.stopped.set_result(why)


Run = Callable[[Held], Awaitable[None]]
"""Does a unit's work; returning means that its effect is stored. Raises FaultError to fail the job."""


class Hand:
    """Every unit of this process, over all endpoints."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._aside = SettingAside(bus, "evaluator")
        self._suspects = Suspects(bus)
        self.units: dict[UnitKey, Held] = {}
        self._lives: set[asyncio.Task[None]] = set()
        self._gate = Gate()
        self._faults: OrderedDict[JobKey, asyncio.Task[int]] = OrderedDict()
        self._stored: OrderedDict[UnitKey, None] = OrderedDict()
        self._known: dict[JobKey, float] = {}
        self._doubted = 0
        """How often the known states were dropped: a state whose reading spans such a moment is not remembered."""
        self._firsts = Firsts()

    def __len__(self) -> int:
        return len(self.units)

    def take(self, endpoint: str, msg: Msg, run: Run, ended: Callable[[Held], None]) -> Held | None:
        """Begins a unit's life and calls `ended` at its end, whatever the outcome. None for one that is here."""
        try:
            unit = unit_pb2.Unit.FromString(msg.data)
        except DecodeError as error:
            self._begin(self._set_aside(msg, error))
            return None
        held = Held(endpoint, unit, msg)
        if held.key in self.units:
            # It came again because a heartbeat was late: it runs here, and now acknowledges the newer delivery.
            self.units[held.key].msg = msg
            return None
        self.units[held.key] = held
        self._begin(self._live(held, run, ended))
        return held

    async def _set_aside(self, msg: Msg, error: DecodeError) -> None:
        await until_stored(lambda: self._aside.take(Found.of(msg), error), f"the message on {msg.subject}")
        await msg.term()

    def fail(self, held: Held, fault: FaultError) -> None:
        """Fails the unit's job: the first fault is published, all of the job's units end here."""
        if held.job not in self._faults:
            log.error("job %s fails: %s", held.unit.job_id, fault.reason, extra=held.logged)
            message = unit_pb2.Fault(reason=fault.reason, detail=fault.detail[:4000])
            told = until_stored(lambda: self._bus.publish_fault(*held.key, message), f"the fault of {held.label}")
            self._faults[held.job] = asyncio.create_task(told)
            while len(self._faults) > _REMEMBERED:
                self._faults.popitem(last=False)
        for other in self.units.values():
            if other.job == held.job:
                other.stop(Stop.JOB_FAULTY)

    def heard(self, job_id: str, headers: JobHeaders | None) -> None:
        """Looks up a job after news that would end its units.

        News is only a hint: a refused write also makes it, and a good one comes before it can be read.
        """
        self._doubt()
        units_left = headers is None or headers.state in ENDED_EARLY
        if units_left or any(held.outlives(headers) for held in self.units.values() if held.unit.job_id == job_id):
            self._begin(self._look_up(job_id))

    def _doubt(self) -> None:
        self._known.clear()
        self._doubted += 1

    async def _look_up(self, job_id: str) -> None:
        for wait in _LOOK_UP_S:
            await asyncio.sleep(wait)
            with suppress(*TRANSIENT):
                if self._job_is(job_id, await self._bus.job_headers(job_id)):
                    return

    async def check_jobs(self) -> None:
        """Reads again the state of every job in hand: a cancel may have been missed while NATS was away."""
        for job_id in {held.unit.job_id for held in self.units.values()}:
            self._job_is(job_id, await self._bus.job_headers(job_id))

    def _job_is(self, job_id: str, headers: JobHeaders | None) -> bool:
        """Ends the job's units when the job is finished, unknown, or at another attempt; True when any was ended."""
        over = [held for held in self.units.values() if held.unit.job_id == job_id and held.outlives(headers)]
        for held in over:
            held.stop(Stop.JOB_OVER)
        if over:
            self._doubt()
        return bool(over)

    async def heartbeat(self) -> None:
        """Sends NATS a heartbeat for the units in hand. Call it three times in `ack_wait_s`."""
        for held in list(self.units.values()):
            await held.msg.in_progress()

    def give_back_unbegun(self) -> None:
        """Lets others have the units that have not begun here."""
        for held in list(self.units.values()):
            if not held.started:
                held.stop(Stop.DRAINING)

    async def drain(self, grace_s: float) -> None:
        """Lets begun units finish within `grace_s` and gives back the others."""
        self.give_back_unbegun()
        if self._lives:
            await asyncio.wait(set(self._lives), timeout=grace_s)
        for held in list(self.units.values()):
            held.stop(Stop.DRAINING)
        if self._lives:
            await asyncio.wait(set(self._lives), timeout=5)

    def _begin(self, life: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(life)
        self._lives.add(task)
        task.add_done_callback(self._lives.discard)

    async def _live(self, held: Held, run: Run, ended: Callable[[Held], None]) -> None:
        try:
            await self._to_its_end(held, run)
        except TRANSIENT as error:
            why = str(error) or type(error).__name__
            log.warning("%s: NATS failed (%s); it will be delivered again", held.label, why, extra=held.logged)
        finally:
            del self.units[held.key]
            ended(held)

    async def _to_its_end(self, held: Held, run: Run) -> None:
        if held.key in self._stored:
            await self._acknowledge(held)
            return
        if held.job in self._faults or not await self._wanted(held.unit):
            await held.msg.term()
            return
        if held.delivery > 1 and held.may_cost:
            # Calls of the previous delivery may be charged: the scheduler knows whether there is money for others.
            await self._return(held)
            return
        if held.alone and await self._suspects.crashes(held.key) >= DEAD_FROM_CRASHES:
            await self._bury(held)
            return
        work = asyncio.create_task(self._work(held, run))
        either: set[asyncio.Future[Any]] = {work, held.stopped}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        if work.cancelled():
            await self._stop(held)
            return
        fault = work.result()
        if isinstance(fault, NotHereError):
            log.info("%s is given back: %s", held.label, fault, extra=held.logged)
            await asyncio.wait({held.stopped}, timeout=_NOT_HERE_S)
            await self._give_back(held)
            return
        if fault is not None:
            self.fail(held, fault)
            await self._stop(held)
            return
        self._stored[held.key] = None
        while len(self._stored) > _REMEMBERED:
            self._stored.popitem(last=False)
        await self._acknowledge(held)

    async def _work(self, held: Held, run: Run) -> FaultError | NotHereError | None:
        """None when the unit's effect is stored, else why its job fails, or why the unit goes back."""
        try:
            await self._guarded(held, run)
        except (FaultError, NotHereError, PluginError) as error:
            return FaultError(error.message) if isinstance(error, PluginError) else error
        except TRANSIENT:
            raise
        except Exception as error:
            log.exception("%s ended with an unexpected error", held.label, extra=held.logged)
            name = type(error).__name__
            return FaultError(f"The evaluator failed on {held.label} with {name}. Its log has the details.")
        return None

    async def _guarded(self, held: Held, run: Run) -> None:
        # A batch would keep a unit that must run alone waiting for hours, or run alone for hours.
        way: AbstractAsyncContextManager[None] = nullcontext() if held.is_batch else self._gate.shared()
        if held.alone:
            log.warning("%s: delivery %d, which runs alone", held.label, held.number, extra=held.logged)
            way = self._gate.alone()
        watching = self._suspects.watch(held.key) if held.alone else nullcontext()
        async with way, watching, tracing.unit(held.endpoint, held.unit, held.msg):
            if held.unit.task and self._firsts.is_first(held.job, held.unit.task):
                log.info("%s starts here with %s", held.unit.task, held.label, extra=held.logged)
            await run(held)

    async def _stop(self, held: Held) -> None:
        why = held.stopped.result()
        if why is Stop.DRAINING:
            log.info("%s is given back: this evaluator takes no more units", held.label, extra=held.logged)
            await self._give_back(held)
            return
        if why is Stop.OVERTAKEN:
            log.info("%s is dropped: another evaluator has reported on it", held.label, extra=held.logged)
            await held.msg.nak()  # The next evaluator returns it; if it was acknowledged, this does nothing.
            return
        if why is Stop.JOB_FAULTY:
            # Until the reason is stored, the unit must not vanish: its job would wait for ever.
            await asyncio.shield(self._faults[held.job])
        await held.msg.term()

    async def _give_back(self, held: Held) -> None:
        """Offers a unit afresh: a nak would count as a delivery, and orderly stops must not look like crashes.

        A crash in between loses nothing: the scheduler offers units again that left WORK without being done.
        """
        if held.started and held.may_cost:
            await self._return(held)
            return
        again = unit_pb2.Unit()
        again.CopyFrom(held.unit)
        again.begun |= held.started or held.delivery > 1
        again.earlier_deliveries = held.earlier + held.started
        if held.begun:
            with suppress(*UNSTORED):  # If the number is unknown, all of its items count as calls.
                await self._bus.publish_begun(held.unit, "", held.begun, delivery=held.number)
        await held.msg.ack_sync(timeout=2)
        await self._bus.release(held.endpoint, again.spec.priority, again)

    async def _return(self, held: Held) -> None:
        """Leaves a unit of a job with a budget to the scheduler, which offers it again when the budget allows it."""
        log.info("%s is returned: calls of it may have been charged", held.label, extra=held.logged)
        await held.msg.ack_sync(timeout=2)
        await self._bus.publish_returned(*held.key, held.earlier + held.started, counted=held.unit.counted_until > 0)

    async def _bury(self, held: Held) -> None:
        reason = (
            f"Unit {unit_token(held.unit.unit)} crashed its evaluator three times while it ran alone. "
            "See the evaluator's log, then retry the job without the task"
            f"{' ' + held.unit.task if held.unit.task else ''}, or with another model."
        )
        await until_stored(lambda: self._bus.dead_letter(held.endpoint, held.unit, reason), f"the dead {held.label}")
        self.fail(held, FaultError(reason))
        await self._stop(held)

    async def _wanted(self, unit: unit_pb2.Unit) -> bool:
        """Whether the unit's job still runs at this attempt."""
        job, now = (unit.job_id, unit.attempt), time.monotonic()
        if now - self._known.get(job, -_KNOWN_S) < _KNOWN_S:
            return True
        doubted = self._doubted
        headers = await self._headers(unit.job_id)
        if headers is None or headers.attempt < unit.attempt:
            # A replica may answer a direct read a moment late; a unit dropped by mistake would never be run.
            await asyncio.sleep(_STALE_READ_S)
            headers = await self._headers(unit.job_id)
        wanted = headers is not None and headers.attempt == unit.attempt and headers.state in _ASKS
        if wanted and doubted == self._doubted:
            self._known = {each: at for each, at in self._known.items() if now - at < _KNOWN_S} | {job: now}
        return wanted

    async def _headers(self, job_id: str) -> JobHeaders | None:
        return await until_stored(lambda: self._bus.job_headers(job_id), f"the state of job {job_id}")

    async def _acknowledge(self, held: Held) -> None:
        """Tries while the unit may be ours. If no try succeeds, it comes again and is found among the stored."""
        for tries in range(5):
            try:
                await held.msg.ack_sync(timeout=2)
                return
            except TRANSIENT as error:
                log.warning("%s: not acknowledged (%s)", held.label, str(error) or type(error), extra=held.logged)
                await asyncio.sleep(0.2 * 2**tries)
