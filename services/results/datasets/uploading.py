"""An upload from its first byte to the dataset: shards, then the manifest, which makes it exist, then the index."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from services.bus import Datasets
from services.errors import DeadlineError, LimitReachedError
from services.results.datasets import child, index
from services.results.datasets.deleting import Expiry
from services.results.datasets.frames import Limits, Shard
from services.results.datasets.garbage_collection import Collector, HeldShards, ShardHolds
from services.results.datasets.index import Request, fingerprint
from services.results.storage.database import Connection, Database
from services.telemetry import metrics
from services.words import refusals
from touchstone.v1 import dataset_pb2, dataset_service_pb2, suite_pb2

_PATIENCE_S = 5.0
"""How long an owner's second upload may continue while another owner waits."""
_AGAIN_S = 10
T = TypeVar("T")
STORE_BYTES = 20 * 10**9


@dataclass(eq=False, slots=True)
class _Waiting:
    owner: str
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(eq=False, slots=True)
class _Held:
    owner: str
    ends: asyncio.Timeout
    asked_back: bool = False


class UploadSlots:
    """At most `at_once` uploads. An owner may have several only while no other owner waits. Then the newest ends, so
    that nobody keeps all places with uploads that trickle for an hour."""

    def __init__(self, at_once: int, wait_s: float, patience_s: float = _PATIENCE_S) -> None:
        self._at_once, self._wait_s, self._patience_s = at_once, wait_s, patience_s
        self._held: list[_Held] = []
        self._given = 0
        """Places held or promised."""
        self._waiting: list[_Waiting] = []

    @asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        """Raises LimitReachedError when no place is free for too long, and when this one is needed for another
        owner."""
        await self._turn(owner)
        try:
            async with asyncio.timeout(None) as ends:
                held = _Held(owner, ends)
                self._held.append(held)
                try:
                    yield
                finally:
                    self._held.remove(held)
        except TimeoutError as error:
            if not ends.expired():
                raise
            raise LimitReachedError(
                "Another user is waiting to upload, and you already have an upload in progress. Try again when it "
                "has ended.",
                _AGAIN_S,
            ) from error
        finally:
            self._pass_on()

    async def _turn(self, owner: str) -> None:
        if self._given < self._at_once:
            self._given += 1
            return
        mine = _Waiting(owner)
        self._waiting.append(mine)
        asking = asyncio.get_running_loop().call_later(self._patience_s, self._ask_back, owner)
        try:
            async with asyncio.timeout(self._wait_s):
                await mine.turn
        except BaseException as error:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._pass_on()
            if isinstance(error, TimeoutError):
                metrics.REFUSALS.add("uploads_at_once")
                raise LimitReachedError(refusals.busy(self._at_once, "uploads"), _AGAIN_S) from error
            raise
        finally:
            asking.cancel()

    def _pass_on(self) -> None:
        """Gives a place to the owner who has waited longest, preferring those without one."""
        having = {held.owner for held in self._held}
        left = [waiting for waiting in self._waiting if not waiting.turn.done()]
        first = min(left, key=lambda waiting: waiting.owner in having, default=None)
        if first is None:
            self._given -= 1
            return
        self._waiting.remove(first)
        first.turn.set_result(None)

    def _ask_back(self, owner: str) -> None:
        """Ends the newest upload of an owner with several, for an owner without one."""
        having = Counter(held.owner for held in self._held if not held.asked_back)
        if having[owner]:
            return
        for held in reversed(self._held):
            if having[held.owner] > 1 and not held.asked_back:
                held.asked_back = True
                held.ends.reschedule(asyncio.get_running_loop().time())
                return


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """`file` bounds each file; `at_once` uploads are read at a time, each in its own process; further ones wait for
    `wait_s`. An upload fails if its client sends nothing for `idle_s`, or if it takes longer than `whole_s`."""

    file: Limits = field(default_factory=Limits)
    at_once: int = 2
    wait_s: float = 30
    idle_s: float = 60
    whole_s: float = 3600


log = logging.getLogger(__name__)

NO_REQUEST = Request()


class Uploads:
    """Stores files as datasets, a few at a time."""

    def __init__(
        self,
        store: Datasets,
        database: Database,
        holding: ShardHolds,
        collector: Collector,
        expiry: Expiry,
        limits: UploadLimits,
    ) -> None:
        self._expiry = expiry
        self._store = store
        self._database = database
        self._holding = holding
        self._collector = collector
        self._limits = limits
        self._places = UploadSlots(limits.at_once, limits.wait_s)
        self._listing = asyncio.Lock()

    def place(self, owner: str) -> AbstractAsyncContextManager[None]:
        """One of the places for uploads. Raises LimitReachedError as `Places.of`."""
        return self._places.of(owner)

    async def keep(
        self,
        asked: dataset_pb2.DatasetOptions,
        pieces: AsyncIterator[bytes],
        source: suite_pb2.DataSource | None = None,
        request: Request = NO_REQUEST,
        expires_after_s: Callable[[], int] = lambda: 0,
    ) -> dataset_pb2.Dataset:
        """Reads and stores a file, whole or not at all; `asked` has a checked name and an owner. Call it in a `place`.
        `expires_after_s` is called once the file has ended; 0 means that the dataset stays.

        If `request` has already made a dataset, returns that. If the request has no hash, the options and the rows are
        its content: the file is read for them.

        Raises ConflictError for a request that has made another dataset, the errors of `child.read`, DeadlineError when
        the whole takes too long, LimitReachedError when the store is full, UnavailableError without NATS.
        """
        began = time.monotonic()
        dataset_id = f"ds_{uuid.uuid4().hex}"
        kept = False
        try:
            with self._holding.upload() as held:
                manifest = await self._in_time(self._stored(asked, pieces, held))
                expires = expires_after_s()
                _complete(manifest.dataset, dataset_id, asked, source, expires)
                if not request.asked:
                    until = (str(expires),) if expires else ()
                    request = replace(request, asked=fingerprint(asked, manifest.dataset.digest, *until))
                # The same request may have been repeated while its first file was read.
                async with self._listing:
                    if (made := await self.made_by(request)) is not None:
                        return made
                    manifest.request_id, manifest.asked = request.request_id, request.asked
                    await self._store.put_manifest(manifest)
                    await self._database.write(partial(index.add, manifest=manifest, now=_now()))
                    self._expiry.note(manifest.dataset)
                    kept = True
        finally:
            if not kept:
                self._collector.give_up(dataset_id)
        dataset = manifest.dataset
        log.info(
            "kept %s of %s: %d rows, %d bytes in %.1f s",
            dataset_id,
            dataset.owner,
            dataset.rows,
            dataset.bytes,
            time.monotonic() - began,
        )
        return dataset

    async def preview(
        self, asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes]
    ) -> dataset_service_pb2.PreviewDatasetResponse:
        """What `keep` would make of a file, of which nothing is kept. Call it in a `place`. Raises as `keep` does for
        an invalid file."""
        return await self._in_time(child.preview(asked, pieces, self._limits.file, self._limits.idle_s))

    async def made_by(self, request: Request) -> dataset_pb2.Dataset | None:
        """The dataset that a request has made before. Raises ConflictError where its id has made another one."""
        return await self._kept(partial(index.made_by, request=request, now=_now()))

    async def of_experiment(self, name: str) -> dataset_pb2.Dataset | None:
        """The rows of the experiment of this name; None without one."""
        return await self._kept(partial(index.of_experiment, name=name))

    async def _kept(self, find: Callable[[Connection], dataset_pb2.Dataset | None]) -> dataset_pb2.Dataset | None:
        # A failing upload may be removed before the answer is here.
        given_up = self._collector.given_up()
        made = await self._database.read(find)
        return None if made is None or made.dataset_id in given_up | self._collector.given_up() else made

    async def _in_time(self, stored: Awaitable[T]) -> T:
        """A client that sends a byte now and then would keep its place indefinitely."""
        try:
            async with asyncio.timeout(self._limits.whole_s) as limit:
                return await stored
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise DeadlineError(
                f"The upload took longer than {self._limits.whole_s:,.0f} s. Compress the file with gzip, or send "
                "it in parts."
            ) from error

    async def _stored(
        self, asked: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes], held: HeldShards
    ) -> dataset_pb2.DatasetManifest:
        """Stores the shards."""
        manifest = dataset_pb2.DatasetManifest()
        async with aclosing(child.read(asked, pieces, self._limits.file, self._limits.idle_s)) as reading:
            async for part in reading:
                if isinstance(part, Shard):
                    digest = part.digest.hex()
                    held.hold(digest)
                    await self._store.put_shard(digest, part.data)
                    manifest.shards.add(digest=digest, rows=part.rows, bytes=len(part.data))
                else:
                    manifest.dataset.CopyFrom(part)
        return manifest


def _now() -> datetime:
    """UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def _complete(
    dataset: dataset_pb2.Dataset,
    dataset_id: str,
    asked: dataset_pb2.DatasetOptions,
    source: suite_pb2.DataSource | None,
    expires_after_s: int,
) -> None:
    """Fills in what does not follow from the rows."""
    dataset.dataset_id = dataset_id
    dataset.name, dataset.owner, dataset.project_id = asked.name, asked.owner, asked.project_id
    dataset.template, dataset.is_file = asked.template, asked.is_file
    dataset.scoring.CopyFrom(asked.scoring)
    if asked.HasField("judging"):
        dataset.judging.CopyFrom(asked.judging)
    if asked.HasField("experiment"):
        dataset.experiment.CopyFrom(asked.experiment)
    if source is not None:
        dataset.source.CopyFrom(source)
    now = Timestamp()
    now.GetCurrentTime()
    dataset.uploaded_at.CopyFrom(now)
    if expires_after_s:
        dataset.expires_at.FromSeconds(now.seconds + expires_after_s)
