"""Waiting for what happens elsewhere and sets no event in the test's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], object], within: float = 60, every: float = 0.02) -> None:
    """Waits until the condition holds. Raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(every)


async def answered(ask: Callable[[], Awaitable[T]], good: Callable[[T], object] = bool, within: float = 60) -> T:
    """Asks until the answer is good, and returns it. Raises TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not good(found := await ask()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found
