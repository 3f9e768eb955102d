"""When services look again for what is no longer needed."""

from __future__ import annotations

import asyncio

import pytest

from services.results.storage import rounds as module
from services.results.storage.database import Database
from services.results.storage.rounds import rounds


async def test_a_round_follows_a_change(database: Database) -> None:
    coming = rounds(database, 0.01)
    await anext(coming)
    waiting = asyncio.ensure_future(anext(coming))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await database.write(lambda connection: None)
    await asyncio.wait_for(waiting, 60)
    await coming.aclose()


async def test_rounds_go_on_while_a_checkpoint_is_to_be_done(database: Database) -> None:
    coming = rounds(database, 0.01)
    database.behind = True
    for _ in range(3):
        await asyncio.wait_for(anext(coming), 60)
    assert database.version == 0
    await coming.aclose()


async def test_a_round_comes_in_time_without_a_change(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DUE_S", 0.05)
    coming = rounds(database, 0.01)
    for _ in range(3):
        await asyncio.wait_for(anext(coming), 60)
    assert database.version == 0
    await coming.aclose()
