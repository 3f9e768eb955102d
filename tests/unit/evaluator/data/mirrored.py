"""Mirrors of data sets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from services.evaluator.data.reader import Reader, Rows, Source

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = Source("ours/lamps", "cola", COMMIT)
COLUMNS = pa.schema([("sentence", pa.string()), ("label", pa.int64())])


def source_folder(root: Path) -> Path:
    folder = root / "ours" / "lamps" / "cola"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def rows_of(root: Path | None) -> Rows:
    return Reader(root).read(SOURCE, "validation", COLUMNS)
