"""How results are packed, cut to NATS's size, and how suspects get the process for themselves."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.providers.model_size import parameters_b
from services.evaluator.tasks.base import Message, Response
from services.evaluator.units import packer as packing
from services.evaluator.units import result
from services.evaluator.units.gate import Gate
from services.evaluator.units.packer import LINGER_S, MOST_BYTES, MOST_ITEMS, Packer
from touchstone.v1 import item_result_pb2

TASK = Catalogue(None).task("demo", "sentiment")
ITEM = next(iter(TASK.items([0])))
NATS_BYTES = 1024 * 1024


class Shelf:
    """Keeps what a packer stores."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, bool, int]] = []
        self.first = asyncio.Event()

    async def store(self, items: list[item_result_pb2.ItemResult], done: bool) -> None:
        size = item_result_pb2.ItemResultBatch(items=items).ByteSize()
        self.messages.append((len(items), done, size))
        self.first.set()


def of_size(size: int) -> item_result_pb2.ItemResult:
    return item_result_pb2.ItemResult(response="x" * size)


async def test_a_message_holds_at_most_64_items_and_the_last_is_marked() -> None:
    shelf = Shelf()
    packer = Packer(150, shelf.store)
    for _ in range(150):
        packer.add(of_size(10))
    await packer.run()
    assert [(count, done) for count, done, _ in shelf.messages] == [(64, False), (64, False), (22, True)]


async def test_a_message_holds_at_most_512_kilobytes() -> None:
    shelf = Shelf()
    packer = Packer(10, shelf.store)
    for _ in range(10):
        packer.add(of_size(200 * 1024))
    await packer.run()
    assert sum(count for count, _, _ in shelf.messages) == 10
    assert all(size <= MOST_BYTES + 100 for _, _, size in shelf.messages)
    assert [done for _, done, _ in shelf.messages] == [False] * 4 + [True]


async def test_results_wait_at_most_a_quarter_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    packer = Packer(3, shelf.store)
    run = asyncio.create_task(packer.run())
    packer.add(of_size(1))
    started = time.monotonic()
    await asyncio.wait_for(shelf.first.wait(), 60)
    assert time.monotonic() - started > LINGER_S * 0.8
    assert LINGER_S == 0.25
    monkeypatch.setattr(packing, "LINGER_S", 3600.0)
    packer.add(of_size(1))
    packer.add(of_size(1))
    await asyncio.wait_for(run, 60)  # The last result waits for nothing.
    assert [(count, done) for count, done, _ in shelf.messages] == [(1, False), (2, True)]


async def test_a_unit_without_items_still_ends() -> None:
    shelf = Shelf()
    await Packer(0, shelf.store).run()
    assert [(count, done) for count, done, _ in shelf.messages] == [(0, True)]


async def test_a_flush_stores_what_waits_without_ending_the_unit() -> None:
    shelf = Shelf()
    packer = Packer(MOST_ITEMS, shelf.store)
    packer.add(of_size(1))
    await packer.flush()
    assert [(count, done) for count, done, _ in shelf.messages] == [(1, False)]


def test_the_largest_result_fits_into_a_nats_message_and_says_what_was_cut() -> None:
    item = replace(ITEM, messages=(Message("user", "ü" * 2**21),))
    response = Response("ö" * 2**22, reasoning="ä" * 2**21, finish_reason="length")
    made = result.answered(TASK, item, 0, 0, response, 1)
    assert made.ByteSize() < NATS_BYTES * 0.6
    assert "The response of 8388608 bytes was cut to 262144 for storage." in made.error
    assert "prompt" in made.error
    assert made.response == "ö" * (result.RESPONSE_BYTES // 2)


def test_scoring_sees_the_whole_response() -> None:
    response = Response("x " * 2**18 + TASK.answer(ITEM.reference), finish_reason="stop")
    made = result.answered(TASK, ITEM, 0, 0, response, 1)
    assert made.outcome == item_result_pb2.OUTCOME_ANSWERED
    assert made.prediction == ITEM.reference


def test_a_lone_surrogate_does_not_break_the_result() -> None:
    assert result.answered(TASK, ITEM, 0, 0, Response("\ud800 yes"), 1).response == "? yes"


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
    async with gate.shared():
        waiting = asyncio.create_task(gate.alone().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        async with asyncio.timeout(60), gate.shared():
            pass


@pytest.mark.parametrize(
    ("text", "billions"),
    [
        ("7.6B", 7.6),
        ("qwen2.5:7b", 7),
        ("qwen2.5-0.5b-instruct", 0.5),
        ("mixtral:8x7b", 56),
        ("gemma3:270m", 0.27),
        ("allenai/OLMo-2-1124-7B-Instruct", 7),
        ("gpt-4o", 0),
        ("mistral:latest", 0),
        ("phi3b5", 0),
    ],
)
def test_a_models_size_is_read_from_its_name(text: str, billions: float) -> None:
    assert parameters_b(text) == pytest.approx(billions)
