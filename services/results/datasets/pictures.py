"""Pictures of a dataset's rows, for code that runs in a thread of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from services.bus import Datasets
from services.errors import NotFoundError
from touchstone.v1.content_pb2 import Image
from touchstone.v1.dataset_pb2 import DatasetManifest, DatasetRow

T = TypeVar("T")

_ASK_S = 60.0


class Pictures(Protocol):
    def exist(self, dataset_id: str) -> bool:
        """Whether the dataset, and so its rows' pictures, still exist."""
        ...

    def of(self, dataset_id: str, row: int) -> Mapping[str, Image]:
        """The row's pictures by their digests. Raises NotFoundError if the dataset was deleted meanwhile."""
        ...


class StoredPictures:
    """Pictures from the store. Keeps one shard, as rows are read in order. `loop` is the one that the store uses, and
    must not be that of the caller's thread."""

    def __init__(self, store: Datasets, loop: asyncio.AbstractEventLoop) -> None:
        self._store, self._loop = store, loop
        self._manifests: dict[str, DatasetManifest | None] = {}
        self._digest = ""
        self._rows: Sequence[DatasetRow] = ()

    def exist(self, dataset_id: str) -> bool:
        if dataset_id not in self._manifests:
            self._manifests[dataset_id] = self._ask(self._store.get_manifest(dataset_id))
        return self._manifests[dataset_id] is not None

    def of(self, dataset_id: str, row: int) -> Mapping[str, Image]:
        manifest = self._manifests[dataset_id] if self.exist(dataset_id) else None
        first = 0
        for shard in manifest.shards if manifest is not None else ():
            if first <= row < first + shard.rows:
                if shard.digest != self._digest:
                    self._rows = self._ask(self._store.get_shard(shard.digest)).rows
                    self._digest = shard.digest
                messages = self._rows[row - first].messages
                parts = (part for message in messages for part in message.parts if part.HasField("image"))
                return {part.image.digest: part.image for part in parts}
            first += shard.rows
        raise NotFoundError("The dataset was deleted, so its pictures are gone. Upload it again.")

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result(_ASK_S)
