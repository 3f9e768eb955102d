"""A bounded number of questions is answered at once; the rest wait in order, or are told when to return."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from services.errors import BusyError
from services.results.waiting_lines import WaitingLine


async def started(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


class Works:
    """Works that run until they are let go; `running` is how many do."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.order: list[int] = []
        self.running = self.most = 0

    async def work(self, number: int) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        self.order.append(number)
        await self.go.wait()
        self.running -= 1
        return number


async def test_no_more_than_so_many_run_and_the_rest_follow_in_order() -> None:
    line, works = WaitingLine(2, 10, 60), Works()
    tasks = [await started(line.run(works.work(n))) for n in range(8)]
    assert works.order == [0, 1]
    works.go.set()
    assert await asyncio.gather(*tasks) == list(range(8))
    assert (works.order, works.most) == (list(range(8)), 2)


async def test_a_full_line_refuses_at_once_and_says_when_to_return() -> None:
    line, works = WaitingLine(1, 2, 60), Works()
    tasks = [await started(line.run(works.work(n))) for n in range(3)]
    with pytest.raises(BusyError) as refused:
        await line.run(works.work(3))
    assert 1 <= refused.value.retry_after_s <= 30
    assert f"Try again in {refused.value.retry_after_s} s." in refused.value.message
    works.go.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2]
    assert await line.run(works.work(4)) == 4


async def test_nobody_waits_longer_than_said_and_the_work_is_not_begun() -> None:
    line, works = WaitingLine(1, 10, 0.05), Works()
    first = await started(line.run(works.work(0)))
    with pytest.raises(BusyError):
        await line.run(works.work(1))
    works.go.set()
    assert await first == 0
    assert await line.run(works.work(2)) == 2
    assert works.order == [0, 2]


async def test_a_caller_that_leaves_frees_its_place_in_the_line_but_not_the_thread_it_uses() -> None:
    line, works = WaitingLine(1, 10, 60), Works()
    first = await started(line.run(works.work(0)))
    second = await started(line.run(works.work(1)))
    third = await started(line.run(works.work(2)))
    first.cancel()
    second.cancel()
    await asyncio.sleep(0.01)
    assert (works.order, works.running) == ([0], 1), "the work of one who left goes on, and holds its place"
    works.go.set()
    assert await third == 2
    assert works.order == [0, 2]


async def test_a_turn_that_comes_as_its_caller_leaves_goes_to_the_next() -> None:
    line, works = WaitingLine(1, 10, 60), Works()
    works.go.set()
    for _ in range(20):
        tasks = [await started(line.run(works.work(n))) for n in range(5)]
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert await asyncio.wait_for(line.run(works.work(9)), 10) == 9


async def test_a_failure_goes_to_its_caller_and_frees_the_place() -> None:
    async def fails() -> None:
        raise ValueError("no")

    line = WaitingLine(1, 0, 1)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await line.run(fails())
