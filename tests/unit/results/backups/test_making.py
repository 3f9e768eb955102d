"""One backup at a time, and none refused for another reason."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from services.errors import ConflictError
from services.results.backups.making import Backups


class FullDisk:
    """A database that cannot be copied."""

    async def copy(self, path: Path) -> None:
        raise OSError(path)


async def test_a_backup_waits_for_a_purge_and_only_another_backup_refuses_it(tmp_path: Path) -> None:
    backups = Backups(cast(Any, None), cast(Any, FullDisk()), str(tmp_path / "backups"), "", tmp_path / "scratch")
    async with backups.holding:
        first = asyncio.create_task(backups.make())
        await asyncio.sleep(0)
        with pytest.raises(ConflictError, match="Another backup is being made"):
            await backups.make()
        assert not first.done()
    with pytest.raises(OSError, match="backups"):
        await first
    with pytest.raises(OSError, match="backups"):
        await backups.make()
    assert list((tmp_path / "backups").iterdir()) == []
