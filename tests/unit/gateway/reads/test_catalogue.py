"""Answers of other services are remembered for a while."""

from __future__ import annotations

import asyncio

import pytest

from services.errors import UnavailableError
from services.gateway.reads.catalogue import Remembered


class Service:
    """Answers 1, 2, 3 …, once `free` is set."""

    def __init__(self) -> None:
        self.asked = 0
        self.silent = False
        self.free = asyncio.Event()
        self.free.set()

    async def ask(self) -> list[int]:
        self.asked += 1
        number = self.asked
        await self.free.wait()
        if self.silent:
            raise UnavailableError("The service is silent.")
        return [number]


async def test_a_late_value_is_given_at_once_while_it_is_asked_for_again() -> None:
    service = Service()
    value = Remembered(service.ask, ttl_s=0, late_s=60)
    assert await value.get() == [1]
    service.free.clear()
    assert [await value.get(), await value.get()] == [[1], [1]]
    await asyncio.sleep(0)
    assert service.asked == 2, "it is asked for again once, not by each request"
    service.free.set()
    await asyncio.sleep(0.01)
    assert await value.get() == [2]


async def test_a_late_value_stays_while_the_service_is_silent() -> None:
    service = Service()
    value = Remembered(service.ask, ttl_s=0, late_s=60)
    await value.get()
    service.silent = True
    for _ in range(2):
        assert await value.get() == [1]
        await asyncio.sleep(0.01)


async def test_a_value_that_is_too_old_is_waited_for() -> None:
    service = Service()
    value = Remembered(service.ask, ttl_s=0)
    assert [await value.get(), await value.get()] == [[1], [2]]
    service.silent = True
    with pytest.raises(UnavailableError):
        await value.get()
