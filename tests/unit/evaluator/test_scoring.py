"""When answers are scored, and what becomes of those that cannot be."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from services.evaluator import item_result
from services.evaluator.endpoint_calls import ItemCall
from services.evaluator.items.task import Response
from services.evaluator.scoring import MOST_WAITING, Scoring

ANSWER = Response(text="4")


class Packer:
    def __init__(self) -> None:
        self.added: list[Any] = []

    def add(self, result: Any) -> None:
        self.added.append(result)


@pytest.fixture(autouse=True)
def _scored(monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(task: Any, item: Any, position: int, *_: Any) -> int:
        if item == "broken":
            raise ValueError("broken")
        return position

    monkeypatch.setattr(item_result, "answered", answered)


def call(packer: Packer, position: int, item: str = "", executor: ThreadPoolExecutor | None = None) -> ItemCall:
    unit: Any = SimpleNamespace(task=SimpleNamespace(executor=executor), packer=packer, identify=lambda *_: "")
    return ItemCall(unit, position, 0, item)  # type: ignore[arg-type]


def scoring(failed: list[tuple[int, str]]) -> Scoring:
    return Scoring(lambda one, error: failed.append((one.position, str(error))))


async def test_what_is_ready_goes_out_before_answers_are_scored_one_in_each_turn_of_the_loop() -> None:
    packer = Packer()
    waiting = scoring([])
    seen: list[int] = []
    for position in range(3):
        await waiting.add(call(packer, position), ANSWER)
        asyncio.get_running_loop().call_soon(lambda: seen.append(len(packer.added)))
    assert packer.added == []
    await asyncio.sleep(0)
    assert seen == [1, 1, 1]
    assert packer.added == [0]
    for count in (2, 3):
        await asyncio.sleep(0)
        assert packer.added == list(range(count))
    await waiting.add(call(packer, 3), ANSWER)
    await asyncio.sleep(0)
    assert packer.added == [0, 1, 2, 3]


async def test_no_more_than_32_answers_wait_however_fast_they_come() -> None:
    packer, waiting = Packer(), scoring([])
    for position in range(100):
        await waiting.add(call(packer, position), ANSWER)
        assert position + 1 - len(packer.added) <= MOST_WAITING
    assert packer.added == list(range(100 - MOST_WAITING))


async def test_one_that_cannot_be_scored_does_not_keep_others() -> None:
    packer, failed = Packer(), []  # type: ignore[var-annotated]
    waiting = scoring(failed)
    for position, item in enumerate(["", "broken", ""]):
        await waiting.add(call(packer, position, item), ANSWER)
    waiting.score()
    assert (packer.added, failed) == ([0, 2], [(1, "broken")])
    await asyncio.sleep(0)
    assert packer.added == [0, 2]


async def test_the_answer_of_a_plug_ins_scorer_is_there_at_once() -> None:
    packer = Packer()
    with ThreadPoolExecutor(1) as executor:
        waiting = scoring([])
        await waiting.add(call(packer, 1, executor=executor), ANSWER)
        assert packer.added == [1]
        with pytest.raises(ValueError, match="broken"):
            await waiting.add(call(packer, 2, "broken", executor), ANSWER)
