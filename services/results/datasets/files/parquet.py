"""Rows of a Parquet file, a few at a time."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any
from uuid import UUID

from services.chat_requests import strict_json
from services.chat_requests.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.files.decoding import Expanded
from services.results.datasets.files.lines import NO_ROWS, Values, checked_header
from services.words.refusals import counted

# Arrow reserves far more address space for its own allocators than an upload may have.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
os.environ.setdefault("OMP_NUM_THREADS", "1")

_BUFFER_BYTES = 64 * 1024
_BATCH_BYTES = 4 * 1024 * 1024
_MOST_BATCH_ROWS = 500
_MOST_LEAVES = 10_000
"""Columns, counting each field of an object."""
_MOST_SCHEMA_BYTES = 8 * 1024 * 1024
_DAMAGED = "The Parquet file is damaged or incomplete. Write it again, and upload all of it."


_ENCRYPTED = "Columns of the Parquet file are encrypted. Write it without encryption, and upload that."


class ParquetObjects:
    """Rows as objects, numbered from 1. Columns that contain bytes, such as images, are left out. Raises RefusedError
    for a file that cannot be read, also while iterating."""

    def __init__(self, file: IO[bytes], size: int, most_rows: int, expanded: Expanded) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._faults = (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError, OverflowError)
        self._size = size
        self._expanded = expanded
        try:
            # Without a buffer, a whole group of rows would be held.
            self._file = pq.ParquetFile(
                file,
                pre_buffer=False,
                buffer_size=_BUFFER_BYTES,
                thrift_string_size_limit=_MOST_SCHEMA_BYTES,
                thrift_container_size_limit=_MOST_LEAVES * 100,
            )
            metadata = self._file.metadata
            self._check(metadata.num_rows, metadata.num_columns, most_rows)
            schema = self._file.schema_arrow
        except MemoryError:
            raise
        except self._faults as error:
            raise RefusedError(_DAMAGED) from error
        checked_header(schema.names)
        self.header = [field.name for field in schema if not _has_bytes(field.type)]
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        a_row = max(1, sum(group.total_byte_size for group in groups) // metadata.num_rows)
        self._batch_rows = min(_MOST_BATCH_ROWS, max(1, _BATCH_BYTES // a_row))

    def _check(self, rows: int, leaves: int, most_rows: int) -> None:
        if rows > most_rows:
            raise RefusedError(f"The file has more than {counted(most_rows, 'row')}. Upload it in parts.")
        if leaves > _MOST_LEAVES:
            raise RefusedError(f"The file has more than {_MOST_LEAVES:,} columns. Leave some out.")
        if not rows:
            raise RefusedError(NO_ROWS)

    def __iter__(self) -> Values:
        number = 0
        for batch in self._batches():
            for row in batch:
                number += 1
                try:
                    yield number, {name: _plain(value) for name, value in row.items()}
                except WrongRowError as wrong:
                    yield number, wrong

    def _batches(self) -> Iterator[list[dict[str, Any]]]:
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(self._batch_rows, columns=self.header, use_threads=False):
                self._expanded.add(batch.nbytes, self._size)
                columns = [_readable(column) for column in batch.columns]
                yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
        except MemoryError:
            raise
        except self._faults as error:
            raise RefusedError(_ENCRYPTED if "decrypt" in str(error) else _DAMAGED) from error


def _has_bytes(type_: Any) -> bool:
    import pyarrow.types as types

    if types.is_nested(type_):
        inner = [type_.field(place).type for place in range(type_.num_fields)]
        return any(_has_bytes(each) for each in inner)
    if types.is_dictionary(type_):
        return _has_bytes(type_.value_type)
    return any(
        check(type_)
        for check in (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    )


def _readable(column: Any) -> Any:
    """Times as texts: Python's have no nanoseconds."""
    import pyarrow as pa
    import pyarrow.types as types

    timed = types.is_timestamp(column.type) and column.type.unit == "ns"
    return column.cast(pa.timestamp("us", column.type.tz), safe=False) if timed else column


def _plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON, with null for NaN and infinity. Raises WrongRowError."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        strict_json.check_text(value)
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > strict_json.MOST_DEPTH:
        raise WrongRowError(f"The row nests more than {strict_json.MOST_DEPTH} objects and arrays. Make it flatter.")
    if isinstance(value, dict):
        return {name: _plain(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, datetime.date | datetime.datetime | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | datetime.timedelta):
        return str(value)
    raise WrongRowError(f"The value {quoted(value)} has no form in JSON. Write it as a text.")
