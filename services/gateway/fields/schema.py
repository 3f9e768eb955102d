"""JSON Schema for the OpenAPI document: the content of answers, declared next to the functions that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
BOOLEAN: Schema = {"type": "boolean"}
UUID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
"""ISO-8601 in UTC with milliseconds and Z."""
OBJECT: Schema = {"type": "object"}
"""With members that Touchstone does not define."""


def about(schema: Schema, words: str) -> Schema:
    """The schema with a description."""
    return schema | {"description": words}


def null(schema: Schema) -> Schema:
    """What the schema allows, or null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return schema
    if isinstance(kind, str) and "enum" not in schema and "title" not in schema:
        return schema | {"type": [kind, "null"]}
    words = {"description": schema["description"]} if "description" in schema else {}
    inner = {name: value for name, value in schema.items() if name != "description"}
    return {"anyOf": [inner, {"type": "null"}]} | words


def enum(*choices: str) -> Schema:
    return {"type": "string", "enum": list(choices)}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def pair(items: Schema) -> Schema:
    """Two of them: the ends of an interval, or bounds."""
    return {"type": "array", "items": items, "minItems": 2, "maxItems": 2}


def table(values: Schema) -> Schema:
    """An object whose members' names are data, such as tasks."""
    return {"type": "object", "additionalProperties": values}


def shape(members: Mapping[str, Schema], *, name: str = "", optional: Sequence[str] = ()) -> Schema:
    """An object with these members, all of which are always there except the optional ones. A named one appears once in
    the document, under its name."""
    schema: Schema = {"title": name} if name else {}
    return schema | {
        "type": "object",
        "properties": dict(members),
        "required": [member for member in members if member not in optional],
    }
