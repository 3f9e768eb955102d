"""A results database of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.results.database import Connection
from services.results.schema import open_file


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    opened = open_file(tmp_path / "results.duckdb")
    yield opened
    opened.close()
