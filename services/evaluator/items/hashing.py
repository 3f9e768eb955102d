"""Hashes of items over whole columns, so that a hundred thousand items are hashed in half a second."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.data import tables

_BETWEEN = "\x1f"
_BETWEEN_COLUMNS = tables.text_scalar(_BETWEEN)
_BETWEEN_PARTS = tables.text_scalar("\x1e")


def hashes(prefix: Sequence[str], columns: Sequence[pa.Array], last: Iterable[str]) -> list[str]:
    """For each row the hash of `prefix`, the row's texts in `columns`, and its text in `last`: 16 hexadecimal digits of
    SHA-256."""
    start = hashlib.sha256("".join(f"{part}{_BETWEEN}" for part in prefix).encode())
    found: list[str] = []
    for texts_, end in zip(pc.binary_join_element_wise(*columns, _BETWEEN_COLUMNS).to_pylist(), last, strict=True):
        digest = start.copy()
        digest.update(f"{texts_}{_BETWEEN}{end}".encode())
        found.append(digest.hexdigest()[:16])
    return found


def text_hash(text: str) -> str:
    """16 hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def whole(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece; at least one row."""
    return pa.concat_arrays(column.chunks)


def texts(column: pa.Array) -> pa.Array:
    """A text for each value of the column, equal for equal values: without surrounding white space, with the parts of
    lists and structures joined. No text or list is missing, as `Reader` gives them."""
    if pa.types.is_string(column.type):
        return pc.utf8_trim_whitespace(column)
    if pa.types.is_list(column.type):
        offsets = pc.subtract(column.offsets, column.offsets[0])
        return pc.binary_join(pa.ListArray.from_arrays(offsets, texts(column.flatten())), _BETWEEN_PARTS)
    if pa.types.is_struct(column.type):
        return pc.binary_join_element_wise(*(texts(part) for part in column.flatten()), _BETWEEN_PARTS)
    written = pc.cast(column, pa.string())
    return pc.fill_null(written, "") if written.null_count else written
