"""Exported tables: their columns, and the CSV, JSON, JSON Lines or Parquet file that is written piece by piece.

CSV follows RFC 4180, in UTF-8, and no cell runs as a formula in a spreadsheet. Parquet has row groups of bounded size.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.errors import InvalidRequestError
from touchstone.v1.results_service_pb2 import ExportRequest

Value = str | int | float | bool | datetime | dict[str, "Value"] | list["Value"] | None
"""None where there is no value; a number that is not finite counts as no value. A text is never None."""
Row = Sequence[Value]

T = TypeVar("T")

_ROWS_TOGETHER = 256
GROUP_BYTES = 8 * 1024 * 1024
GROUP_ROWS = 20_000


class Kind(Enum):
    """TEXT and ANY are what others may have written; ANY is any value of JSON. OBJECT is JSON: text in CSV and Parquet,
    as ANY is in Parquet."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"
    OBJECT = "object"
    ANY = "any"


_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.WHOLE: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.FLAG: pa.bool_(),
    Kind.TIME: pa.timestamp("ms", "UTC"),
    Kind.OBJECT: pa.string(),
    Kind.ANY: pa.string(),
}


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """`read` gives the value for what a row is made of."""

    name: str
    kind: Kind
    read: Callable[[T], Value]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one kind, in order, as they come: one batch holds some megabytes of them at most. JSON leaves out columns
    in `optional` where they have no value."""

    columns: Sequence[tuple[str, Kind]]
    batches: Iterator[Sequence[Row]]
    optional: frozenset[str] = frozenset()


def table(columns: Sequence[Column[T]], sources: Iterable[T]) -> Table:
    """For small rows."""
    return Table([(column.name, column.kind) for column in columns], _batches(columns, iter(sources)))


def _batches(columns: Sequence[Column[T]], sources: Iterator[T]) -> Iterator[list[Row]]:
    while some := list(islice(sources, _ROWS_TOGETHER)):
        yield [[column.read(source) for column in columns] for source in some]


def number(message: Message, field: str) -> float | None:
    """An optional number of a message."""
    if not message.HasField(field):
        return None
    return finite(getattr(message, field))


def finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def time(message: Message, field: str) -> datetime | None:
    if not message.HasField(field):
        return None
    stamp: Timestamp = getattr(message, field)
    return stamp.ToDatetime(UTC)


class ParquetFile:
    """Rows gather until a row group is full: about GROUP_BYTES, or GROUP_ROWS."""

    def __init__(self, table: Table) -> None:
        self._objects = [kind in (Kind.OBJECT, Kind.ANY) for _, kind in table.columns]
        self._schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in table.columns])
        self._buffer = io.BytesIO()
        self._writer = pq.ParquetWriter(_Tail(self._buffer), self._schema, compression="zstd")
        self._parts: list[pa.RecordBatch] = []
        self._bytes = self._rows = 0

    def add(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        columns = [
            list(map(_text, values)) if is_object else values
            for is_object, values in zip(self._objects, zip(*rows, strict=True), strict=True)
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._parts.append(pa.record_batch(arrays, schema=self._schema))
        self._bytes += self._parts[-1].nbytes
        self._rows += len(rows)
        if self._bytes >= GROUP_BYTES or self._rows >= GROUP_ROWS:
            self._write_group()

    def take(self) -> bytes:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data

    def close(self) -> None:
        if self._parts:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        group = pa.Table.from_batches(self._parts, self._schema)
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._parts.clear()
        self._bytes = self._rows = 0


def _text(value: Value) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


class _Tail(io.RawIOBase):
    """A file that is appended to, of which only the part not yet taken is kept."""

    def __init__(self, buffer: io.BytesIO) -> None:
        self._buffer = buffer
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._written += self._buffer.write(data)
        return len(data)


_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\u0085\u2028\u2029"}
"""Line ends in Unicode beyond those that JSON escapes: many readers do not split at line feeds alone."""

_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")

PIECE_BYTES = 1_000_000


class JsonFile:
    """`lines`: one object per line and nothing between; else one array."""

    def __init__(self, table: Table, *, lines: bool) -> None:
        self._names = [name for name, _ in table.columns]
        self._optional = table.optional
        self._lines = lines
        self._parts: list[str] = [] if lines else ["["]
        self._first = True

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if not self._lines:
                self._parts.append("\n" if self._first else ",\n")
            self._first = False
            members = dict(zip(self._names, map(iso, row), strict=True))
            for name in self._optional:
                if members[name] is None:
                    del members[name]
            text = json.dumps(members, ensure_ascii=False, allow_nan=False)
            self._parts.append(text if text.isascii() else text.translate(_LINE_ENDS))
            if self._lines:
                self._parts.append("\n")

    def take(self) -> bytes:
        data = "".join(self._parts).encode()
        self._parts.clear()
        return data

    def close(self) -> None:
        if not self._lines:
            self._parts.append("]\n" if self._first else "\n]\n")


def iso(value: Value) -> Value:
    """A time in UTC as ISO 8601 with milliseconds, as in REST; anything else as it is."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


class CsvFile:
    """A header line, then a line per row. A missing value is an empty cell."""

    def __init__(self, table: Table) -> None:
        self._kinds = [kind for _, kind in table.columns]
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\r\n")
        self._writer.writerow([name for name, _ in table.columns])

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._writer.writerow([_cell(kind, value) for kind, value in zip(self._kinds, row, strict=True)])

    def take(self) -> bytes:
        data = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return data

    def close(self) -> None:
        """Nothing follows the last row."""


def _cell(kind: Kind, value: Value) -> Value:
    if value is None:
        return ""
    if kind is Kind.TEXT or isinstance(value, str):
        text = str(value)
        return f"'{text}" if text.startswith(_STARTS_FORMULA) else text
    if kind is Kind.OBJECT or isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return iso(value)


class File(Protocol):
    """`take` gives the bytes written since it was last asked."""

    def add(self, rows: Sequence[Row]) -> None: ...

    def take(self) -> bytes: ...

    def close(self) -> None: ...


_FORMATS: dict[int, Callable[[Table], File]] = {
    ExportRequest.FORMAT_CSV: CsvFile,
    ExportRequest.FORMAT_JSON: lambda table: JsonFile(table, lines=False),
    ExportRequest.FORMAT_JSONL: lambda table: JsonFile(table, lines=True),
    ExportRequest.FORMAT_PARQUET: ParquetFile,
}


def opener(format_: int) -> Callable[[Table], File]:
    """Raises InvalidRequestError."""
    if format_ not in _FORMATS:
        raise InvalidRequestError("format must be CSV, JSON, JSONL or PARQUET.", "format")
    return _FORMATS[format_]


def pieces(table: Table, make: Callable[[Table], File]) -> Iterator[bytes]:
    """The file in pieces of PIECE_BYTES, the last one smaller."""
    file, waiting = make(table), bytearray()
    for rows in table.batches:
        file.add(rows)
        waiting += file.take()
        while len(waiting) >= PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    file.close()
    waiting += file.take()
    for start in range(0, len(waiting), PIECE_BYTES):
        yield bytes(waiting[start : start + PIECE_BYTES])
