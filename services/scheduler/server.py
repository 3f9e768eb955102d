"""Wires the scheduler: one leadership after another, until the process is told to stop."""

from __future__ import annotations

import asyncio
import logging
import time

import nats.errors
import nats.js.errors
from nats.aio.msg import Msg

from services import bus, rpc
from services.scheduler.board import Board
from services.scheduler.desk import Desk
from services.scheduler.fleet import Fleet
from services.scheduler.lease import Lease
from services.scheduler.nats_store import JobStore
from services.scheduler.nats_work import WorkStream, tail_results
from services.scheduler.ports import LeadershipLostError
from services.scheduler.results_client import ResultsClient
from services.scheduler.scheduler import Scheduler
from services.scheduler.servicer import Leader, Servicer
from services.scheduler.settings import Settings
from touchstone.v1 import evaluator_pb2, scheduler_service_pb2, scheduler_service_pb2_grpc, unit_pb2

log = logging.getLogger(__name__)

_SERVICE = scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"].full_name


class Clock:
    """Seconds since 1970 that never go back within a process."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self._offset


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop` is set."""
    connection = await bus.open_bus(settings.bus, f"scheduler {settings.name}")
    clock = Clock()
    lease = Lease(connection, settings.name)
    leader: list[Leader] = []
    lookup = connection.token if settings.rpc.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, settings.rpc.service_token)
    servicer = Servicer(lambda: leader[0] if leader else None, lambda: lease.holder, clock)
    service = (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, servicer, _SERVICE)
    results_channel = rpc.channel(settings.results)
    results = ResultsClient(results_channel, settings.rpc.service_token)
    async with rpc.serve(settings.listen, authenticate, [service]) as server:
        leading = asyncio.create_task(_lead_for_ever(settings, connection, lease, results, clock, leader, server))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({leading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await server.set_ready(False)
        leading.cancel()
        await asyncio.wait({leading})
        await lease.give_up()
    await results_channel.close()
    await connection.close()
    if not leading.cancelled() and (error := leading.exception()):
        raise error


async def _lead_for_ever(
    settings: Settings,
    connection: bus.Bus,
    lease: Lease,
    results: ResultsClient,
    clock: Clock,
    leader: list[Leader],
    server: rpc.Server,
) -> None:
    while True:
        epoch = await lease.acquire()
        log.info("%s leads, epoch %d", settings.name, epoch)
        try:
            await _lead(settings, connection, lease, epoch, results, clock, leader, server)
        except* (LeadershipLostError, nats.errors.Error, nats.js.errors.Error) as group:
            log.warning("leadership ended: %s", "; ".join(_leaves(group)))
        finally:
            leader.clear()
            await server.set_ready(False)
        await asyncio.sleep(0.2)


async def _lead(
    settings: Settings,
    connection: bus.Bus,
    lease: Lease,
    epoch: int,
    results: ResultsClient,
    clock: Clock,
    leader: list[Leader],
    server: rpc.Server,
) -> None:
    store = JobStore(connection, epoch)
    work = WorkStream(connection, lease)
    fleet = Fleet(settings.limits.absent_after_s)
    board = Board(store, work, fleet, settings.limits, clock, store.event_id)
    scheduler = Scheduler(board, results)

    async def heard(msg: Msg) -> None:
        if bus.is_marker(msg.headers):
            return
        if fleet.hear(evaluator_pb2.Evaluator.FromString(msg.data), clock()):
            board.wake.set()

    announcements = await connection.kv_watch(bus.EVALUATORS, "*", heard)
    try:
        async for _, msg in connection.kv_all(bus.EVALUATORS):
            # Heard when the server stored it: an old entry is known, but not live.
            fleet.hear(evaluator_pb2.Evaluator.FromString(msg.data), msg.metadata.timestamp.timestamp())
        jobs = await store.load()
        released = await work.released()
        position = await work.results_position()
        after = scheduler.restore(jobs, released, position)
        for job_id in {job_id for job_id, _ in released} - {job.id for job in jobs if job.live}:
            await work.withdraw(job_id)
        replayed = asyncio.Event()

        async def on_result(job_id: str, unit: int, headers: bus.ResultHeaders, sequence: int) -> None:
            if headers.kind == bus.KIND_ITEMS:
                scheduler.on_items(job_id, unit, headers, sequence)
            elif headers.kind in (bus.KIND_PLAN, bus.KIND_FAULT) and scheduler.awaits(job_id, headers.attempt):
                body = (await connection.js.get_msg(bus.RESULTS, seq=sequence, direct=True)).data or b""
                if headers.kind == bus.KIND_PLAN:
                    await scheduler.on_plan(job_id, headers.attempt, unit_pb2.Plan.FromString(body), sequence)
                else:
                    await scheduler.on_fault(job_id, headers.attempt, unit_pb2.Fault.FromString(body), sequence)
            else:
                scheduler.on_other(sequence)

        async def pump() -> None:
            # Releasing before the replay is through would run done units again.
            await replayed.wait()
            leader[:] = [Leader(Desk(board, results), fleet)]
            await server.set_ready(True)
            board.wake.set()
            await scheduler.run()

        async with asyncio.TaskGroup() as group:
            group.create_task(lease.keep())
            group.create_task(store.relay())
            group.create_task(tail_results(connection, after, on_result, replayed.set))
            group.create_task(pump())
    finally:
        if connection.connected:
            await announcements.unsubscribe()


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[str]:
    found: list[str] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [str(error) or type(error).__name__]
    return found
