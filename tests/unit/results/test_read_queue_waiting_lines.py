"""A bounded number of questions is answered at once; the rest wait in order, or are told when to return."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from services.errors import BusyError
from services.results.read_queue import Party, WaitingLine


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
    tasks = [await started(line.run(works.work(n), Party("ann"))) for n in range(8)]
    assert works.order == [0, 1]
    works.go.set()
    assert await asyncio.gather(*tasks) == list(range(8))
    assert (works.order, works.most) == (list(range(8)), 2)


async def test_a_full_line_refuses_at_once_and_says_when_to_return() -> None:
    line, works = WaitingLine(1, 2, 60), Works()
    tasks = [await started(line.run(works.work(n), Party("ann"))) for n in range(3)]
    with pytest.raises(BusyError) as refused:
        await line.run(works.work(3), Party("ann"))
    assert 1 <= refused.value.retry_after_s <= 30
    assert f"Try again in {refused.value.retry_after_s} s." in refused.value.message
    works.go.set()
    assert await asyncio.gather(*tasks) == [0, 1, 2]
    assert await line.run(works.work(4), Party("ann")) == 4


async def test_nobody_waits_longer_than_said_and_the_work_is_not_begun() -> None:
    line, works = WaitingLine(1, 10, 0.05), Works()
    first = await started(line.run(works.work(0), Party("ann")))
    with pytest.raises(BusyError):
        await line.run(works.work(1), Party("ann"))
    works.go.set()
    assert await first == 0
    assert await line.run(works.work(2), Party("ann")) == 2
    assert works.order == [0, 2]


async def test_a_caller_that_leaves_frees_its_place_in_the_line_but_not_the_thread_it_uses() -> None:
    line, works = WaitingLine(1, 10, 60), Works()
    first = await started(line.run(works.work(0), Party("ann")))
    second = await started(line.run(works.work(1), Party("ann")))
    third = await started(line.run(works.work(2), Party("ann")))
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
        tasks = [await started(line.run(works.work(n), Party("ann"))) for n in range(5)]
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert await asyncio.wait_for(line.run(works.work(9), Party("ann")), 10) == 9


async def test_a_failure_goes_to_its_caller_and_frees_the_place() -> None:
    async def fails() -> None:
        raise ValueError("no")

    line = WaitingLine(1, 0, 1)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await line.run(fails(), Party("ann"))


async def test_users_take_turns_however_many_questions_one_of_them_has() -> None:
    line, works = WaitingLine(1, 100, 60), Works()
    mine = [await started(line.run(works.work(n), Party("ann"))) for n in range(6)]
    others = [
        await started(line.run(works.work(n), Party(user))) for n, user in ((10, "bob"), (11, "bob"), (20, "eve"))
    ]
    works.go.set()
    await asyncio.gather(*mine, *others)
    assert works.order.index(10) <= 2
    assert works.order.index(20) <= 4
    assert works.order.index(11) <= 6
    assert [n for n in works.order if n < 10] == list(range(6))


async def test_a_full_line_takes_a_user_with_few_questions_and_refuses_the_newest_of_the_one_with_most() -> None:
    line, works = WaitingLine(1, 4, 60), Works()
    mine = [await started(line.run(works.work(n), Party("ann"))) for n in range(5)]
    bob = await started(line.run(works.work(10), Party("bob")))
    with pytest.raises(BusyError):
        await mine[-1]
    with pytest.raises(BusyError):
        await line.run(works.work(5), Party("ann"))
    works.go.set()
    assert await asyncio.gather(*mine[:-1], bob) == [0, 1, 2, 3, 10]
    assert await line.run(works.work(6), Party("ann")) == 6


async def test_an_answer_that_several_users_wait_for_comes_at_the_first_turn_of_any() -> None:
    line, works = WaitingLine(1, 100, 60), Works()
    mine = [await started(line.run(works.work(n), Party("ann"))) for n in range(9)]
    shared = Party("ann")
    both = await started(line.run(works.work(50), shared))
    shared.join("bob")
    works.go.set()
    assert await asyncio.gather(*mine, both) == [*range(9), 50]
    assert works.order.index(50) <= 2


async def test_what_had_its_turn_before_goes_first() -> None:
    line, works = WaitingLine(1, 100, 60), Works()
    party = Party("ann")
    first = await started(line.run(works.work(0), party))
    rest = [await started(line.run(works.work(n), Party("ann"))) for n in range(1, 4)]
    second = await started(line.run(works.work(9), party))
    works.go.set()
    await asyncio.gather(first, second, *rest)
    assert works.order == [0, 9, 1, 2, 3]
