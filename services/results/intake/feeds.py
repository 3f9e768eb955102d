"""From JetStream into DuckDB. A message is acknowledged after the transaction that holds it, and its stream position,
is on disk; so a crash at any moment neither loses nor duplicates anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import duckdb
from nats.aio.msg import Msg

from services import bus
from services.errors import UnavailableError
from services.results.intake import writes
from services.results.intake.ordered_stream import BATCH, NATS_TROUBLE, OrderedStream
from services.results.intake.writes import Mark
from services.results.storage.database import FATAL, Connection, Database, damage
from services.results.tracing import trace_stored
from services.telemetry import metrics
from touchstone.v1 import item_result_pb2, job_pb2

MOST_TRIES = 2
"""How often one message alone may break the database: the machine may have had a passing fault."""
log = logging.getLogger(__name__)

Store = Callable[[Connection, Sequence[Msg]], None]

_LINGER_S = 0.1
_FEW_MESSAGES = BATCH // 2
"""Below this number of messages, a pause follows, so that small messages share the next commit."""
_ROOM_CHECK_S, _REST_CHECK_S = 1.0, 10.0
"""While messages are stored, and while none are."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """Messages from `first` to `last` of a stream, of which one broke the database, `tries` times in a row."""

    first: int
    last: int
    tries: int
    reason: str

    def has(self, position: int) -> bool:
        return self.first <= position <= self.last


class Blamed:
    """Messages of one stream that may have broken the open database, remembered next to it across the restart.

    DuckDB reports some of its own faults with an InternalException, and is unusable from then on. The same message
    would break it again after each start, so it has to be found and set aside.
    """

    def __init__(self, folder: Path, stream: str) -> None:
        self._path = folder / f"suspects-{stream}.json"
        self.suspects: Suspects | None = None
        with suppress(OSError, ValueError, TypeError):
            self.suspects = Suspects(**json.loads(self._path.read_text()))

    def note(self, first: int, last: int, reason: str) -> None:
        """The database broke while storing these. If the disk refuses the note, only its help is lost."""
        before = self.suspects
        tries = before.tries + 1 if before is not None and (before.first, before.last) == (first, last) else 1
        self.suspects = Suspects(first, last, tries, reason)
        fresh = self._path.with_suffix(".new")
        with suppress(OSError):
            fresh.write_text(json.dumps(asdict(self.suspects)))
            os.chmod(fresh, 0o600)
            fresh.replace(self._path)

    def clear(self, position: int) -> None:
        """Everything up to here is stored or set aside."""
        if self.suspects is not None and self.suspects.last <= position:
            self.suspects = None
            with suppress(OSError):
                self._path.unlink()


def store_items(connection: Connection, messages: Sequence[Msg]) -> None:
    """Stores item results; plans and faults on the same stream are the scheduler's."""
    writes.store_items(connection, _batches(messages))


def insert_items(connection: Connection, messages: Sequence[Msg]) -> None:
    """The same, quicker, for items that are new. Raises duckdb.ConstraintException when one is not."""
    writes.insert_items(connection, _batches(messages))


def _batches(messages: Sequence[Msg]) -> list[item_result_pb2.ItemResultBatch]:
    return [
        item_result_pb2.ItemResultBatch.FromString(msg.data)
        for msg in messages
        if (msg.headers or {}).get("Touchstone-Kind") == bus.KIND_ITEMS
    ]


def store_events(connection: Connection, messages: Sequence[Msg]) -> None:
    events = []
    for msg in messages:
        event = job_pb2.JobEvent.FromString(msg.data)
        # Such URLs often hold a token, and everybody may read the jobs here. The scheduler calls the URL itself.
        event.job.spec.ClearField("webhook_url")
        events.append(event)
    writes.store_events(connection, events)


class _UnfitError(Exception):
    """One of the messages cannot be stored, for this reason."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


@contextlib.contextmanager
def _telling_apart(*, alone: bool) -> Iterator[None]:
    """Turns errors of storing messages into _UnfitError, except errors of the database or the machine, which would hit
    any message. Memory may suffice for fewer messages, so running out of it counts as unfit only for one message
    `alone`."""
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        if alone:
            raise
        raise _UnfitError(error) from error
    except (*FATAL, duckdb.TransactionException, duckdb.ConnectionException, duckdb.InterruptException, OSError):
        raise
    except Exception as error:
        if damage(error, Path()) is not None:
            raise
        raise _UnfitError(error) from error


class Feed:
    """One stream on its way into the database.

    `first` is a quicker way to store and is tried first; where it meets a key that is already stored, `store` takes
    over. Only the message that cannot be stored is set aside; the others of its batch are stored. `of_jobs` is what
    `Database.write` takes. `linger_s` is the pause after few messages, unless somebody waits for the next ones.
    """

    def __init__(
        self,
        database: Database,
        stream: OrderedStream,
        aside: bus.SettingAside,
        store: Store,
        first: Store | None = None,
        *,
        of_jobs: bool = True,
        linger_s: float = _LINGER_S,
    ) -> None:
        self.position = 0
        """Everything up to here is on disk."""
        self._database = database
        self._stream = stream
        self._aside = aside
        self._store = store
        self._first = first or store
        self._of_jobs, self._linger_s = of_jobs, linger_s
        self._blamed = Blamed(database.path.parent, stream.name)
        self._moved = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._waiting = 0

    @property
    def stream_name(self) -> str:
        return self._stream.name

    async def run(self) -> None:
        """Stores until cancelled. Survives outages of NATS; raises UnavailableError when the disk refuses."""
        mark = await self._database.read(lambda connection: writes.read_mark(connection, self._stream.name))
        while True:
            # The stored mark counts only after a check that the stream is the one that it belongs to.
            mark, messages = await self._stream.fetch(mark)
            if messages:
                began = time.time()
                await self._commit(mark, messages)
                _count(messages)
                trace_stored(messages, began)
                await self._stream.acknowledge(messages)
            async with self._moved:
                self.position = mark.sequence
                self._moved.notify_all()
            if 0 < len(messages) < _FEW_MESSAGES:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), self._linger_s)

    async def reached(self, position: int, timeout_s: float) -> None:
        """Returns when everything up to the position is on disk. Raises UnavailableError after `timeout_s`."""
        self._waiting += 1
        self._hurry.set()
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self.position >= position)
        except TimeoutError as error:
            raise UnavailableError(
                f"Results are stored up to position {self.position}, but not yet up to {position}. Try again in a "
                "moment."
            ) from error
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._hurry.clear()

    async def _commit(self, mark: Mark, messages: list[Msg]) -> None:
        try:
            self._doubt(messages)
            await self._write(mark, messages)
        except _UnfitError as error:
            if len(messages) == 1:
                await self._set_aside(messages[0], error.reason)
                await self._write(mark, [])
                return
            # Some of them are at fault: repeated halving finds them.
            middle = len(messages) // 2
            before = Mark(mark.stream, mark.created, _position_of(messages[middle - 1]))
            await self._commit(before, messages[:middle])
            await self._commit(mark, messages[middle:])

    def _doubt(self, messages: Sequence[Msg]) -> None:
        """If one of these messages broke the database before this start, they are stored one by one. A message that
        breaks it alone is no longer stored."""
        suspects = self._blamed.suspects
        if suspects is None or not any(suspects.has(_position_of(msg)) for msg in messages):
            return
        if len(messages) > 1 or (suspects.first == suspects.last and suspects.tries >= MOST_TRIES):
            raise _UnfitError(duckdb.InternalException(suspects.reason))

    async def _write(self, mark: Mark, messages: Sequence[Msg]) -> None:
        try:
            await self._transact(mark, messages)
        except UnavailableError as error:
            if messages and isinstance(error.__cause__, duckdb.InternalException):
                self._blamed.note(_position_of(messages[0]), _position_of(messages[-1]), str(error.__cause__))
            raise
        self._blamed.clear(mark.sequence)

    async def _transact(self, mark: Mark, messages: Sequence[Msg]) -> None:
        def change(connection: Connection, store: Store) -> None:
            if messages:
                with _telling_apart(alone=len(messages) == 1):
                    store(connection, messages)
            writes.write_mark(connection, mark)

        try:
            await self._database.write(partial(change, store=self._first), of_jobs=self._of_jobs)
        except _UnfitError as error:
            if self._first is self._store or not isinstance(error.reason, duckdb.ConstraintException):
                raise
            await self._database.write(partial(change, store=self._store), of_jobs=self._of_jobs)

    async def _set_aside(self, msg: Msg, error: Exception) -> None:
        """Waits for NATS: a message that is neither stored nor set aside would be lost."""
        while True:
            try:
                await self._aside.take(bus.Found.of(msg), error)
                return
            except NATS_TROUBLE as trouble:
                log.warning("%s: a message cannot be set aside yet: %s", self._stream.name, trouble)
                await asyncio.sleep(_ROOM_CHECK_S)


def _count(messages: Sequence[Msg]) -> None:
    """Counts what was stored, for metrics."""
    if not metrics.ITEMS_STORED.on:
        return
    for msg in messages:
        with suppress(ValueError):
            headers = bus.ResultHeaders.decode(msg.headers)
            if headers.kind == bus.KIND_ITEMS:
                metrics.ITEMS_STORED.add(metrics.STORED_ERRORS, by=headers.errors)
                metrics.ITEMS_STORED.add(metrics.STORED_ANSWERS, by=headers.items - headers.errors)
                metrics.OUTPUT_TOKENS_STORED.add(by=headers.output_tokens)


def _position_of(msg: Msg) -> int:
    return int(msg.metadata.sequence.stream)


async def keep_room(connection: bus.Bus, feed: Feed, room: bus.Room, holding: asyncio.Lock) -> None:
    """Once RESULTS is half full or the disk is low, purges what is on disk here and no longer needed by the scheduler.
    Not while `holding` is held, and not on a full disk: a purge that NATS cannot write leaves it holding the stream's
    lock, and all that ask about the stream wait until NATS is killed."""
    checked, over_at = -1, 0.0
    while True:
        await asyncio.sleep(_ROOM_CHECK_S)
        now = asyncio.get_running_loop().time()
        if feed.position == checked and room.level is bus.Level.ENOUGH and now < over_at:
            continue
        checked, over_at = feed.position, now + _REST_CHECK_S
        try:
            async with holding:
                await _purge(connection, feed.position, room)
        except NATS_TROUBLE as error:
            log.warning("cannot check the free space of %s: %s", bus.RESULTS, error or type(error).__name__)


async def _purge(connection: bus.Bus, stored: int, room: bus.Room) -> None:
    if room.level is bus.Level.FULL:
        return
    info = await connection.js.stream_info(bus.RESULTS)
    most = info.config.max_bytes or 0
    # On a small disk the stream may never be half full.
    if room.level is bus.Level.ENOUGH and (most <= 0 or info.state.bytes <= most / 2):
        return
    last = min(stored, await floor(connection))
    if last >= info.state.first_seq:
        await connection.js.purge_stream(bus.RESULTS, seq=last + 1)
        log.info("purged %s up to %d of %d", bus.RESULTS, last, info.state.last_seq)


async def floor(connection: bus.Bus) -> int:
    """The last position of RESULTS that the scheduler no longer needs; 0 for an invalid position, so that nothing is
    purged that it may need. Raises NATS's errors."""
    entry = await connection.kv_get(bus.JOBS, bus.FLOOR_KEY)
    try:
        return int(entry.data or b"0") if entry is not None else 0
    except ValueError:
        log.error("%s in %s is not a position; nothing is purged", bus.FLOOR_KEY, bus.JOBS)
        return 0
