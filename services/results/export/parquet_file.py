"""Parquet with row groups of bounded size."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from services.results.export.columns import Kind, Row, Table, Value

GROUP_BYTES = 8 * 1024 * 1024
GROUP_ROWS = 20_000

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.WHOLE: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.FLAG: pa.bool_(),
    Kind.TIME: pa.timestamp("ms", "UTC"),
    Kind.OBJECT: pa.string(),
    Kind.ANY: pa.string(),
}


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
    """A file to write at its end, of which only what was not taken yet is kept."""

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
