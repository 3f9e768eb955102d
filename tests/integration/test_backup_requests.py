"""What somebody who asks for a backup hears when none is made."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from services import bus
from services.errors import UnavailableError
from services.results.backups import making
from tests.nats_server import NatsServer
from tests.waiting import answered


@pytest.mark.parametrize("after", [b"another", b""])
async def test_that_its_maker_is_gone(nats: NatsServer, monkeypatch: pytest.MonkeyPatch, after: bytes) -> None:
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", nats.url)
    monkeypatch.setattr(making, "_LOOK_EVERY_S", 0.05)
    connection = await bus.connect(nats.url, "maker")
    maker, begun_one = [b"one"], asyncio.Event()

    async def who(msg: Msg) -> None:
        await msg.respond(maker[0] + b"+")

    async def make(msg: Msg) -> None:
        begun_one.set()

    here = await connection.client.subscribe(bus.BACKUPS_BY, cb=who)
    await connection.client.subscribe(bus.BACKUPS, cb=make)
    await connection.client.flush()
    asked = asyncio.create_task(making.backup_of())
    await asyncio.wait_for(begun_one.wait(), 20)
    maker[0] = after
    if not after:
        await here.unsubscribe()
    with pytest.raises(UnavailableError, match="ended before the backup was complete"):
        await asyncio.wait_for(asked, 20)
    await connection.close()


async def test_that_the_request_was_lost(nats: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", nats.url)
    monkeypatch.setattr(making, "_LOOK_EVERY_S", 0.05)
    connection = await bus.connect(nats.url, "maker")
    looks = 0

    async def who(msg: Msg) -> None:
        nonlocal looks
        looks += 1
        # It begins after the first look, and loses its connection after the third.
        await msg.respond(b"one+" if looks in (2, 3, 4) else b"one")

    async def make(msg: Msg) -> None:
        pass

    await connection.client.subscribe(bus.BACKUPS_BY, cb=who)
    await connection.client.subscribe(bus.BACKUPS, cb=make)
    await connection.client.flush()
    with pytest.raises(UnavailableError, match="was lost"):
        await asyncio.wait_for(making.backup_of(), 20)
    assert looks == 6
    await connection.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("of any kind"), "The backup failed. The log of the results service says why."),
        (TimeoutError(), "The backup cannot be written: TimeoutError."),
        (OSError("no room\nat all"), "The backup cannot be written: no room."),
    ],
)
async def test_whatever_stopped_it(
    nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setenv("TOUCHSTONE_NATS_URL", nats.url)
    connection = await bus.connect(nats.url, "maker")
    backups = making.Backups(connection, cast(Any, Unreadable(error)), str(tmp_path / "backups"), "", tmp_path)
    serving = asyncio.create_task(backups.serve())
    await answered(lambda: asyncio.to_thread(nats.hears, bus.BACKUPS_BY))
    with pytest.raises(UnavailableError, match=re.escape(said)):
        await asyncio.wait_for(making.backup_of(), 20)
    await bus.end_tasks([serving])
    await connection.close()


class Unreadable:
    """A database that cannot be copied."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def copy(self, path: Path) -> None:
        raise self._error
