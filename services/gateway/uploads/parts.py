"""The parts of a multipart/form-data body (RFC 7578), one after the other as they arrive."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from services.errors import InvalidRequestError

MULTIPART = "multipart/form-data"
MOST_HEADER_BYTES = 16 * 1024
"""Most bytes of a part's header, such as the one with the file's name, which is cut when it is stored."""
_CUT = "The form ends before its last boundary. Send it again completely."
_PLAIN = ("", "7bit", "8bit", "binary")


@dataclass(frozen=True, slots=True)
class Part:
    """A part's headers, their names in lower case."""

    headers: Mapping[str, bytes]


PART_END: Final = "part end"
END: Final = "end"
Event = Part | bytes | Literal["part end", "end"]


@dataclass(slots=True)
class Parts:
    """Raises InvalidRequestError for a boundary that is too long."""

    chunks: AsyncIterator[bytes]
    boundary: bytes
    _events: deque[Event] = field(default_factory=deque)
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
                    "on_headers_finished": lambda: self._events.append(Part(dict(self._headers))),
                    "on_part_data": lambda data, start, end: self._events.append(data[start:end]),
                    "on_part_end": lambda: self._events.append(PART_END),
                    "on_end": lambda: self._events.append(END),
                },
                # Their size is checked while they are read, with a fitting sentence.
                max_header_size=sys.maxsize,
            )
        except FormParserError as error:
            raise InvalidRequestError("The boundary in Content-Type is too long.") from error

    async def next(self) -> Event:
        """A part, then its data in pieces, then PART_END; END after the last part. Raises InvalidRequestError for a
        form that is malformed or cut, and the errors of `chunks`."""
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


def disposition(part: Part) -> tuple[str, str | None]:
    """A part's name, and its file name if it has one. Raises InvalidRequestError."""
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


def is_form(content_type: str) -> bool:
    """Whether it names a form in parts."""
    return content_type.partition(";")[0].strip().lower() == MULTIPART
