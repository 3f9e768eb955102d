from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.results.storage.database import Database
from services.results.storage.migrations import open_file


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(open_file(tmp_path / "results.duckdb"))
    yield opened
    await opened.close()
