"""Removes from the store what no dataset needs: at the start, after deletions and after failed uploads.

The manifests decide: a dataset exists if its manifest does. So a crash at any step leaves either nothing visible, or
the whole dataset. Shards of uploads that are under way have no dataset yet: those uploads hold them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from services.bus import DamagedError, Datasets, heed_cancel
from services.errors import ConflictError, TouchstoneError
from services.results.datasets import index
from services.results.datasets.index import Request
from services.results.storage.database import Connection, Database
from touchstone.v1 import dataset_pb2

log = logging.getLogger(__name__)

_RETRY_S = 2.0
_SOON = index.REQUESTS_KEPT - timedelta(hours=1)
"""Uploads of one request that are closer together are one dataset. An hour less than answers are kept: after that, a
request makes a new dataset."""
_AT_ONCE = 64
"""Shards that are removed before other writes get their turn."""


class ShardHolds:
    """Which shards are held, by how many uploads."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    @contextmanager
    def upload(self) -> Iterator[HeldShards]:
        """What one upload holds, until it ends."""
        held = HeldShards(self._count)
        try:
            yield held
        finally:
            held.release()

    def not_held(self, digests: Collection[str]) -> list[str]:
        return [digest for digest in digests if digest not in self._count]


class HeldShards:
    """One upload's shards. Each is held from before the search in the store until the dataset is listed."""

    def __init__(self, count: Counter[str]) -> None:
        self._count = count
        self._digests: list[str] = []

    def hold(self, digest: str) -> None:
        self._digests.append(digest)
        self._count[digest] += 1

    def release(self) -> None:
        for digest in self._digests:
            self._count[digest] -= 1
            if not self._count[digest]:
                del self._count[digest]
        self._digests.clear()


class Collector:
    """Removes shards that no dataset and no upload has."""

    def __init__(self, store: Datasets, database: Database, holding: ShardHolds) -> None:
        self._store = store
        self._database = database
        self._holding = holding
        self._given_up: set[str] = set()
        self._needed = asyncio.Event()
        self._done = asyncio.Event()

    async def reconcile(self) -> list[str]:
        """At the start: lists datasets whose manifest is there, and marks those deleted whose manifest is not. Returns
        the ids of those that were being deleted. Raises UnavailableError without NATS."""
        stored = await self._store.list()
        listed = await self._database.read(index.listed)
        now = _now()
        deleting, unlisted = [], []
        for dataset_id in sorted(stored):
            try:
                manifest = await self._store.get_manifest(dataset_id)
            except DamagedError as error:
                log.error("dataset %s: %s", dataset_id, error)
                continue
            if manifest is None:
                continue
            if dataset_id not in listed:
                unlisted.append(manifest)
            if manifest.deleting:
                deleting.append(dataset_id)
        # The newest first, as a request may have been tried several times.
        for manifest in sorted(unlisted, key=_uploaded_at, reverse=True):
            dataset_id = manifest.dataset.dataset_id
            if await self._is_made_again(manifest, now):
                log.info("the upload of dataset %s failed and was repeated: removing it", dataset_id)
                self._given_up.add(dataset_id)
                continue
            log.info("found dataset %s, which was not listed", dataset_id)
            await self._database.write(partial(index.add, manifest=manifest, now=now))
        for dataset_id in sorted(listed - stored):
            log.info("dataset %s is gone", dataset_id)
            await self._database.write(partial(index.mark_deleted, dataset_id=dataset_id, now=now))
        self._needed.set()
        return deleting

    async def _is_made_again(self, manifest: dataset_pb2.DatasetManifest, now: datetime) -> bool:
        """Whether the request that stored it made another dataset afterwards, which happens only after a failure."""
        request = Request(manifest.dataset.owner, manifest.request_id, manifest.asked)
        try:
            made = await self._database.read(partial(index.made_by, request=request, now=now))
        except ConflictError:
            # Then the id was used for something else, perhaps a day later.
            return False
        return made is not None and abs(made.uploaded_at.ToDatetime() - _uploaded_at(manifest)) < _SOON

    def give_up(self, dataset_id: str) -> None:
        """Reports a failed upload: what it has stored is removed, including a stored manifest."""
        self._given_up.add(dataset_id)
        self.collect()

    def given_up(self) -> frozenset[str]:
        """Datasets that may be listed but will be removed, as their uploads failed."""
        return frozenset(self._given_up)

    def collect(self) -> None:
        """Makes `run` look for unused shards."""
        self._done.clear()
        self._needed.set()

    async def collected(self) -> None:
        """Returns when all requested work is done."""
        await self._done.wait()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._needed.wait()
            self._needed.clear()
            try:
                await self._round()
            except TouchstoneError as error:
                log.warning("datasets are cleaned up later: %s", error)
                self._needed.set()
                heed_cancel()
                await asyncio.sleep(_RETRY_S)
            heed_cancel()
            if not self._needed.is_set():
                self._done.set()

    async def _round(self) -> None:
        for dataset_id in list(self._given_up):
            # The client got an error, so a manifest that was stored after all is removed again.
            await self._store.delete(dataset_id)
            await self._database.write(partial(index.mark_deleted, dataset_id=dataset_id, now=_now()))
            self._given_up.discard(dataset_id)
        free = sorted(await self._free(await self._store.shards()))
        removed = 0
        for start in range(0, len(free), _AT_ONCE):
            removed += await self._store.delete_shards(free[start : start + _AT_ONCE], self._free)
        strays = await self._store.drop_strays()
        if removed or strays:
            log.info("removed %d shards without a dataset and %d incomplete ones", removed, strays)

    async def _free(self, digests: Collection[str]) -> Collection[str]:
        """Unused shards. In this order: an upload lists its dataset before it releases its shards."""
        digests = self._holding.not_held(digests)
        return await self._database.read(partial(_without_dataset, digests=digests))


def _without_dataset(connection: Connection, digests: Collection[str]) -> set[str]:
    return index.without_dataset(connection, digests)


def _uploaded_at(manifest: dataset_pb2.DatasetManifest) -> datetime:
    return manifest.dataset.uploaded_at.ToDatetime()


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
