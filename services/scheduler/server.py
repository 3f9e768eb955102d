"""Wires the scheduler: one leadership after another, until a signal to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial

import nats.errors
import nats.js.errors

from services import bus, rpc
from services.bus import end_tasks
from services.bus.measuring import measure_connection
from services.errors import UnavailableError
from services.scheduler.leadership import Process, lead
from services.scheduler.measuring import measure
from services.scheduler.nats.lease import Lease
from services.scheduler.requests.paging import list_job_logs, list_set_aside
from services.scheduler.requests.visibility import Reads
from services.scheduler.results_client import ResultsClient
from services.scheduler.servicer import Leader, Servicer
from services.scheduler.settings import Settings
from services.scheduler.webhooks.http_caller import HttpCaller
from services.telemetry import metrics, serving
from touchstone.v1 import scheduler_service_pb2, scheduler_service_pb2_grpc

log = logging.getLogger(__name__)

_SERVICE = scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"].full_name


class Clock:
    """Seconds since 1970 that never go back within a process."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def __call__(self) -> float:
        return time.monotonic() + self._offset


async def serve(settings: Settings, stop: asyncio.Event, clock: Callable[[], float] | None = None) -> None:
    """Runs until `stop` is set. `clock` gives seconds since 1970, by which schedules also come due; the system's clocks
    unless given."""
    connection = await bus.open_bus(settings.bus, f"scheduler {settings.name}")
    lease = Lease(connection, settings.name)
    leader: list[Leader] = []
    tls = rpc.Tls.from_env()
    results_channel = rpc.channel(settings.results, tls)
    lookup = connection.token if settings.rpc.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, settings.rpc.service_token, settings.rpc.wrong_tokens)
    room = bus.Room.from_env(settings.state_dir, settings.bus.monitor_url)
    await room.listen(connection)
    secrets = [settings.rpc.service_token, *settings.bus.secrets]
    async with (
        serving.serve(metrics.SCHEDULER, settings.metrics) as shown,
        aclosing(HttpCaller(settings.webhooks)) as caller,
        bus.job_logs(connection.publish_log, f"scheduler {settings.name}", secrets),
    ):
        process = Process(
            settings=settings,
            connection=connection,
            room=room,
            lease=lease,
            results=ResultsClient(results_channel, settings.rpc.service_token),
            caller=caller,
            reads=Reads(own=settings.reads == "own"),
            clock=clock or Clock(),
            wall=clock or time.time,
        )
        servicer = Servicer(
            lambda: leader[0] if leader else None,
            lambda: lease.why_not,
            process.clock,
            process.reads,
            partial(list_job_logs, connection),
            partial(list_set_aside, connection),
            room,
        )
        shown.look(lambda: measure(leader[0].registry if leader else None))
        shown.look(partial(measure_connection, connection))
        service = (scheduler_service_pb2_grpc.add_SchedulerServiceServicer_to_server, servicer, _SERVICE)
        async with rpc.serve(settings.listen, authenticate, [service], tls=tls) as server:
            await server.set_ready(False, standby=True)
            watching = asyncio.create_task(room.run())
            reaching = asyncio.create_task(bus.watch_nats(connection, server.set_reaches_nats))
            leading = asyncio.create_task(_lead_for_ever(process, leader, server))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({leading, stopping, watching, reaching}, return_when=asyncio.FIRST_COMPLETED)
            await server.set_ready(False)
            await end_tasks([leading, watching, reaching])
            await lease.give_up()
    await results_channel.close()
    await connection.close()
    for task in (leading, watching, reaching):
        if not task.cancelled() and (error := task.exception()):
            raise error


async def _lead_for_ever(process: Process, leader: list[Leader], server: rpc.Server) -> None:
    async def leads(one: Leader) -> None:
        leader[:] = [one]
        await server.set_ready(True)

    while True:
        epoch = await process.lease.acquire()
        log.info("%s leads, epoch %d", process.settings.name, epoch)
        try:
            # In a separate task: before Python 3.13 a TaskGroup that fails may leave its request to cancel with the
            # task, which the next leadership would heed.
            await asyncio.create_task(lead(process, epoch, leads))
        except* (UnavailableError, nats.errors.Error, nats.js.errors.Error) as group:
            log.warning("leadership ended: %s", "; ".join(_leaves(group)))
        finally:
            leader.clear()
            await server.set_ready(False, standby=True)
        await asyncio.sleep(0.2)


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[str]:
    found: list[str] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [str(error) or type(error).__name__]
    return found
