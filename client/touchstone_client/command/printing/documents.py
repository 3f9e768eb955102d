"""Messages as JSON: field names as in the protos, enums as lower-case words, times as ISO 8601, numbers as numbers."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from services.words.enums import value_word
from touchstone.v1 import job_pb2
from touchstone_client.specs import further_fields

_TIMESTAMP = "google.protobuf.Timestamp"
_FURTHER = ("extra", "extra_json")


def document(message: Message) -> dict[str, Any]:
    """Every field but messages and optional numbers that are not set. Further fields of a request are an object."""
    further = further_fields(message) if isinstance(message, job_pb2.Sampling) else {}
    return {
        field.name: _value(message, field)
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
        if not (isinstance(message, job_pb2.Sampling) and field.name in _FURTHER)
    } | ({"extra": further} if further else {})


def told(message: Any, name: str) -> int | None:
    """A count of tokens; None where the provider does not give it."""
    count: int = getattr(message, name)
    return None if not count and getattr(message, name.replace("_tokens", "_untold"), False) else count


def _value(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    inner = field.message_type
    if inner is None and field.name in ("input_tokens", "output_tokens"):
        return told(message, field.name)
    if inner is not None and inner.GetOptions().map_entry:
        return dict(value)
    return [_one(part, field) for part in value] if field.is_repeated else _one(value, field)


def _one(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        return value_word(field.enum_type.values_by_number[value].name, field.enum_type.name)
    if field.message_type is None:
        return value
    if field.message_type.full_name == _TIMESTAMP:
        return value.ToJsonString()
    return document(value)
