"""How templates and scorings name a value of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_DIGITS = 8


def value_at(values: Mapping[str, Any] | Any, path: str) -> Any:
    """The value of a name: a column, or after dots a field of an object or an index of an array. Names may contain
    dots; the shortest reading counts.

    Raises KeyError without a value.
    """
    head, dot, rest = path.partition(".")
    if isinstance(values, list) and head.isdecimal() and len(head) <= _MOST_DIGITS and int(head) < len(values):
        found = values[int(head)]
        return value_at(found, rest) if dot else found
    while isinstance(values, Mapping):
        if head in values:
            if not dot:
                return values[head]
            try:
                return value_at(values[head], rest)
            except KeyError:
                pass
        if not dot:
            break
        name, dot, rest = rest.partition(".")
        head = f"{head}.{name}"
    raise KeyError(path)


def has(values: Mapping[str, Any], path: str) -> bool:
    """Whether the name has a value."""
    try:
        value_at(values, path)
    except KeyError:
        return False
    return True
