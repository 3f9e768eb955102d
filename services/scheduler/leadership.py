"""One leadership: everything is read back, then jobs run until the lease is lost or the process ends."""

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
from services.scheduler.lifecycle.replay import Replay
from services.scheduler.lifecycle.scheduler import Scheduler
from services.scheduler.nats.jobs_bucket import JobStore, ScheduleStore
from services.scheduler.nats.lease import Lease
from services.scheduler.nats.streams import WorkStream, tail_results
from services.scheduler.ports import Results
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.paging import log_set_aside
from services.scheduler.requests.visibility import Reads
from services.scheduler.schedules.schedules import Timetable
from services.scheduler.servicer import Leader
from services.scheduler.settings import Settings
from services.scheduler.webhooks.address import AddressRule
from services.scheduler.webhooks.courier import Courier, Fanout
from services.scheduler.webhooks.nats_webhooks import DeliveryBucket, HookBucket, follow_audit
from services.scheduler.webhooks.ports import Caller
from services.scheduler.webhooks.requests import WebhookDesk
from touchstone.v1 import evaluator_pb2


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
    hooks, deliveries = HookBucket(connection, aside), DeliveryBucket(connection, aside)
    courier = Courier(hooks, deliveries, process.caller, settings.webhooks, process.wall)
    webhooks = WebhookDesk(hooks, deliveries, courier, settings.webhooks, process.wall)
    fanout = Fanout(hooks, deliveries, courier, process.wall)

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
            await leads(Leader(desk, fleet, timetable, webhooks))
            registry.wake.set()
            async with asyncio.TaskGroup() as running:
                running.create_task(scheduler.run())
                running.create_task(timetable.run())
                running.create_task(reconcile(registry, process.results))
                running.create_task(tell_again(registry, process.results, relayed))

        # Before any job can end: events on the trail from here on may need a webhook call.
        await connection.webhooks_consumer()
        await courier.resume()
        async with asyncio.TaskGroup() as group:
            group.create_task(process.lease.keep())
            group.create_task(store.relay())
            group.create_task(tail_results(connection, after, replay.handle, replayed.set))
            group.create_task(pump())
            group.create_task(follow_audit(connection, aside, fanout.take))
    finally:
        await courier.close()
        if connection.connected:
            await announcements.unsubscribe()
            await batches.unsubscribe()
