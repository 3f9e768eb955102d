"""A suspect is asked alone."""

from __future__ import annotations

import asyncio

from services.evaluator.units.suspects import Gate


async def test_a_suspect_waits_for_those_inside_and_keeps_others_out() -> None:
    gate = Gate()
    order: list[str] = []
    leave = asyncio.Event()

    async def shared(name: str) -> None:
        async with gate.shared():
            order.append(name)
            await leave.wait()

    async def alone() -> None:
        async with gate.alone():
            order.append("alone")
            await asyncio.sleep(0.05)
            order.append("alone ends")

    tasks = [asyncio.create_task(shared("first"))]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(alone()), asyncio.create_task(shared("second"))]
    await asyncio.sleep(0.02)
    assert order == ["first"]
    leave.set()
    await asyncio.gather(*tasks)
    assert order == ["first", "alone", "alone ends", "second"]


async def test_a_suspect_that_gives_up_waiting_opens_the_gate() -> None:
    gate = Gate()
    order: list[str] = []

    async def alone() -> None:
        async with gate.alone():
            order.append("alone")

    async def shared() -> None:
        async with gate.shared():
            order.append("shared")

    async with gate.shared():
        suspect = asyncio.create_task(alone())
        await asyncio.sleep(0)
        later = asyncio.create_task(shared())
        await asyncio.sleep(0.02)
        assert order == [], "the suspect waits, and keeps the later one out"
        suspect.cancel()
        async with asyncio.timeout(60):
            await later
        assert suspect.cancelled()
        assert order == ["shared"]
    async with asyncio.timeout(60):
        await alone()
    assert order == ["shared", "alone"]
