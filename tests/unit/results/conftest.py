"""A results database of the test's own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from services.results.storage import migrations
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from tests.unit.results.backups import rebuilt


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
def new_path(tmp_path: Path, new_file: Path) -> Path:
    """A file of the test's own with the newest schema and no rows."""
    return Path(shutil.copy(new_file, tmp_path / "results.duckdb"))


@pytest.fixture
def connection(new_path: Path) -> Iterator[Connection]:
    opened = open_file(new_path)
    yield opened
    opened.close()


@pytest.fixture
async def database(new_path: Path) -> AsyncIterator[Database]:
    opened = Database(open_file(new_path))
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def finished_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `rebuilt.fill`. A copy of it is made much sooner than another one."""
    folder = tmp_path_factory.mktemp("finished")
    asyncio.run(rebuilt.fill(folder))
    return folder


@pytest.fixture
def finished(finished_jobs: Path, tmp_path: Path) -> Path:
    """A database of finished jobs of the test's own, their files beside it."""
    shutil.copytree(finished_jobs, tmp_path, dirs_exist_ok=True)
    return tmp_path / rebuilt.DATABASE
