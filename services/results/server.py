"""Wires the results service: the database, two feeds from JetStream, gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from services import bus, rpc
from services.bus import Bus, Datasets, Room
from services.bus.measuring import measure_connection
from services.errors import UnavailableError
from services.results import visibility
from services.results.archive.archiving import Archiving
from services.results.archive.leaving import Leaving
from services.results.archive.lending import Lending
from services.results.archive.returning import Returning
from services.results.backups.making import Backups
from services.results.calls import store as call_store
from services.results.calls.closing import RecordedRuns
from services.results.datasets.deleting import Deletions, Expiry, live_jobs
from services.results.datasets.garbage_collection import Collector, ShardHolds
from services.results.datasets.servicer import DatasetServicer
from services.results.datasets.uploading import UploadLimits, Uploads
from services.results.experiments.preparing import Experiments
from services.results.imports import store as imports_store
from services.results.installation import Installation
from services.results.intake import feeds, kept_stream, resealing, writes
from services.results.intake.feeds import Feed
from services.results.intake.ordered_stream import OrderedStream
from services.results.internal_servicer import ResultsInternalServicer
from services.results.judging.preparing import Judgings
from services.results.measuring import STREAM_GAUGES, measure_files, measure_streams
from services.results.mlflow.publishing import Publishing
from services.results.read_queue import Questions
from services.results.replica.copying import Copying
from services.results.servicer import ResultsServicer
from services.results.settings import Settings
from services.results.storage import archived_items, text_retention
from services.results.storage.database import Database, damaged, first_row
from services.results.storage.job_files import JobFiles
from services.results.storage.migrations import open_file
from services.telemetry import metrics, serving
from touchstone.v1 import (
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    results_internal_service_pb2,
    results_internal_service_pb2_grpc,
    results_service_pb2,
    results_service_pb2_grpc,
)


class DatasetParts:
    """The datasets of one results service: `reconcile` first, then serve `servicer` while `run` runs."""

    def __init__(
        self,
        connection: Bus,
        store: Datasets,
        database: Database,
        limits: UploadLimits,
        questions: Questions,
        reads: str = visibility.OPEN,
        room: Room | None = None,
    ) -> None:
        holding = ShardHolds()
        self.room = room or Room()
        self.collector = Collector(store, database, holding)
        self.deletions = Deletions(
            store, database, self.collector, lambda dataset_id: live_jobs(connection, dataset_id)
        )
        self.expiry = Expiry(database, self.deletions.delete)
        self.uploads = Uploads(store, database, holding, self.collector, self.expiry, limits)
        self.servicer = DatasetServicer(
            connection, store, database, self.uploads, self.deletions, self.collector, self.room, questions, reads
        )

    async def reconcile(self) -> None:
        """Brings the index in line with the store. Raises UnavailableError without NATS."""
        self.deletions.resume(await self.collector.reconcile())

    async def run(self) -> None:
        """Completes interrupted deletions, cleans up, and deletes expired datasets, until cancelled."""
        await asyncio.gather(self.collector.run(), self.deletions.run(), self.expiry.run())


log = logging.getLogger(__name__)

NAME = results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"].full_name
INTERNAL_NAME = results_internal_service_pb2.DESCRIPTOR.services_by_name["ResultsInternalService"].full_name
_LOOK_S = 0.02
DATASETS_NAME = dataset_service_pb2.DESCRIPTOR.services_by_name["DatasetService"].full_name


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Runs until `stop` is set. Raises UnavailableError when NATS, the port or the disk is not usable."""
    # Take the file's lock first: a second results service must not touch the consumers of the first.
    room = bus.Room.from_env(settings.database.parent, settings.bus.monitor_url)
    database = Database(await asyncio.to_thread(open_file, settings.database, *settings.written))
    returning = Returning(database, settings.archive, settings.s3_url, settings.moving, room)
    lending = Lending(database, returning)
    await lending.tidy()
    database.bring_back, database.lend = returning.bring_back, lending.lend
    try:
        connection = await bus.open_bus(settings.bus, "results")
        try:
            await _require_answers(settings, database, connection)
            async with serving.serve(metrics.RESULTS, settings.metrics) as shown:
                await _serve(settings, stop, database, returning, connection, room, shown)
        finally:
            await connection.close()
    finally:
        await returning.close()
        await database.close()


async def _require_answers(settings: Settings, database: Database, connection: bus.Bus) -> None:
    """Raises DamagedFilesError for a database that lacks answers which NATS no longer has: one that has lost its log,
    or that replaced a lost one."""
    mark = await database.read(lambda c: writes.read_mark(c, bus.RESULTS))
    if mark.created:
        info = await connection.js.stream_info(bus.RESULTS)
        same = info.created is not None and mark.created == info.created.isoformat()
        # Beyond the floor nothing is purged: there the stream itself has lost something, and reading continues.
        if same and mark.sequence + 1 < info.state.first_seq <= await feeds.floor(connection) + 1:
            raise damaged(settings.database, "it has lost answers, and NATS no longer has all of them")
        return
    if await database.read(lambda c: first_row(c, "FROM items SELECT 1 LIMIT 1", {})):
        return
    marker = archived_items.marker_of(settings.database)
    there = await asyncio.to_thread(lambda: marker.exists() or any(settings.job_files.glob("*.parquet")))
    if there and (await connection.js.stream_info(bus.RESULTS)).state.first_seq > 1:
        raise damaged(settings.database, "it was lost, and NATS no longer has all answers")


async def _serve(
    settings: Settings,
    stop: asyncio.Event,
    database: Database,
    returning: Returning,
    connection: bus.Bus,
    room: bus.Room,
    shown: serving.Metrics,
) -> None:
    aside = bus.SettingAside(connection, "results")
    answers = OrderedStream(connection, bus.RESULTS, "results-items")
    trail = OrderedStream(connection, bus.AUDIT, "results-events")
    # Items are many, and nobody looks at single ones at once.
    items = Feed(database, answers, aside, feeds.store_items, feeds.insert_items, of_jobs=False, linger_s=0.25)
    events = Feed(database, trail, aside, feeds.store_events)
    calls = OrderedStream(connection, bus.USAGE, "results-usage")
    usage = Feed(database, calls, aside, call_store.store, of_jobs=False)
    backups = Backups(connection, database, settings.backups, settings.s3_url, settings.backup_scratch)
    said = kept_stream.KeptStream(connection, database)
    questions = Questions(database)
    store = bus.Datasets(connection, settings.datasets_max_bytes)
    lookup = connection.token if settings.rpc.auth == "token" else None
    authenticate = rpc.Authenticator(lookup, settings.rpc.service_token, settings.rpc.wrong_tokens)
    datasets = DatasetParts(connection, store, database, settings.uploads, questions, settings.reads, room)
    judgings = Judgings(database, datasets.uploads, room)
    experiments = Experiments(datasets.uploads, room)
    internal = ResultsInternalServicer(database, items, usage, judgings, experiments, settings.reads)
    recorded_runs = RecordedRuns(connection, database, usage, events, datasets.uploads, room)
    servicer = ResultsServicer(
        database,
        internal,
        events,
        Installation(connection),
        said,
        questions,
        settings.reads,
        room,
        store,
        recorded_runs,
    )
    await datasets.reconcile()
    # Before any new entry, which must not take the number of one that the database has lost.
    await bus.until_first(
        database.lost.wait(), _kept_feed(connection, database, aside).run(), _begin(connection, database, said)
    )
    services: list[tuple[Callable[[Any, Any], None], Any, str]] = [
        (results_service_pb2_grpc.add_ResultsServiceServicer_to_server, servicer, NAME),
        (dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server, datasets.servicer, DATASETS_NAME),
    ]
    hidden = (results_internal_service_pb2_grpc.add_ResultsInternalServiceServicer_to_server, internal, INTERNAL_NAME)
    tls = rpc.Tls.from_env()
    shown.look(partial(measure_streams, connection, (items, events, usage)), *STREAM_GAUGES)
    shown.look(partial(measure_files, settings.database))
    copying = Copying(database, settings.replica, settings.replica_s, room)
    shown.look(copying.measure)
    shown.look(partial(measure_connection, connection))
    async with rpc.serve(settings.listen, authenticate, services, internal=[hidden], tls=tls) as server:
        await server.set_ready(True)
        try:
            purging = feeds.keep_room(connection, items, room, backups.holding)
            leaving = Leaving(database, returning, settings.archive, settings.s3_url, settings.keep_items_days, room)
            bounding = text_retention.keep_bounded(database, settings.answers_max_bytes)
            tidying = imports_store.keep_tidy(database, settings.answers_max_bytes)
            await bus.until_first(
                stop.wait(),
                database.lost.wait(),
                items.run(),
                events.run(),
                usage.run(),
                _kept_feed(connection, database, aside).run(),
                resealing.reseal_lost(connection, database, items, events),
                bus.keep_replicated(connection.js, settings.bus.replicas),
                purging,
                bounding,
                tidying,
                recorded_runs.keep_tidy(settings.answers_max_bytes),
                datasets.run(),
                room.run(),
                room.tell(connection),
                bus.watch_nats(connection, server.set_reaches_nats),
                backups.serve(),
                JobFiles(database, settings.job_files, room).run(),
                Archiving(database, settings.archive, settings.s3_url, settings.scratch, room).run(),
                leaving.run(),
                copying.run(),
                Publishing(database, settings.mlflow).run(),
            )
        finally:
            await server.set_ready(False)
    if database.damage is not None:
        raise database.damage
    if database.lost.is_set():
        raise UnavailableError(
            f"The results database {settings.database} cannot be written. Free some disk space. Nothing "
            "acknowledged is lost, and the service continues after its restart."
        )


def _kept_feed(connection: bus.Bus, database: Database, aside: bus.SettingAside) -> Feed:
    return Feed(database, OrderedStream(connection, bus.KEPT, "results-kept"), aside, kept_stream.store)


async def _begin(connection: bus.Bus, database: Database, said: kept_stream.KeptStream) -> None:
    """Waits until every published entry is stored."""
    last = (await connection.js.stream_info(bus.KEPT)).state.last_seq
    while True:
        mark = await database.read(lambda c: writes.read_mark(c, bus.KEPT))
        if mark.sequence >= last:
            return await said.begin()
        await asyncio.sleep(_LOOK_S)
