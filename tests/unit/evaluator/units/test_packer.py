"""How results are packed, cut to NATS's size, and how suspects get the process for themselves."""

from __future__ import annotations

import asyncio
import time

import pytest

from services.evaluator.pacing.pace import Rate
from services.evaluator.units import packer as packing
from services.evaluator.units.packer import LINGER_S, MOST_BYTES, MOST_ITEMS, RUSH_PER_S, Packer, share_parameters
from services.evaluator.units.units_in_hand import FaultError
from tests.waiting import until
from touchstone.v1 import item_result_pb2


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


async def test_a_result_that_no_message_can_hold_fails_the_job() -> None:
    packer = Packer(1, Shelf().store)
    with pytest.raises(FaultError, match="at most 1,000,000 can be stored"):
        packer.add(item_result_pb2.ItemResult(item=7, reference="x" * 1_000_001))


async def test_results_wait_at_most_twenty_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    packer = Packer(3, shelf.store)
    run = asyncio.create_task(packer.run())
    packer.add(of_size(1))
    started = time.monotonic()
    await asyncio.wait_for(shelf.first.wait(), 60)
    assert time.monotonic() - started > LINGER_S * 0.8
    assert LINGER_S == 0.02
    monkeypatch.setattr(packing, "LINGER_S", 3600.0)
    packer.add(of_size(1))
    packer.add(of_size(1))
    await asyncio.wait_for(run, 60)  # The last result waits for nothing.
    assert [(count, done) for count, done, _ in shelf.messages] == [(1, False), (2, True)]


async def test_results_wait_longer_while_calls_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, rate = Shelf(), Rate()
    packer = Packer(3, shelf.store, rate)
    run = asyncio.create_task(packer.run())
    rate.per_second = RUSH_PER_S + 1
    monkeypatch.setattr(packing, "RUSH_LINGER_S", 0.3)
    packer.add(of_size(1))
    started = time.monotonic()
    await asyncio.wait_for(shelf.first.wait(), 60)
    assert time.monotonic() - started > 0.25
    rate.per_second = RUSH_PER_S
    monkeypatch.setattr(packing, "RUSH_LINGER_S", 3600.0)
    packer.add(of_size(1))
    await until(lambda: len(shelf.messages) == 2)
    packer.add(of_size(1))
    await asyncio.wait_for(run, 60)


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


def test_long_parameters_travel_once_for_all_items_of_a_message() -> None:
    tools, others = '{"tools":["' + "x" * 300 + '"]}', '{"tools":["' + "y" * 300 + '"]}'
    texts = [tools, '{"temperature":0.0}', tools, others, ""]
    items = [item_result_pb2.ItemResult(item=place, parameters=text) for place, text in enumerate(texts)]
    batch = item_result_pb2.ItemResultBatch(items=items)
    share_parameters(batch)
    assert list(batch.parameters) == [tools, others]
    assert [(one.shared_parameters, one.parameters) for one in batch.items] == [
        (1, ""),
        (0, '{"temperature":0.0}'),
        (1, ""),
        (2, ""),
        (0, ""),
    ]
    plain = item_result_pb2.ItemResultBatch(items=items[1:2])
    before = plain.SerializeToString()
    share_parameters(plain)
    assert plain.SerializeToString() == before
