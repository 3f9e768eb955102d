"""Where uploaded datasets are, and which of their shards this process keeps."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from services.bus import DamagedError, heed_cancel
from services.errors import DeadlineError, NotFoundError, UnavailableError
from services.evaluator.data.reader import DataError
from touchstone.v1.dataset_pb2 import DatasetManifest, Shard, ShardRows

log = logging.getLogger(__name__)

T = TypeVar("T")

SHELF_BYTES = 64 * 1024 * 1024
"""The size of kept shards as they are stored; parsed, they take about twice as much."""
_PAUSE_S = 0.5
_MOST_LOOKS = 4


class DatasetStore(Protocol):
    """Implemented by `services.bus.Datasets`. Raises UnavailableError while it cannot be read, DamagedError for a
    dataset that is incomplete."""

    async def get_manifest(self, dataset_id: str) -> DatasetManifest | None:
        """None for a dataset that does not exist. One that is being deleted says so."""
        ...

    async def get_shard(self, digest: str) -> ShardRows:
        """Raises NotFoundError when it is gone."""
        ...


class DatasetGoneError(DataError):
    """The dataset was deleted; the message says so and what to do."""


class Shelf:
    """Reads datasets from the store, and waits while it does not answer. The last used shards are kept, up to a number
    of bytes; a shard that several units need at a time is read once."""

    def __init__(self, store: DatasetStore | None, most_bytes: int = SHELF_BYTES, pause_s: float = _PAUSE_S) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._pause_s = pause_s
        self._kept: OrderedDict[str, tuple[ShardRows, int]] = OrderedDict()
        self._bytes = 0
        self._coming: dict[str, asyncio.Task[ShardRows]] = {}

    async def manifest(self, dataset_id: str, name: str) -> DatasetManifest:
        """`name` is for the sentence. Raises DatasetGoneError for a dataset that is deleted.

        Deleting first marks a dataset, and withdraws the mark when a job uses it. It may be interrupted in between for
        as long as NATS or the results service is away. So this waits for a marked dataset: this job may be the one that
        uses it.
        """
        while (found := await self._patiently(lambda store: store.get_manifest(dataset_id))) is not None:
            if not found.deleting:
                return found
            await asyncio.sleep(self._pause_s)
        raise DatasetGoneError(
            f"Dataset {name or dataset_id} was deleted, so its rows cannot be run. Upload the file again and start a "
            "new job."
        )

    async def rows(self, shard: Shard) -> ShardRows:
        """Raises DatasetGoneError when it is gone."""
        digest = shard.digest
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest][0]
        task = self._coming.get(digest)
        if task is None:
            task = self._coming[digest] = asyncio.create_task(self._read(shard))
            task.add_done_callback(lambda _: self._coming.pop(digest, None))
        # Shielded: a unit that is dropped must not take the shard from the others that wait for it.
        return await asyncio.shield(task)

    async def _read(self, shard: Shard) -> ShardRows:
        try:
            rows = await self._patiently(lambda store: store.get_shard(shard.digest))
        except NotFoundError as error:
            raise DatasetGoneError(
                "The dataset was deleted, so its rows cannot be run. Upload the file again and start a new job."
            ) from error
        self._kept[shard.digest] = (rows, shard.bytes)
        self._bytes += shard.bytes
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed
        return rows

    async def _patiently(self, ask: Callable[[DatasetStore], Awaitable[T]]) -> T:
        if self._store is None:
            raise DataError("This evaluator has no dataset store, so it runs only suites.")
        looks = 0
        while True:
            heed_cancel()
            try:
                return await ask(self._store)
            except (UnavailableError, DeadlineError) as error:
                # A replica may lack pieces for a moment; lost pieces do not come back.
                looks += isinstance(error, DamagedError)
                if looks >= _MOST_LOOKS:
                    raise DataError(error.message) from error
                log.warning("waiting for a dataset: %s", error.message)
                await asyncio.sleep(self._pause_s)
