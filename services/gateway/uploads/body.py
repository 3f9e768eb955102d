"""An upload's body as it comes: counted, in pieces of a suitable size, each awaited for a limited time, and passed on.

It goes to the service that stores datasets, at that service's pace. A multipart/form-data body (RFC 7578) is read as it
arrives, too: text fields and one file, never whole in memory.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from services import rpc
from services.errors import InvalidRequestError
from services.gateway.backend import Backend
from services.words.refusals import counted
from touchstone.v1 import dataset_pb2, dataset_service_pb2

FILE = "file"
"""The part that is the file."""
MOST_FIELD_BYTES = 128 * 1024
MOST_FIELDS = 32
MOST_HEADER_BYTES = 16 * 1024
"""Most bytes of a part's header, such as the one with the file's name, which is cut when it is stored."""
_CUT = "The form ends before its last boundary. Send it again completely."
_PLAIN = ("", "7bit", "8bit", "binary")

MOST_CHARACTERS = 200
_MOST_ENDING = 20


@dataclass(frozen=True, slots=True)
class _Part:
    """A part's headers, their names in lower case."""

    headers: Mapping[str, bytes]


_PART_END: Final = "part end"


_END: Final = "end"


_Event = _Part | bytes | Literal["part end", "end"]


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
    _events: deque[_Event] = field(default_factory=deque)
    _headers: dict[str, bytes] = field(default_factory=dict)
    _header: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    _parser: MultipartParser = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._parser = MultipartParser(
                self.boundary,
                {
                    "on_part_begin": self._headers.clear,
                    "on_header_begin": self._header_begins,
                    "on_header_field": lambda data, start, end: self._header_goes_on(0, data[start:end]),
                    "on_header_value": lambda data, start, end: self._header_goes_on(1, data[start:end]),
                    "on_header_end": self._header_ends,
                    "on_headers_finished": lambda: self._events.append(_Part(dict(self._headers))),
                    "on_part_data": lambda data, start, end: self._events.append(data[start:end]),
                    "on_part_end": lambda: self._events.append(_PART_END),
                    "on_end": lambda: self._events.append(_END),
                },
                # Their size is checked while they are read, with a fitting sentence.
                max_header_size=sys.maxsize,
            )
        except FormParserError as error:
            raise InvalidRequestError("The boundary in Content-Type is too long.") from error

    async def fields(self) -> dict[str, str]:
        """The text fields before the file, by name."""
        while isinstance(event := await self._next(), _Part):
            name, file_name = _disposition(event)
            if name == FILE:
                self.file_name = file_name
                return self.given
            await self._take(name, file_name)
        raise InvalidRequestError(f"The form has no file. Send it as the part called {FILE!r}.")

    async def file(self) -> AsyncIterator[bytes]:
        """The file's bytes as they come. It ends only if the form also ends after it."""
        while isinstance(event := await self._next(), bytes):
            yield event
        while isinstance(event := await self._next(), _Part):
            name, file_name = _disposition(event)
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
        while isinstance(event := await self._next(), bytes):
            text += event
            if len(text) > MOST_FIELD_BYTES:
                raise InvalidRequestError(f"{name} has more than {MOST_FIELD_BYTES:,} bytes.", name)
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequestError(f"{name} is not UTF-8.", name) from error

    async def _next(self) -> _Event:
        while not self._events:
            chunk = await anext(self.chunks, None)
            if chunk is None:
                raise InvalidRequestError(_CUT)
            try:
                self._parser.write(chunk)
            except FormParserError as error:
                raise InvalidRequestError(
                    "The form cannot be read. Send multipart/form-data with the boundary that Content-Type names."
                ) from error
        return self._events.popleft()

    def _header_begins(self) -> None:
        self._header[0].clear()
        self._header[1].clear()

    def _header_goes_on(self, place: int, data: bytes) -> None:
        self._header[place].extend(data)
        if len(self._header[place]) > MOST_HEADER_BYTES:
            raise InvalidRequestError(
                f"A header of the form has more than {MOST_HEADER_BYTES:,} bytes. Give the file a shorter name."
            )

    def _header_ends(self) -> None:
        self._headers[self._header[0].decode("latin-1").lower()] = bytes(self._header[1])


def _disposition(part: _Part) -> tuple[str, str | None]:
    """A part's name, and its file name if it has one."""
    if part.headers.get("content-transfer-encoding", b"").decode("latin-1").strip().lower() not in _PLAIN:
        raise InvalidRequestError("Parts with a Content-Transfer-Encoding are not read. Send their bytes as they are.")
    kind, options = parse_options_header(part.headers.get("content-disposition", b""))
    if kind != b"form-data" or b"name" not in options:
        raise InvalidRequestError("A part of the form has no name in its Content-Disposition.")
    file_name = options.get(b"filename")
    return options[b"name"].decode("utf-8", "replace"), None if file_name is None else file_name.decode(
        "utf-8", "replace"
    )


def boundary(content_type: str) -> bytes:
    """The boundary of a multipart/form-data type. Raises InvalidRequestError without one."""
    found = parse_options_header(content_type)[1].get(b"boundary", b"")
    if not found:
        raise InvalidRequestError("Content-Type names no boundary. Send multipart/form-data; boundary=…")
    return found


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
