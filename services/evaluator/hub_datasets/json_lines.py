"""Rows of a split as JSON lines, some hundred kilobytes at once. Blocking."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from services.evaluator.data.reader import as_dicts

_ROWS = 500
_BYTES = 256 * 1024


def of_lines(path: Path, limit: int) -> Iterator[bytes]:
    """A JSON Lines file as it is; with a limit its first so many rows."""
    with path.open("rb") as file:
        if not limit:
            while piece := file.read(_BYTES):
                yield piece
            return
        rows = islice((line.rstrip() + b"\n" for line in file if line.strip()), limit)
        while some := b"".join(islice(rows, _ROWS)):
            yield some


def of_parquet(path: Path, limit: int) -> Iterator[bytes]:
    """A Parquet file without the columns that no JSON can hold. Raises pyarrow.ArrowException, OSError."""
    with pq.ParquetFile(path) as file:
        columns = [field.name for field in file.schema_arrow if _is_text(field.type)]
        left = limit or file.metadata.num_rows
        for batch in file.iter_batches(_ROWS, columns=columns):
            yield _lines(pa.Table.from_batches([batch.slice(0, left)]))
            left -= len(batch)
            if left <= 0:
                return


def of_table(table: pa.Table, limit: int) -> Iterator[bytes]:
    """A table without the columns that no JSON can hold."""
    chosen = table.select([field.name for field in table.schema if _is_text(field.type)]).slice(0, limit or None)
    for start in range(0, len(chosen), _ROWS):
        yield _lines(chosen.slice(start, _ROWS))


def _lines(table: pa.Table) -> bytes:
    return b"".join(
        json.dumps(_whole(row), ensure_ascii=False, default=str).encode() + b"\n" for row in as_dicts(table)
    )


def _whole(value: Any) -> Any:
    """With null for numbers that JSON does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def _is_text(type_: pa.DataType) -> bool:
    """Whether it is no image, sound or other bytes, however deep."""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return False
    if pa.types.is_struct(type_):
        return all(_is_text(field.type) for field in type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return _is_text(type_.value_type)
    return not (pa.types.is_map(type_) or isinstance(type_, pa.BaseExtensionType))
