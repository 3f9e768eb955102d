"""When answers are scored, and what becomes of those that cannot be."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.evaluator import item_result, scoring
from services.evaluator.endpoint_calls import ItemCall
from services.evaluator.items.task import Response
from services.evaluator.pacing.pace import Rate
from services.evaluator.scoring import Scoring
from services.evaluator.units.packer import RUSH_PER_S

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


def call(packer: Packer, position: int, item: str = "") -> ItemCall:
    unit: Any = SimpleNamespace(task=SimpleNamespace(executor=None), packer=packer, identify=lambda *_: "")
    return ItemCall(unit, position, 0, item)  # type: ignore[arg-type]


def at(per_second: float) -> Rate:
    rate = Rate()
    rate.per_second = per_second
    return rate


async def test_answers_of_a_slow_endpoint_are_scored_at_once() -> None:
    packer, failed = Packer(), []
    waiting = Scoring(at(RUSH_PER_S), lambda *told: failed.append(told))
    await waiting.add(call(packer, 1), ANSWER)
    assert packer.added == [1]
    with pytest.raises(ValueError, match="broken"):
        await waiting.add(call(packer, 2, "broken"), ANSWER)
    assert not failed


async def test_answers_that_come_fast_wait_for_others_but_not_long() -> None:
    packer = Packer()
    waiting = Scoring(at(RUSH_PER_S + 1), lambda *_: None)
    for position in range(scoring.MOST_WAITING + 1):
        assert packer.added == []
        await waiting.add(call(packer, position), ANSWER)
        if position == scoring.MOST_WAITING - 1:
            assert packer.added == list(range(scoring.MOST_WAITING))
            packer.added.clear()
    await asyncio.sleep(3 * scoring.LINGER_S)
    assert packer.added == [scoring.MOST_WAITING]


async def test_one_that_cannot_be_scored_does_not_keep_others() -> None:
    packer, failed = Packer(), []
    waiting = Scoring(at(1e3), lambda one, error: failed.append((one.position, str(error))))
    for position, item in enumerate(["", "broken", ""]):
        await waiting.add(call(packer, position, item), ANSWER)
    waiting.score()
    assert (packer.added, failed) == ([0, 2], [(1, "broken")])
    await asyncio.sleep(3 * scoring.LINGER_S)
    assert packer.added == [0, 2]
