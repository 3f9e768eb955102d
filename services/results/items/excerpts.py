"""Items as lists show them: texts cut to 2 KB."""

from __future__ import annotations

import json
from typing import Any

from services.results.storage import item_rows
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.results_service_pb2 import StoredItem

EXCERPT_BYTES = 2048

_TEXTS = ("prompt", "response", "reasoning", "prediction", "reference", "error")
_VALUE_LENGTH = 200


def _beginnings() -> str:
    """COLUMNS with texts cut to what an excerpt may need, in characters. Messages and metadata are JSON, which cannot
    be cut: long messages are left out, as the prompt holds their texts, and metadata are read whole. So are tool calls.
    Log-probabilities are left out."""
    columns = item_rows.COLUMNS
    for name in _TEXTS:
        columns = columns.replace(f'"{name}"', f'left("{name}", {EXCERPT_BYTES + 1}) AS "{name}"')
    messages = f"CASE WHEN strlen(messages) <= {EXCERPT_BYTES} THEN messages ELSE '' END AS messages"
    return columns.replace('"messages"', messages).replace('"logprobs"', "NULL AS logprobs")


COLUMNS = _beginnings()
"""What `cut` needs of a row of `items`, in the order of rows.COLUMNS."""


def cut(stored: StoredItem) -> StoredItem:
    """Cuts an item's texts in place. Metadata stay an object: a long one keeps the beginnings of its first fields."""
    for name in _TEXTS:
        text = getattr(stored.result, name).encode()
        if len(text) > EXCERPT_BYTES:
            setattr(stored.result, name, text[: EXCERPT_BYTES - 3].decode(errors="ignore") + "…")
    if stored.result.tool_calls:
        _cut_calls(stored.result)
    if len(stored.result.metadata.encode()) > EXCERPT_BYTES:
        stored.result.metadata = _shortened(stored.result.metadata)
    return stored


def _cut_calls(result: ItemResult) -> None:
    """The first calls, of the last of them the beginning."""
    left = EXCERPT_BYTES
    for place, call in enumerate(result.tool_calls):
        arguments = call.arguments.encode()
        if len(arguments) > left:
            call.arguments = arguments[: max(0, left - 3)].decode(errors="ignore") + "…"
            del result.tool_calls[place + 1 :]
            return
        left -= len(arguments)


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
