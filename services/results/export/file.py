"""A table as a file, piece by piece: what was handed on is not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from services.errors import InvalidRequestError
from services.results.export.columns import Row, Table
from services.results.export.csv_file import CsvFile
from services.results.export.json_file import JsonFile
from services.results.export.parquet_file import ParquetFile
from touchstone.v1.results_service_pb2 import ExportRequest

PIECE_BYTES = 1_000_000


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
        raise InvalidRequestError("format is missing; it may be CSV, JSON, JSONL or PARQUET.", "format")
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
