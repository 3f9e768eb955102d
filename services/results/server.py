"""Wires the results service: the database, two feeds from JetStream, gRPC."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine
from typing import Any

from services import bus, rpc
from services.errors import UnavailableError
from services.results import answer_texts, ingest
from services.results.database import Database
from services.results.imports import keeping
from services.results.ingest import Feed
from services.results.schema import open_file
from services.results.servicer import ResultsServicer
from services.results.settings import Settings
from services.results.stream import NATS_TROUBLE, OrderedStream
from touchstone.v1 import evaluator_pb2, results_service_pb2, results_service_pb2_grpc, suite_pb2

log = logging.getLogger(__name__)

_JOB_ID = re.compile(r"[0-9a-f-]{36}")

NAME = results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"].full_name


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop` is set. Raises UnavailableError when NATS, the port or the disk is not usable."""
    # The file's lock comes first: a second results service must not touch the consumers of the first.
    database = Database(await asyncio.to_thread(open_file, settings.database))
    try:
        connection = await bus.open_bus(settings.bus, "results")
        try:
            await _serve(settings, stop, database, connection)
        finally:
            await connection.close()
    finally:
        await database.close()


async def _serve(settings: Settings, stop: asyncio.Event, database: Database, connection: bus.Bus) -> None:
    items = Feed(
        database, OrderedStream(connection, bus.RESULTS, "results-items"), ingest.store_items, ingest.insert_items
    )
    events = Feed(database, OrderedStream(connection, bus.AUDIT, "results-events"), ingest.store_events)
    servicer = ResultsServicer(
        database,
        items,
        events,
        lambda: announced_suites(connection),
        lambda job_id: is_job(connection, job_id),
        settings.reads,
    )
    lookup = connection.token if settings.rpc.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, settings.rpc.service_token)
    register = results_service_pb2_grpc.add_ResultsServiceServicer_to_server
    async with rpc.serve(settings.listen, authenticate, [(register, servicer, NAME)], tls=rpc.Tls.from_env()) as server:
        await server.set_ready(True)
        try:
            purging = ingest.keep_room(connection, items)
            bounding = answer_texts.keep_bounded(database, settings.answers_max_bytes)
            tidying = keeping.keep_tidy(database, settings.answers_max_bytes)
            await _until_first(stop.wait(), database.lost.wait(), items.run(), events.run(), purging, bounding, tidying)
        finally:
            await server.set_ready(False)
    if database.lost.is_set():
        raise UnavailableError(
            f"The results database {settings.database} cannot be written. "
            "Make room on its disk; nothing acknowledged is lost, and the service goes on when it starts again."
        )


async def _until_first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Runs all until one ends, then ends the others; raises what it raised."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def announced_suites(connection: bus.Bus) -> list[suite_pb2.Suite]:
    """Every suite that some evaluator announced in the last days. Raises UnavailableError when NATS is away."""
    try:
        return [
            suite
            async for _, msg in connection.kv_all(bus.EVALUATORS)
            for suite in evaluator_pb2.Evaluator.FromString(msg.data).suites
        ]
    except NATS_TROUBLE as error:
        raise UnavailableError("NATS does not answer. Try again in a moment.") from error


async def is_job(connection: bus.Bus, job_id: str) -> bool:
    """Whether the scheduler has the job. False also while NATS is away: what is stored can be read without it."""
    if not _JOB_ID.fullmatch(job_id):
        return False
    try:
        return await connection.kv_get(bus.JOBS, bus.job_key(job_id)) is not None
    except NATS_TROUBLE:
        return False
