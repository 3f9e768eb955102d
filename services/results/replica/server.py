"""Answers the reads of ResultsService and DatasetService from the newest copy, in a separate process: `python -m
services.results --replica`. It has to see the folder of copies, so it runs where the results service does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor

from services import bus, rpc
from services.bus.measuring import measure_connection
from services.errors import UnavailableError
from services.results.datasets.read_servicer import DatasetReadServicer
from services.results.installation import Installation
from services.results.read_queue import Questions
from services.results.read_servicer import ReadServicer
from services.results.replica.following import LOOK_S, Replica
from services.results.settings import Settings
from services.telemetry import metrics, serving
from services.words.addresses import AS_OF
from touchstone.v1 import (
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    results_service_pb2,
    results_service_pb2_grpc,
)

log = logging.getLogger(__name__)

_RESULTS = results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"]
_DATASETS = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"]


class Answering:
    """The methods of a service: those that `servicer` implements, each with a header that says as of when the answer
    is; others are refused."""

    def __init__(self, service: ServiceDescriptor, servicer: Any, replica: Replica) -> None:
        for method in service.methods:
            answer = getattr(servicer, method.name, None)
            if answer is None:
                answer = _refuse
            else:
                answer = (_streamed if method.server_streaming else _stamped)(answer, replica)
            setattr(self, method.name, answer)


def _stamped(answer: Callable[..., Any], replica: Replica) -> Callable[..., Any]:
    async def call(request: Any, context: Any) -> Any:
        # Before the answer is read, so that it is never older than it says.
        await context.send_initial_metadata(((AS_OF, replica.as_of()),))
        return await answer(request, context)

    return call


def _streamed(answer: Callable[..., Any], replica: Replica) -> Callable[..., Any]:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        await context.send_initial_metadata(((AS_OF, replica.as_of()),))
        async with aclosing(answer(request, context)) as pieces:
            async for piece in pieces:
                yield piece

    return call


async def _refuse(request: Any, context: Any) -> Any:
    raise UnavailableError(
        "The results service does not answer. A copy of its data answers reads, but takes no changes. Try again in a "
        "moment."
    )


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop` is set, also while there is no copy. Raises UnavailableError when NATS or the port is not
    usable."""
    connection = await bus.connect(settings.bus.url, "results-replica", settings.bus.login)
    try:
        async with serving.serve(metrics.RESULTS, settings.metrics) as shown:
            await _serve(settings, stop, connection, shown)
    finally:
        await connection.close()


async def _serve(settings: Settings, stop: asyncio.Event, connection: bus.Bus, shown: serving.Metrics) -> None:
    replica = Replica(settings.replica)
    shown.look(replica.measure)
    shown.look(partial(measure_connection, connection))
    questions, store = Questions(replica), bus.Datasets(connection)
    results = ReadServicer(replica, Installation(connection), questions, settings.reads, store)
    datasets = DatasetReadServicer(store, questions, settings.reads)
    services: list[tuple[Callable[[Any, Any], None], Any, str]] = [
        (
            results_service_pb2_grpc.add_ResultsServiceServicer_to_server,
            Answering(_RESULTS, results, replica),
            _RESULTS.full_name,
        ),
        (
            dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server,
            Answering(_DATASETS, datasets, replica),
            _DATASETS.full_name,
        ),
    ]
    # It writes nothing: the gateway has noted the use of the token.
    lookup = partial(connection.token, note_use=False) if settings.rpc.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, settings.rpc.service_token, settings.rpc.wrong_tokens)
    try:
        async with rpc.serve(settings.replica_listen, authenticate, services, tls=rpc.Tls.from_env()) as server:
            await bus.until_first(
                stop.wait(), _follow(replica, server), bus.watch_nats(connection, server.set_reaches_nats)
            )
    finally:
        await replica.close()


async def _follow(replica: Replica, server: rpc.Server) -> None:
    told: bool | None = None
    while True:
        try:
            await replica.look()
        except OSError as error:
            log.warning("the folder of copies cannot be read: %s", error)
        if replica.is_open is not told:
            told = replica.is_open
            await server.set_ready(told, standby=True)
        await asyncio.sleep(LOOK_S)
