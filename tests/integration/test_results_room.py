"""On a low disk RESULTS gives up what is stored elsewhere, although its own bound is far away. On a full one, NATS
may not survive that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from services import bus
from services.results.intake import feeds
from tests.nats_server import NatsServer

MESSAGES, STORED = 10, 6


@dataclass
class Feed:
    position: int


@pytest.mark.parametrize(
    ("level", "left"),
    [(bus.Level.ENOUGH, MESSAGES), (bus.Level.LOW, MESSAGES - STORED), (bus.Level.FULL, MESSAGES)],
)
async def test_a_low_disk_purges_what_is_stored(nats: NatsServer, level: bus.Level, left: int) -> None:
    connection, room = await bus.connect(nats.url, "test"), bus.Room()
    room.level = level
    await connection.ensure(10**9)
    for number in range(MESSAGES):
        await connection.js.publish(f"results.job.{number}", b"x")
    await connection.kv_put(bus.JOBS, bus.FLOOR_KEY, str(MESSAGES).encode())
    feed = cast(feeds.Feed, Feed(STORED))
    keeping = asyncio.create_task(feeds.keep_room(connection, feed, room, asyncio.Lock()))
    try:
        await asyncio.sleep(1.5)
        for _ in range(100):
            found = (await connection.js.stream_info(bus.RESULTS)).state.messages
            if found == left:
                break
            await asyncio.sleep(0.1)
        assert found == left
    finally:
        keeping.cancel()
        await connection.close()
