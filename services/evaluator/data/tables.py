"""Tables of given columns from JSON Lines, Parquet and Arrow.

A missing text reads as empty, a missing number as null. `integer_array` and `text_scalar` replace `pa.array` and
`pa.scalar`, which import pandas where it is installed: 41 MB and half a second in every evaluator.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

_BATCH = 2000


class TableError(Exception):
    """The rows cannot be used; the message is a clause that says what is wrong with them."""


def from_jsonl(file: io.BufferedIOBase, schema: pa.Schema, most: int = 0) -> tuple[pa.Table, str]:
    """The table and the SHA-256 of what was read; with `most`, only that many first lines. Raises TableError."""
    if most:
        file = io.BytesIO(b"".join(islice(file, most)))
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        # The system's allocator and one thread: others hold half as much memory again as the rows take.
        table = pj.read_json(
            file,
            pj.ReadOptions(use_threads=False),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            pa.system_memory_pool(),
        )
        table.validate(full=True)  # the parser accepts bytes that are not UTF-8
        # What is missing may be a whole column, which the parser accepts, too.
        if not any(map(_has_missing, chain.from_iterable(column.chunks for column in table.columns))):
            return table, digest
    except (pa.ArrowException, ValueError):
        pass
    # Line by line: several times as slow, but it finds the line and the fault.
    file.seek(0)
    return _from_lines(file, schema), digest


def _from_lines(file: io.BufferedIOBase, schema: pa.Schema) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    columns: list[list[Any]] = [[] for _ in schema.names]
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:  # not JSON, or not UTF-8
            raise TableError(f"line {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise TableError(f"line {number} is not a JSON object")
        for column, values in zip(schema.names, columns, strict=True):
            if column not in row:
                raise TableError(f"line {number} has no {column!r}")
            values.append(row[column])
        if len(columns[0]) == _BATCH:
            batches.append(_batch(columns, schema))
            columns = [[] for _ in schema.names]
    batches.append(_batch(columns, schema))
    return _checked(pa.Table.from_batches(batches, schema))


def _batch(columns: Sequence[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    try:
        return pa.record_batch(
            [_array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema
        )
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise TableError(f"a column has the wrong type ({error})") from error


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    # Given an integer type, Arrow would silently cut 1.5 to 1; a cast refuses it.
    return pa.array(values).cast(type_) if pa.types.is_integer(type_) else pa.array(values, type_)


def from_parquet(file: io.BufferedIOBase, schema: pa.Schema, most: int = 0) -> tuple[pa.Table, str]:
    """The table and the SHA-256 of the file; with `most`, only that many first rows. Raises TableError."""
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    try:
        parquet = pq.ParquetFile(file)
        columns = [column for column in schema.names if column in parquet.schema_arrow.names]
        first = next(parquet.iter_batches(most, columns=columns), None) if most else None
        table = parquet.read(columns=columns) if first is None else pa.Table.from_batches([first])
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"it is not a Parquet file ({error})") from error
    return conform(table, schema), digest


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The schema's columns in its types. Raises TableError."""
    absent = [column for column in schema.names if column not in table.column_names]
    if absent:
        raise TableError(f"it has no column {absent[0]!r}")
    try:
        chosen = table.select(schema.names).cast(schema)
        chosen.validate(full=True)
        return _checked(chosen)
    except (pa.ArrowException, ValueError) as error:
        raise TableError(f"a column has the wrong type ({error})") from error


def _checked(table: pa.Table) -> pa.Table:
    """The table without missing texts."""
    if not table.num_rows:
        raise TableError("it has no rows")
    columns = [pa.chunked_array([_whole(chunk) for chunk in column.chunks], column.type) for column in table.columns]
    return pa.table(columns, schema=table.schema)


def _whole(array: pa.Array) -> pa.Array:
    if not _has_missing(array):
        return array
    return pa.array([_filled(value, array.type) for value in array.to_pylist()], array.type)


def _has_missing(array: pa.Array) -> bool:
    """Whether anything is missing, however deep."""
    if array.null_count:
        return True
    if pa.types.is_list(array.type):
        return _has_missing(array.flatten())
    return pa.types.is_struct(array.type) and any(map(_has_missing, array.flatten()))


def _filled(value: Any, type_: pa.DataType) -> Any:
    """The value with "" for a missing text and [] for a missing list, however deep."""
    if pa.types.is_string(type_):
        return value or ""
    if pa.types.is_list(type_):
        return [_filled(part, type_.value_type) for part in value or ()]
    if pa.types.is_struct(type_):
        return {field.name: _filled((value or {}).get(field.name), field.type) for field in type_}
    return value


def integer_array(values: Iterable[int]) -> pa.Array:
    """64-bit integers."""
    content = array("q", values)
    return pa.Array.from_buffers(pa.int64(), len(content), [None, pa.py_buffer(content.tobytes())])


def text_scalar(value: str) -> pa.Scalar:
    """A string."""
    content = value.encode()
    offsets = struct.pack("=ii", 0, len(content))
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(content)])[0]
