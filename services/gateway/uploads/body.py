"""An upload's body as it comes: counted, never awaited for ever, in pieces of a good size."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from services.errors import InvalidRequestError

PIECE_BYTES = 256 * 1024
HOLD_S = 5.0


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
            raise HTTPException(408, f"Nothing came for {idle_s:g} seconds. Send the upload again.") from error
        except ClientDisconnect as error:
            raise InvalidRequestError("The upload was cut off. Nothing of it is kept; send it again.") from error
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        if chunk:
            yield chunk


async def gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces of about PIECE_BYTES, so that a large file is not thousands of messages; a slow sender's
    in smaller ones, so that it is not taken for gone."""
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
        f"The upload is larger than {most:,} bytes, the most accepted here. Compress it with gzip, split it, or "
        "have the operator raise TOUCHSTONE_UPLOAD_MAX_BYTES.",
    )
