"""Rows of a stored dataset: pages for lists, with texts cut to 2 KB unless whole texts are requested, and pictures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from services.bus import Datasets
from services.errors import NotFoundError
from services.results import paging
from services.results.items.reads import EXCERPT_BYTES
from services.words import refusals
from touchstone.v1 import dataset_pb2
from touchstone.v1 import dataset_service_pb2 as pb
from touchstone.v1.content_pb2 import Image
from touchstone.v1.dataset_pb2 import DatasetManifest, DatasetRow

_VALUE_LENGTH = 200
T = TypeVar("T")

_ASK_S = 60.0


async def list_rows(store: Datasets, request: pb.ListDatasetRowsRequest) -> pb.ListDatasetRowsResponse:
    """Raises InvalidRequestError for a bad page and NotFoundError for a dataset that is gone."""
    size = paging.page_size(request.page_size, default=20, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int,))
    first = max(0, int(after[0]) if after else request.first)
    manifest = await store.get_manifest(request.dataset_id)
    if manifest is None:
        raise NotFoundError(refusals.not_found("Dataset", request.dataset_id))
    response = pb.ListDatasetRowsResponse(first=first)
    used = 0
    async for row in _from(store, manifest, first):
        shown = row if request.whole else cut(row)
        used += shown.ByteSize()
        if len(response.rows) == size or (response.rows and used > paging.MAX_PAGE_BYTES):
            response.next_page_token = paging.encode_token(filter_, [first + len(response.rows)])
            break
        response.rows.append(shown)
    return response


async def _from(
    store: Datasets, manifest: dataset_pb2.DatasetManifest, first: int
) -> AsyncIterator[dataset_pb2.DatasetRow]:
    place = 0
    for shard in manifest.shards:
        if place + shard.rows > first:
            rows = (await store.get_shard(shard.digest)).rows
            for row in rows[max(0, first - place) :]:
                yield row
        place += shard.rows


def cut(row: dataset_pb2.DatasetRow) -> dataset_pb2.DatasetRow:
    """The row with its texts cut and without the bytes of images; reference and metadata stay JSON."""
    for message in row.messages:
        message.content = _beginning(message.content)
        for part in message.parts:
            if part.WhichOneof("part") == "text":
                part.text = _beginning(part.text)
            else:
                part.image.ClearField("data")
        for call in message.tool_calls:
            call.arguments = _beginning(call.arguments)
    if len(row.reference.encode()) > EXCERPT_BYTES:
        value = json.loads(row.reference)
        text = value if isinstance(value, str) else row.reference
        row.reference = json.dumps(_beginning(text), ensure_ascii=False)
    if len(row.metadata.encode()) > EXCERPT_BYTES:
        row.metadata = _shorter(row.metadata)
    return row


def _beginning(text: str) -> str:
    data = text.encode()
    return text if len(data) <= EXCERPT_BYTES else data[: EXCERPT_BYTES - 3].decode(errors="ignore") + "…"


def _shorter(metadata: str) -> str:
    """The first fields, as many as fit, each value cut."""
    kept: dict[str, object] = {}
    used = 2
    for name, value in json.loads(metadata).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        short: object = text[:_VALUE_LENGTH] + "…" if len(text) > _VALUE_LENGTH else value
        used += len(json.dumps({name: short}, ensure_ascii=False).encode())
        if used > EXCERPT_BYTES:
            break
        kept[name] = short
    return json.dumps(kept, ensure_ascii=False)


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
