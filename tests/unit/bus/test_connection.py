"""The first connection to NATS ends in time, whatever becomes of the tries."""

from __future__ import annotations

import asyncio

import pytest

from services.bus import connection


async def test_work_that_loses_cancellations_ends_at_the_deadline() -> None:
    lost = 0

    async def tries() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                lost += 1
                if lost > 2:
                    raise

    now = asyncio.get_running_loop().time
    began = now()
    with pytest.raises(TimeoutError):
        await connection._until(began + 0.05, tries())
    assert lost == 3
    assert now() - began < 5


async def test_what_has_failed_before_the_deadline_is_told() -> None:
    async def fails() -> None:
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        await connection._until(asyncio.get_running_loop().time() + 60, fails())


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    ended = asyncio.Event()

    async def tries() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = asyncio.create_task(connection._until(asyncio.get_running_loop().time() + 60, tries()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
