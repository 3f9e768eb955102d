"""Equal questions at the same time are answered once, and never with what was true before they were asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.results.read_queue import PARTY, Party, SharedAnswers


class Store:
    """A value with a version; computing reads it at the beginning, and ends when it is let go."""

    def __init__(self) -> None:
        self.version = 0
        self.computed = self.running = self.most = 0
        self.go = asyncio.Event()
        self.cancelled = 0

    async def compute(self) -> int:
        self.computed += 1
        self.running += 1
        self.most = max(self.most, self.running)
        seen = self.version
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return seen


async def asked(shared: SharedAnswers, store: Store, key: str = "a", user: str = "ann") -> asyncio.Task[Any]:
    task = asyncio.create_task(shared.get(key, store.compute, user))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_fifty_equal_questions_are_computed_once_and_other_ones_beside_them() -> None:
    store = Store()
    shared = SharedAnswers(lambda: store.version)
    tasks = [await asked(shared, store) for _ in range(50)]
    other = await asked(shared, store, "b")
    assert store.computed == 2
    store.go.set()
    assert await asyncio.gather(*tasks, other) == [0] * 51
    assert await shared.get("a", store.compute, "ann") == 0
    assert store.computed == 3, "nothing is remembered after the answer"


async def test_a_question_after_a_change_is_not_answered_from_before_it() -> None:
    store = Store()
    shared = SharedAnswers(lambda: store.version)
    old = await asked(shared, store)
    store.version = 1
    new = [await asked(shared, store) for _ in range(10)]
    store.version = 2
    newest = [await asked(shared, store) for _ in range(10)]
    assert store.computed == 1, "equal ones run one after the other"
    store.go.set()
    assert await old == 0
    assert await asyncio.gather(*new, *newest) == [2] * 20
    assert (store.computed, store.most) == (2, 1)


async def test_what_nobody_waits_for_any_more_ends() -> None:
    store = Store()
    shared = SharedAnswers(lambda: store.version)
    first, second = await asked(shared, store), await asked(shared, store)
    first.cancel()
    await asyncio.sleep(0.01)
    assert store.running == 1
    second.cancel()
    await asyncio.sleep(0.01)
    assert (store.running, store.cancelled) == (0, 1)
    store.go.set()
    assert await shared.get("a", store.compute, "ann") == 0


async def test_one_that_waits_goes_on_when_the_one_before_it_is_given_up() -> None:
    store = Store()
    shared = SharedAnswers(lambda: store.version)
    old = await asked(shared, store)
    store.version = 1
    new = await asked(shared, store)
    old.cancel()
    await asyncio.sleep(0.01)
    store.go.set()
    assert await asyncio.wait_for(new, 10) == 1


async def test_a_failure_goes_to_all_and_the_next_question_is_computed_anew() -> None:
    calls = 0

    async def fails() -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    shared = SharedAnswers(lambda: 0)
    found = await asyncio.gather(*(shared.get("a", fails, "ann") for _ in range(5)), return_exceptions=True)
    assert [str(one) for one in found] == ["no"] * 5
    assert calls == 1
    with pytest.raises(ValueError, match="no"):
        await shared.get("a", fails, "ann")
    assert calls == 2


async def test_who_waits_for_an_answer_is_known_where_it_is_computed() -> None:
    store = Store()
    shared = SharedAnswers(lambda: store.version)
    parties: list[Party] = []

    async def compute() -> int:
        parties.append(PARTY.get())
        return await store.compute()

    tasks = [asyncio.create_task(shared.get("a", compute, user)) for user in ("ann", "bob", "ann")]
    for _ in range(5):
        await asyncio.sleep(0)
    assert [party.users for party in parties] == [["ann", "bob"]]
    store.go.set()
    await asyncio.gather(*tasks)
    assert PARTY.get(None) is None
