"""An upload's body as it comes: counted, in pieces of a suitable size, each awaited for a limited time, and passed on.

It goes to the service that stores datasets, at that service's pace. A form is read as it arrives, too: text fields and
one file, never whole in memory.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from services import rpc
from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.access.auth import CSRF_HEADER, require_csrf
from services.gateway.backend import Backend
from services.gateway.uploads.parts import Part, Parts, disposition
from services.words.refusals import counted
from touchstone.v1 import dataset_pb2, dataset_service_pb2

FILE = "file"
"""The part that is the file."""
MOST_FIELD_BYTES = 128 * 1024
MOST_FIELDS = 32
MOST_CHARACTERS = 200
_MOST_ENDING = 20


@dataclass(slots=True)
class Form:
    """Read `fields` first, then `file`. `known` are the names of text fields that may come, `late` those of them that
    may also come after the file; `given` then has them, too.

    Both raise InvalidRequestError when the form is malformed or cut, has a field that is unknown, repeated, too large
    or not `late` after the file, or has not exactly one file. They also raise the errors of `chunks`.
    """

    chunks: AsyncIterator[bytes]
    boundary: bytes
    known: Collection[str]
    silent: Collection[str] = ()
    """Further fields that are allowed but not documented."""
    late: Collection[str] = ()
    given: dict[str, str] = field(default_factory=dict)
    file_name: str | None = None
    """The sender's name of the file; known after `fields`, None without a name."""
    _parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self._parts = Parts(self.chunks, self.boundary)

    async def fields(self) -> dict[str, str]:
        """The text fields before the file, by name."""
        while isinstance(event := await self._parts.next(), Part):
            name, file_name = disposition(event)
            if name == FILE:
                self.file_name = file_name
                return self.given
            await self._take(name, file_name)
        raise InvalidRequestError(f"The form has no file. Send it as the part called {FILE!r}.")

    async def file(self) -> AsyncIterator[bytes]:
        """The file's bytes as they come. It ends only if the form also ends after it."""
        while isinstance(event := await self._parts.next(), bytes):
            yield event
        while isinstance(event := await self._parts.next(), Part):
            name, file_name = disposition(event)
            if name == FILE:
                raise InvalidRequestError("The form has two files. Send each in its own upload.")
            if name not in self.late:
                raise InvalidRequestError(f"{name[:80]!r} comes after the file. Send it before the file.")
            await self._take(name, file_name)
        async for _ in self.chunks:  # ignore anything after the last boundary
            pass

    async def _take(self, name: str, file_name: str | None) -> None:
        if file_name is not None:
            raise InvalidRequestError(f"The file is in a part called {name[:80]!r}. Call it {FILE!r}.")
        if name not in self.known and name not in self.silent:
            names = ", ".join((*self.known, FILE))
            raise InvalidRequestError(f"{name[:80]!r} is not a field of this form. Its fields: {names}.", name[:80])
        if name in self.given:
            raise InvalidRequestError(f"{name} is given more than once. Give it once.", name)
        if len(self.given) >= MOST_FIELDS:
            raise InvalidRequestError(f"The form has more than {MOST_FIELDS} fields.")
        self.given[name] = await self._text(name)

    async def _text(self, name: str) -> str:
        text = bytearray()
        while isinstance(event := await self._parts.next(), bytes):
            text += event
            if len(text) > MOST_FIELD_BYTES:
                raise InvalidRequestError(f"{name} has more than {MOST_FIELD_BYTES:,} bytes.", name)
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequestError(f"{name} is not UTF-8.", name) from error


def clean_name(name: str, otherwise: str) -> str:
    """The name without folders and without characters that cannot be seen, keeping its ending when it is cut;
    `otherwise` if nothing is left."""
    last = re.split(r"[\\/]", name)[-1]
    seen = "".join(char for char in last if char.isprintable()).strip()
    if not seen.strip("."):
        return otherwise
    if len(seen) <= MOST_CHARACTERS:
        return seen
    _, point, ending = seen.rpartition(".")
    kept = f".{ending}" if point and len(ending) <= _MOST_ENDING else ""
    return seen[: MOST_CHARACTERS - len(kept)] + kept


def require_own(request: Request, token: str) -> None:
    """A browser's session shows its CSRF token in a header, or in a form's field. Raises PermissionDeniedError."""
    caller = context.caller(request)
    if caller.session:
        require_csrf(caller, request.headers.get(CSRF_HEADER) or token)


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
