"""CSV as in RFC 4180, in UTF-8, which spreadsheets open without running anything."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from services.results.export.columns import Kind, Row, Table, Value
from services.results.export.json_file import iso

_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class CsvFile:
    """A header line, then a line per row. Nothing stands for a missing value."""

    def __init__(self, table: Table) -> None:
        self._kinds = [kind for _, kind in table.columns]
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\r\n")
        self._writer.writerow([name for name, _ in table.columns])

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._writer.writerow([_cell(kind, value) for kind, value in zip(self._kinds, row, strict=True)])

    def take(self) -> bytes:
        data = self._text.getvalue().encode()
        self._text.seek(0)
        self._text.truncate()
        return data

    def close(self) -> None:
        """Nothing follows the last row."""


def _cell(kind: Kind, value: Value) -> Value:
    if value is None:
        return ""
    if kind is Kind.TEXT or isinstance(value, str):
        text = str(value)
        return f"'{text}" if text.startswith(_STARTS_FORMULA) else text
    if kind is Kind.OBJECT or isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return iso(value)
