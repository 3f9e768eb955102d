"""From JetStream into DuckDB. A message is acknowledged after the transaction that holds it, and its stream position,
is on disk; so a crash at any moment loses nothing and doubles nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial

import duckdb
from google.protobuf.message import DecodeError
from nats.aio.msg import Msg

from services import bus
from services.errors import UnavailableError
from services.results import duckdb_store
from services.results.database import Connection, Database
from services.results.duckdb_store import Mark
from services.results.stream import BATCH, NATS_TROUBLE, OrderedStream
from touchstone.v1 import item_result_pb2, job_pb2

log = logging.getLogger(__name__)

Store = Callable[[Connection, Sequence[Msg]], None]

_LINGER_S = 0.1
_FEW_MESSAGES = BATCH // 2
"""Fewer than so many are followed by a pause, so that small messages share the next commit."""
_ROOM_CHECK_S = 1.0


def store_items(connection: Connection, messages: Sequence[Msg]) -> None:
    """Stores item results; plans and faults on the same stream are the scheduler's."""
    duckdb_store.store_items(connection, _batches(messages))


def insert_items(connection: Connection, messages: Sequence[Msg]) -> None:
    """The same, quicker, for items that are new. Raises duckdb.ConstraintException when one is not."""
    duckdb_store.insert_items(connection, _batches(messages))


def _batches(messages: Sequence[Msg]) -> list[item_result_pb2.ItemResultBatch]:
    batches = []
    for msg in messages:
        if (msg.headers or {}).get("Touchstone-Kind") == bus.KIND_ITEMS:
            try:
                batches.append(item_result_pb2.ItemResultBatch.FromString(msg.data))
            except DecodeError:
                log.error("skipped a message on %s that is no item result batch", msg.subject)
    return batches


def store_events(connection: Connection, messages: Sequence[Msg]) -> None:
    events = []
    for msg in messages:
        try:
            event = job_pb2.JobEvent.FromString(msg.data)
        except DecodeError:
            log.error("skipped a message on %s that is no job event", msg.subject)
            continue
        # Such URLs often hold a token, and everybody may read the jobs here. The scheduler has told who is to be told.
        event.job.spec.ClearField("webhook_url")
        events.append(event)
    duckdb_store.store_events(connection, events)


class Feed:
    """One stream on its way into the database.

    `first` is a quicker way to store, tried first; where it meets a key that is stored already, `store` does it.
    """

    def __init__(self, database: Database, stream: OrderedStream, store: Store, first: Store | None = None) -> None:
        self.position = 0
        """Everything up to here is on disk."""
        self._database = database
        self._stream = stream
        self._store = store
        self._first = first or store
        self._moved = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._waiting = 0

    async def run(self) -> None:
        """Stores until cancelled. Survives a NATS that is away; raises UnavailableError when the disk refuses."""
        mark = await self._database.read(lambda connection: duckdb_store.read_mark(connection, self._stream.name))
        while True:
            # The stored mark counts only once the stream was found to be the one that it speaks of.
            mark, messages = await self._stream.fetch(mark)
            if messages:
                await self._commit(mark, messages)
            async with self._moved:
                self.position = mark.sequence
                self._moved.notify_all()
            if 0 < len(messages) < _FEW_MESSAGES:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), _LINGER_S)

    async def reached(self, position: int, timeout_s: float) -> None:
        """Returns when everything up to the position is on disk. Raises UnavailableError after `timeout_s`."""
        self._waiting += 1
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self.position >= position)
        except TimeoutError as error:
            raise UnavailableError(
                f"Results are stored up to position {self.position}, not yet to {position}. Try again in a moment."
            ) from error
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._hurry.clear()

    async def _commit(self, mark: Mark, messages: list[Msg]) -> None:
        def change(connection: Connection, store: Store) -> None:
            store(connection, messages)
            duckdb_store.write_mark(connection, mark)

        try:
            await self._database.write(partial(change, store=self._first))
        except duckdb.ConstraintException:
            await self._database.write(partial(change, store=self._store))
        await self._stream.acknowledge(messages)


async def keep_room(connection: bus.Bus, feed: Feed, room: bus.Room, holding: asyncio.Lock) -> None:
    """Purges RESULTS of what is on disk here and no longer needed by the scheduler, once it is half full or the disk is
    low. Not while `holding` is held."""
    while True:
        await asyncio.sleep(_ROOM_CHECK_S)
        try:
            async with holding:
                await _purge(connection, feed.position, room)
        except NATS_TROUBLE as error:
            log.warning("cannot check the room in %s: %s", bus.RESULTS, error or type(error).__name__)


async def _purge(connection: bus.Bus, stored: int, room: bus.Room) -> None:
    info = await connection.js.stream_info(bus.RESULTS)
    most = info.config.max_bytes or 0
    # On a small disk the stream may never be half full.
    if room.level is bus.Level.ENOUGH and (most <= 0 or info.state.bytes <= most / 2):
        return
    floor = await connection.kv_get(bus.JOBS, bus.FLOOR_KEY)
    last = min(stored, int(floor.data or b"0")) if floor is not None else 0
    if last >= info.state.first_seq:
        await connection.js.purge_stream(bus.RESULTS, seq=last + 1)
        log.info("purged %s up to %d of %d", bus.RESULTS, last, info.state.last_seq)
