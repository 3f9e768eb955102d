"""Items as lists show them: texts cut to 2 KB."""

from __future__ import annotations

import json
from typing import Any

from services.results.storage import item_rows
from touchstone.v1.results_service_pb2 import StoredItem

EXCERPT_BYTES = 2048

_TEXTS = ("prompt", "response", "reasoning", "prediction", "reference", "error")
_VALUE_LENGTH = 200


def _beginnings() -> str:
    """COLUMNS with texts cut to what an excerpt may need, in characters. Messages and metadata are JSON, which cannot
    be cut: long messages are left out, as the prompt holds their texts, and metadata are read whole."""
    columns = item_rows.COLUMNS
    for name in _TEXTS:
        columns = columns.replace(f'"{name}"', f'left("{name}", {EXCERPT_BYTES + 1}) AS "{name}"')
    messages = f"CASE WHEN strlen(messages) <= {EXCERPT_BYTES} THEN messages ELSE '' END AS messages"
    return columns.replace('"messages"', messages)


COLUMNS = _beginnings()
"""What `cut` needs of a row of `items`, in the order of rows.COLUMNS."""


def cut(stored: StoredItem) -> StoredItem:
    """Cuts an item's texts in place. Metadata stay an object: a long one keeps the beginnings of its first fields."""
    for name in _TEXTS:
        text = getattr(stored.result, name).encode()
        if len(text) > EXCERPT_BYTES:
            setattr(stored.result, name, text[: EXCERPT_BYTES - 3].decode(errors="ignore") + "…")
    if len(stored.result.metadata.encode()) > EXCERPT_BYTES:
        stored.result.metadata = _shortened(stored.result.metadata)
    return stored


def _shortened(text: str) -> str:
    kept: dict[str, Any] = {}
    used = 2
    for name, value in item_rows.metadata_fields(text).items():
        if isinstance(value, str) and len(value) > _VALUE_LENGTH:
            value = value[:_VALUE_LENGTH] + "…"
        used += len(json.dumps({name: value}, ensure_ascii=False).encode())
        if used > EXCERPT_BYTES:
            break
        kept[name] = value
    return json.dumps(kept, ensure_ascii=False)
