"""CSV files that spreadsheets read as texts."""

from __future__ import annotations

import csv
import io

from services.results.storage.database import Connection
from tests.unit.results.export.files import CSV, HOSTILE, items_of, text_items, whole


def test_no_cell_of_a_csv_is_a_formula(connection: Connection) -> None:
    text_items(connection)
    request = items_of("j")
    request.format = CSV
    data = whole(connection, request)
    assert data.count(b"\r\n") > len(HOSTILE)
    found = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    for text, row in zip(HOSTILE, found, strict=True):
        for name in ("prompt", "response", "prediction"):
            assert row[name] == (f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and text else text)
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for row in found for cell in row.values() if cell)
    assert found[0]["latency_ms"] == "10.0"
