"""Items that leave the database and come back, while the process is killed at each of its steps."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.results.archive import leaving
from services.results.storage import uses
from tests.unit.results.archive.archived import LATER, Archived, items_of, keep_one

EVERY = 12
"""Further steps are killed in the tests of the stack."""


class Killed(BaseException):
    """The process ends here."""


async def leaves_and_comes_back(made: Archived) -> None:
    """Of two jobs."""
    signatures = dict(leaving._due(made.connection, uses.Uses(), made.place, LATER))
    for name in ("done-1", "failed"):
        await made.leaving._leave(made.store, name, signatures[name], LATER)
    await made.leaving.confirm()
    await made.returning.bring_back(["done-1", "failed"])


def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ends the process before or after one of its steps: each that a thread takes, for the store, the disk or the
    database. Returns how many were taken."""
    taken, run = [0], asyncio.get_running_loop().run_in_executor

    def count() -> None:
        taken[0] += 1
        if taken[0] == step:
            raise Killed

    async def stepped(pool: Any, work: Callable[..., Any], *given: Any) -> Any:
        count()
        done = await run(pool, work, *given)
        count()
        return done

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", stepped)
    return taken


@pytest.mark.parametrize(
    "first_step", [5, *(pytest.param(step, marks=pytest.mark.stack) for step in range(1, EVERY) if step != 5)]
)
async def test_a_kill_at_any_step_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_step: int
) -> None:
    folder, kept = tmp_path / "work", tmp_path / "kept"
    folder.mkdir()
    await keep_one(folder, 11)
    first = Archived(folder)
    whole = items_of(first.connection)
    await first.close()
    folder.rename(kept)
    step, killed = first_step, True
    while killed:
        shutil.copytree(kept, folder)
        made = Archived(folder)
        with monkeypatch.context() as patched:
            killed_at(step, patched)
            try:
                await leaves_and_comes_back(made)
                killed = False
            except Killed:
                pass
        await made.close()
        # Another service begins with what the first has left.
        made = Archived(folder)
        if step % 2:
            await made.leaving.confirm()
        assert await made.database.read(items_of) == whole, step
        await made.leave()
        assert await made.database.read(items_of) == whole, step
        await made.leaving.confirm()
        assert not list(made.moving.glob("*.leaving.*"))
        await made.close()
        shutil.rmtree(folder)
        step += EVERY
    assert step > 50
