"""An upload's body as it comes: counted, in pieces of a suitable size, each awaited for a limited time, and passed on.

It goes to the service that stores datasets, at that service's pace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from services import rpc
from services.errors import InvalidRequestError
from services.gateway.backend import Backend
from services.words.sentences import counted
from touchstone.v1 import dataset_pb2, dataset_service_pb2

PIECE_BYTES = 256 * 1024
HOLD_S = 5.0

MOST_S = 3600.0


async def chunks(request: Request, most: int, idle_s: float) -> AsyncIterator[bytes]:
    """The body's bytes as the sender's system cuts them.

    Raises HTTPException 413 above `most` bytes, by their stated length or as they arrive, and 408 after `idle_s`
    seconds without any; InvalidRequestError when the sender goes away.
    """
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > most:
        raise _too_large(most)
    size = 0
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(idle_s):
                chunk = await anext(stream, None)
        except TimeoutError as error:
            raise HTTPException(408, f"No data arrived for {idle_s:g} seconds. Send the upload again.") from error
        except ClientDisconnect as error:
            raise InvalidRequestError("The upload was interrupted, and nothing was stored. Send it again.") from error
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if chunk:
            yield chunk


async def gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces of about PIECE_BYTES, so that a large file is not thousands of messages; a slow sender's
    in smaller ones, so that the sender does not seem gone."""
    held: list[bytes] = []
    size, began = 0, time.monotonic()
    async for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES or time.monotonic() - began > HOLD_S:
            yield b"".join(held)
            held, size, began = [], 0, time.monotonic()
    if held:
        yield b"".join(held)


def _too_large(most: int) -> HTTPException:
    return HTTPException(
        413,
        f"The upload has more than {counted(most, 'byte')}. Compress it with gzip, split it, or ask the operator "
        "to raise TOUCHSTONE_UPLOAD_MAX_BYTES.",
    )


async def store(
    backend: Backend,
    caller: rpc.Identity,
    options: dataset_pb2.DatasetOptions,
    pieces: AsyncIterator[bytes],
    request_id: str = "",
    expires_after_s: Callable[[], int] = lambda: 0,
) -> dataset_pb2.Dataset:
    """The dataset, once it is completely stored. An error of `pieces` ends the call, and nothing is stored.
    `expires_after_s` is called after the last piece; 0 means that the dataset stays.

    Raises BadLinesError for wrong lines, ConflictError for a request id that has made another dataset, and the
    service's other errors.
    """

    async def requests() -> AsyncIterator[dataset_service_pb2.UploadDatasetRequest]:
        yield dataset_service_pb2.UploadDatasetRequest(options=options, request_id=request_id)
        async for piece in gathered(pieces):
            yield dataset_service_pb2.UploadDatasetRequest(data=piece)
        if seconds := expires_after_s():
            yield dataset_service_pb2.UploadDatasetRequest(expires_after_s=seconds)

    return (await backend.send(backend.datasets.UploadDataset, requests(), caller, MOST_S)).dataset


async def preview(
    backend: Backend, caller: rpc.Identity, options: dataset_pb2.DatasetOptions, pieces: AsyncIterator[bytes]
) -> dataset_service_pb2.PreviewDatasetResponse:
    """What storing the file would make of it. Raises the service's errors."""

    async def requests() -> AsyncIterator[dataset_service_pb2.PreviewDatasetRequest]:
        yield dataset_service_pb2.PreviewDatasetRequest(options=options)
        async for piece in gathered(pieces):
            yield dataset_service_pb2.PreviewDatasetRequest(data=piece)

    return await backend.send(backend.datasets.PreviewDataset, requests(), caller, MOST_S)
