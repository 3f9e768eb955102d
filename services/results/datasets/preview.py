"""Rows of a dataset as lists show them: a page of them, texts cut to 2 KB unless whole texts are requested."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from services.bus import Datasets
from services.errors import NotFoundError
from services.results import paging
from services.results.items.excerpts import EXCERPT_BYTES
from services.words import sentences
from touchstone.v1 import dataset_pb2
from touchstone.v1 import dataset_service_pb2 as pb

_VALUE_LENGTH = 200


async def list_rows(store: Datasets, request: pb.ListDatasetRowsRequest) -> pb.ListDatasetRowsResponse:
    """Raises InvalidRequestError for a bad page and NotFoundError for a dataset that is gone."""
    size = paging.page_size(request.page_size, default=20, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int,))
    first = max(0, int(after[0]) if after else request.first)
    manifest = await store.get_manifest(request.dataset_id)
    if manifest is None:
        raise NotFoundError(sentences.not_found("Dataset", request.dataset_id))
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
