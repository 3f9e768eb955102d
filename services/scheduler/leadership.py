"""One leadership: everything is read back, then jobs run until the lease is lost or the process ends.

A message on RESULTS that cannot be handled is set aside, and affects at most its own job: a plan or a fault ends the
job with the reason; a unit whose answers are not counted is released again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from services import bus
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.losses import reconcile, tell_again
from services.scheduler.lifecycle.scheduler import Scheduler
from services.scheduler.nats.jobs_bucket import Drains, JobStore, ScheduleStore
from services.scheduler.nats.lease import Lease
from services.scheduler.nats.streams import WorkStream, tail_results
from services.scheduler.ports import Results
from services.scheduler.requests.experiments import Experiments
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.judges import Judges
from services.scheduler.requests.paging import log_set_aside
from services.scheduler.requests.visibility import Reads
from services.scheduler.schedules.schedules import Timetable
from services.scheduler.schedules.watches import Watches
from services.scheduler.servicer import Leader
from services.scheduler.settings import Settings
from services.scheduler.webhooks.address import AddressRule
from services.scheduler.webhooks.courier import Courier, Fanout
from services.scheduler.webhooks.digests import Digests
from services.scheduler.webhooks.nats_webhooks import DeliveryBucket, HookBucket, follow_audit
from services.scheduler.webhooks.ports import Caller
from services.scheduler.webhooks.requests import WebhookDesk
from touchstone.v1 import evaluator_pb2, unit_pb2


class Replay:
    """Passes the messages of RESULTS to a scheduler, both earlier and new ones."""

    def __init__(self, connection: bus.Bus, scheduler: Scheduler, aside: bus.SettingAside) -> None:
        self._bus, self._scheduler, self._aside = connection, scheduler, aside

    async def handle(self, msg: Msg) -> None:
        """Takes a message without its body. Raises only NATS's errors and LeadershipLostError."""
        at = msg.metadata.sequence.stream
        try:
            job_id, unit = bus.parse_results_subject(msg.subject)
            headers = bus.ResultHeaders.decode(msg.headers)
            await self._tell(job_id, unit, headers, at)
        except Exception as error:
            if not bus.is_at_fault(error):
                raise
            found = bus.Found(bus.RESULTS, at, msg.subject, await self._body(at), msg.headers or {})
            await self._aside.take(found, error)
            self._scheduler.on_other(at)
            await self._end_its_job(msg, error)

    async def _tell(self, job_id: str, unit: int, headers: bus.ResultHeaders, at: int) -> None:
        scheduler = self._scheduler
        if headers.kind == bus.KIND_ITEMS:
            scheduler.on_items(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_BEGUN:
            scheduler.on_begun(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_RETURNED:
            scheduler.on_returned(job_id, unit, headers, at)
        elif headers.kind == bus.KIND_PLAN and scheduler.awaits(job_id, headers.attempt):
            await scheduler.on_plan(job_id, headers.attempt, unit_pb2.Plan.FromString(await self._body(at)), at)
        elif headers.kind == bus.KIND_FAULT and scheduler.awaits(job_id, headers.attempt):
            await scheduler.on_fault(job_id, headers.attempt, unit_pb2.Fault.FromString(await self._body(at)), at)
        else:
            scheduler.on_other(at)

    async def _body(self, at: int) -> bytes:
        # Not `direct`: nats-py takes a header `Status` of what is stored for the server's own word.
        return (await self._bus.js.get_msg(bus.RESULTS, seq=at)).data or b""

    async def _end_its_job(self, msg: Msg, error: Exception) -> None:
        try:
            job_id, _ = bus.parse_results_subject(msg.subject)
            headers = bus.ResultHeaders.decode(msg.headers)
        except ValueError:
            return
        if headers.kind in (bus.KIND_PLAN, bus.KIND_FAULT) and self._scheduler.awaits(job_id, headers.attempt):
            fault = unit_pb2.Fault(
                reason=f"The evaluator's {headers.kind} cannot be read ({type(error).__name__}), so the job cannot "
                "continue. An admin can find it among the messages that were set aside. Retry the job."
            )
            await self._scheduler.on_fault(job_id, headers.attempt, fault, msg.metadata.sequence.stream)


@dataclass(frozen=True, slots=True)
class Process:
    """What a scheduler process keeps through all of its leaderships. `clock` never goes back within the process; `wall`
    is the time of day."""

    settings: Settings
    connection: bus.Bus
    room: bus.Room
    lease: Lease
    results: Results
    caller: Caller
    reads: Reads
    clock: Callable[[], float]
    wall: Callable[[], float]


async def lead(process: Process, epoch: int, leads: Callable[[Leader], Awaitable[None]]) -> None:
    """Leads until cancelled; calls `leads` once requests can be answered. Raises LeadershipLostError."""
    connection, settings, clock = process.connection, process.settings, process.clock
    aside = bus.SettingAside(connection, "scheduler")
    store = JobStore(connection, epoch, aside)
    work = WorkStream(connection, process.lease, aside)
    fleet = Fleet(settings.limits.absent_after_s)
    registry = JobRegistry(
        store, work, bus.Datasets(connection), fleet, settings.limits, clock, store.event_id, process.room
    )
    scheduler = Scheduler(registry, process.results)
    urls = AddressRule(settings.webhooks.private, settings.webhooks.loopback)
    desk = Desk(registry, process.results, process.reads, urls)
    timetable = Timetable(registry, desk, ScheduleStore(connection, epoch, aside), process.reads, process.wall)
    drains = Drains(connection, epoch, registry)
    hooks, deliveries = HookBucket(connection, aside), DeliveryBucket(connection, aside)
    courier = Courier(hooks, deliveries, process.caller, settings.webhooks, process.wall)
    webhooks = WebhookDesk(hooks, deliveries, courier, settings.webhooks, process.wall)
    digests = Digests(hooks, deliveries, courier, process.results.digest, process.wall)
    alarm, decided = process.results.alarm, process.results.ended_decision
    fanout = Fanout(hooks, deliveries, courier, alarm, decided, process.wall)

    # What these two cannot read is set aside when it is found in its bucket.
    async def heard(msg: Msg) -> None:
        if bus.is_marker(msg.headers):
            return
        with suppress(DecodeError):
            if fleet.hear(evaluator_pb2.Evaluator.FromString(msg.data), clock()):
                registry.wake.set()

    async def heard_batch(msg: Msg) -> None:
        if not bus.is_marker(msg.headers):
            with suppress(ValueError):
                scheduler.on_batch(bus.BatchRecord.decode(msg.data))

    announcements = await connection.kv_watch(bus.EVALUATORS, "*", heard)
    batches = await connection.kv_watch(bus.PROVIDER_BATCHES, ">", heard_batch)
    try:
        async for _, msg in connection.kv_all(bus.EVALUATORS):
            # Its time is when the server stored it: an old entry is known, but not live.
            async with aside.guard(msg):
                fleet.hear(evaluator_pb2.Evaluator.FromString(msg.data), msg.metadata.timestamp.timestamp())
        jobs = await store.load(registry.view)
        await timetable.load()
        await drains.load()
        released = await work.released()
        position = await work.results_position()
        for job in jobs:
            job.rewind(position)
        relayed = {job.id: job.told.event_id for job in jobs if job.id not in store.in_outbox}
        after = scheduler.restore(jobs, released, position)
        for job_id in {job_id for job_id, _ in released} - {job.id for job in jobs if job.live}:
            await work.withdraw(job_id)
        async for _, msg in connection.kv_all(bus.PROVIDER_BATCHES):
            async with aside.guard(msg):
                scheduler.on_batch(bus.BatchRecord.decode(msg.data))
        replayed = asyncio.Event()
        replay = Replay(connection, scheduler, aside)

        async def pump() -> None:
            # Releasing before the end of the replay would run done units again.
            await replayed.wait()
            await log_set_aside(connection)
            experiments = Experiments(registry, process.results, desk)
            watches = Watches(desk, process.results, timetable)
            await leads(Leader(desk, fleet, timetable, webhooks, drains, experiments, registry, watches))
            registry.wake.set()
            async with asyncio.TaskGroup() as running:
                running.create_task(scheduler.run())
                running.create_task(timetable.run())
                running.create_task(Judges(registry, desk).run())
                running.create_task(reconcile(registry, process.results))
                running.create_task(tell_again(registry, process.results, relayed))

        # Before any job can end: events on the trail from here on may need a webhook call.
        await connection.webhooks_consumer()
        await digests.recover()
        await courier.resume()
        async with asyncio.TaskGroup() as group:
            group.create_task(process.lease.keep())
            group.create_task(store.relay())
            group.create_task(tail_results(connection, after, replay.handle, replayed.set))
            group.create_task(pump())
            group.create_task(follow_audit(connection, aside, fanout.take))
            group.create_task(digests.run())
    finally:
        await courier.close()
        if connection.connected:
            await announcements.unsubscribe()
            await batches.unsubscribe()
