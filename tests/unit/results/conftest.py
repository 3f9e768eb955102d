"""A results database of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from services.results.storage import migrations
from services.results.storage.database import Connection
from services.results.storage.migrations import open_file


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Files of a few rows give further threads nothing to do but wait for each other."""
    with patch.dict(migrations._HARDENED, threads="1"):
        yield


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the newest schema and no rows. A copy of it is opened much sooner than a new one is made."""
    path = tmp_path_factory.mktemp("new") / "results.duckdb"
    open_file(path).close()
    return path


@pytest.fixture
def connection(tmp_path: Path, new_file: Path) -> Iterator[Connection]:
    path = tmp_path / "results.duckdb"
    shutil.copy(new_file, path)
    opened = open_file(path)
    yield opened
    opened.close()
