"""Databases of finished jobs, made once: filling one takes most of a test's time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.results.archive.archived import Archived, copied, fill


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled database without an archive, to be copied."""
    made = Archived(tmp_path_factory.mktemp("filled"))
    fill(made.connection)
    asyncio.run(made.close())
    return made.folder


@pytest.fixture(scope="session")
def kept(filled_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled database with its archive, to be copied."""

    async def archived() -> Path:
        made = copied(filled_folder, tmp_path_factory.mktemp("kept"))
        await made.archive()
        await made.close()
        return made.folder

    return asyncio.run(archived())
