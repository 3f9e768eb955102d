"""JSON: one array, or an object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from services.results.export.columns import Row, Table, Value

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\u0085\u2028\u2029"}
"""What Unicode ends a line with beyond JSON's own escapes: many readers do not split at line feeds alone."""


class JsonFile:
    """`lines`: one object a line and nothing between; else one array."""

    def __init__(self, table: Table, *, lines: bool) -> None:
        self._names = [name for name, _ in table.columns]
        self._lines = lines
        self._parts: list[str] = [] if lines else ["["]
        self._first = True

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if not self._lines:
                self._parts.append("\n" if self._first else ",\n")
            self._first = False
            members = dict(zip(self._names, map(iso, row), strict=True))
            text = json.dumps(members, ensure_ascii=False, allow_nan=False)
            self._parts.append(text if text.isascii() else text.translate(_LINE_ENDS))
            if self._lines:
                self._parts.append("\n")

    def take(self) -> bytes:
        data = "".join(self._parts).encode()
        self._parts.clear()
        return data

    def close(self) -> None:
        if not self._lines:
            self._parts.append("]\n" if self._first else "\n]\n")


def iso(value: Value) -> Value:
    """A time in UTC as ISO 8601 with milliseconds, as in REST; anything else as it is."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
