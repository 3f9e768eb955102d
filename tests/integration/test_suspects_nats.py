"""What counts as a crash of an evaluator by its unit, over a real NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services import bus
from services.evaluator.units.suspects import Suspects
from tests.nats_server import NatsServer

UNIT = ("11111111-2222-4333-8444-555555555555", 1, 7)


@asynccontextmanager
async def process(nats: NatsServer) -> AsyncIterator[Suspects]:
    """An evaluator's process: its connection goes with it."""
    connection = await bus.connect(nats.url, "test")
    await connection.ensure(64 * 1024**2)
    yield Suspects(connection)
    await connection.close()


async def test_a_process_that_went_with_its_unit_counts_once_for_each_beginning(nats: NatsServer) -> None:
    for crashes in range(3):
        async with process(nats) as one:
            assert await one.crashes(UNIT) == crashes
            assert await one.crashes(UNIT) == crashes, "a look counts nothing"
            await one.begin(UNIT)
    async with process(nats) as next_one:
        assert await next_one.crashes(UNIT) == 3
        assert await next_one.crashes((*UNIT[:2], 8)) == 0


async def test_a_restart_of_everything_counts_nothing(nats: NatsServer) -> None:
    for _ in range(3):
        async with process(nats) as one:
            assert await one.crashes(UNIT) == 0
            await one.begin(UNIT)
        await asyncio.to_thread(nats.kill)
        await asyncio.to_thread(nats.restart)


async def test_a_unit_that_ended_in_order_or_is_still_run_counts_nothing(nats: NatsServer) -> None:
    async with process(nats) as other:
        async with process(nats) as one:
            await one.begin(UNIT)
            assert await other.crashes(UNIT) == 0, "its process is there"
            await one.end(UNIT)
        assert await other.crashes(UNIT) == 0
