"""An upload from its first byte to the dataset: shards, then the manifest, which makes it exist, then the index."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from services.bus import Datasets
from services.errors import DeadlineError
from services.results.datasets import child, index
from services.results.datasets.deleting import Expiry
from services.results.datasets.frames import Limits, Shard
from services.results.datasets.garbage_collection import Collector, HeldShards, ShardHolds
from services.results.datasets.index import Request, fingerprint
from services.results.datasets.upload_slots import UploadSlots
from services.results.storage.database import Database
from touchstone.v1 import dataset_pb2, dataset_service_pb2, suite_pb2

T = TypeVar("T")
STORE_BYTES = 20 * 10**9


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
        # A failing upload may be removed before the answer is here.
        given_up = self._collector.given_up()
        made = await self._database.read(partial(index.made_by, request=request, now=_now()))
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
    if source is not None:
        dataset.source.CopyFrom(source)
    now = Timestamp()
    now.GetCurrentTime()
    dataset.uploaded_at.CopyFrom(now)
    if expires_after_s:
        dataset.expires_at.FromSeconds(now.seconds + expires_after_s)
