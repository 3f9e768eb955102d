"""Calls of a unit are told of before they begin, over a real NATS, and by nobody who has lost the unit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import nats.errors
import pytest
from nats.aio.msg import Msg
from nats.js.api import PubAck

from services.bus import (
    KIND_BEGUN,
    KIND_ITEMS,
    KIND_RETURNED,
    RESULTS,
    Bus,
    OvertakenError,
    ResultHeaders,
    SettingAside,
    Turn,
    connect,
    results_subject,
    stream_configs,
)
from services.evaluator.units.packer import Begun, Packer
from services.evaluator.units.units_in_hand import Held, Stop
from services.scheduler.nats.lease import Lease
from services.scheduler.nats.streams import WorkStream
from tests.nats_server import NatsServer
from touchstone.v1 import item_result_pb2, unit_pb2

JOB = "019aa2f0-0000-7000-8000-000000000001"


@pytest.fixture
async def bus(nats: NatsServer) -> AsyncIterator[Bus]:
    made = await connect(nats.url, "e1", timeout_s=20)
    await made.js.add_stream(next(config for config in stream_configs(2**24) if config.name == RESULTS))
    yield made
    await made.close()


def held(counted_until: int = 0, unit: int = 3) -> Held:
    data = unit_pb2.Unit(job_id=JOB, attempt=1, unit=unit, task="t", counted_until=counted_until).SerializeToString()
    message: Any = SimpleNamespace(data=data, metadata=SimpleNamespace(num_delivered=1))
    return Held("stub", unit_pb2.Unit.FromString(data), cast(Msg, message))


async def opened(bus: Bus, one: Held, stored: int = 0) -> Begun:
    begun = Begun(bus, one, "e1")
    await begun.open(stored)
    return begun


async def told(bus: Bus) -> list[tuple[str, int]]:
    """Kind and items of every message about unit 3, oldest first."""
    last = (await bus.js.stream_info(RESULTS)).state.last_seq
    found = [await bus.js.get_msg(RESULTS, seq=sequence) for sequence in range(1, last + 1)]
    decoded = [ResultHeaders.decode(msg.headers) for msg in found if msg.subject == results_subject(JOB, 3)]
    return [(headers.kind, headers.items) for headers in decoded]


async def answers(bus: Bus, begun: Begun | None, count: int = 1) -> None:
    batch = item_result_pb2.ItemResultBatch(job_id=JOB, attempt=1, unit=3, task="t", evaluator="e1")
    for position in range(count):
        batch.items.add(position=position, calls=1)

    async def publish(turn: Turn | None) -> int:
        return await bus.publish_items(batch, delivery=1, done=False, turn=turn)

    if begun is None:
        await publish(None)
    else:
        await begun.publish(publish)


async def test_each_call_is_told_of_before_it_begins_and_those_of_a_moment_together(bus: Bus) -> None:
    begun = await opened(bus, held(), stored=2)
    assert await begun.note()
    assert all(await asyncio.gather(*(begun.note() for _ in range(4))))
    await answers(bus, begun, 3)
    assert await begun.note()
    messages = await told(bus)
    assert messages[0] == (KIND_BEGUN, 3)
    assert [items for kind, items in messages if kind == KIND_BEGUN][-1] == 8
    assert messages[-2:] == [(KIND_ITEMS, 3), (KIND_BEGUN, 8)]
    assert len(messages) <= 5, "four that begin together need no four messages"


async def test_nobody_calls_for_a_unit_that_was_returned_meanwhile(bus: Bus) -> None:
    one = held()
    begun = await opened(bus, one)
    assert await begun.note()
    await bus.publish_returned(JOB, 1, 3, 2, counted=True)
    assert not await begun.note()
    assert one.stopped.result() is Stop.OVERTAKEN
    await answers(bus, begun)
    assert not await begun.note(), "answers that are kept all the same do not win the unit back"
    assert (await told(bus))[-1] == (KIND_ITEMS, 1)


async def test_answers_that_come_too_late_show_that_the_unit_is_lost(bus: Bus) -> None:
    one = held()
    begun = await opened(bus, one)
    assert await begun.note()
    await bus.publish_returned(JOB, 1, 3, 2, counted=True)
    await answers(bus, begun)
    assert one.stopped.done()
    assert not await begun.note()


async def test_who_gets_a_unit_of_which_another_still_tells_lets_it_go(bus: Bus) -> None:
    first = await opened(bus, held())
    assert await first.note()
    returned = await bus.publish_returned(JOB, 1, 3, 2, counted=True)
    await answers(bus, None)
    one = held(counted_until=returned)
    later = await opened(bus, one)
    assert not await later.note()
    assert one.stopped.result() is Stop.OVERTAKEN


async def test_a_unit_that_is_released_again_goes_on_after_what_is_known_of_it(bus: Bus) -> None:
    first = await opened(bus, held())
    assert await first.note()
    returned = await bus.publish_returned(JOB, 1, 3, 2, counted=True)
    other = await opened(bus, held(unit=4))
    assert await other.note(), "messages of other units are in nobody's way"
    again = await opened(bus, held(counted_until=returned))
    assert await again.note()
    assert not await first.note()


async def test_whoever_closes_units_hears_of_each_call_that_began_and_none_begins_after(bus: Bus) -> None:
    """As the scheduler does before a job with a budget ends early."""
    one, other = held(), held(unit=4)
    begun, idle = await opened(bus, one), await opened(bus, other)
    assert await begun.note()
    read = (await bus.last_result(JOB, 3))[0]
    assert all(await asyncio.gather(begun.note(), begun.note()))
    await answers(bus, begun)
    work = WorkStream(bus, cast(Lease, SimpleNamespace(held=True)), SettingAside(bus, "scheduler"))
    heard = await work.close(JOB, 1, [3, 4], read)
    assert {(told.unit, told.headers.kind) for told in heard[-2:]} == {(3, KIND_RETURNED), (4, KIND_RETURNED)}
    assert [told.headers.items for told in heard if told.headers.kind == KIND_BEGUN][-1] == 3
    assert [told.headers.items for told in heard if told.headers.kind == KIND_ITEMS] == [1]
    assert all(told.sequence > read for told in heard)
    assert [await begun.note(), await idle.note()] == [False, False]
    assert one.stopped.result() is other.stopped.result() is Stop.OVERTAKEN
    assert await work.close(JOB, 1, [], read + 100) == []


@pytest.mark.parametrize("remembered_s", [120, 0.1])
async def test_a_message_whose_answer_was_lost_is_found_stored(bus: Bus, remembered_s: float) -> None:
    """Also when it is sent again after the server has forgotten the ids that it has seen."""
    config = (await bus.js.stream_info(RESULTS)).config
    config.duplicate_window = remembered_s
    await bus.js.update_stream(config)
    unit = held().unit
    turn = Turn(0, "name.0")
    position = await bus.publish_begun(unit, "e1", 1, turn)
    await asyncio.sleep(0.3)
    assert await bus.publish_begun(unit, "e1", 1, turn) == position
    assert len(await told(bus)) == 1
    with pytest.raises(OvertakenError):
        await bus.publish_begun(unit, "e2", 1, Turn(0, "other.0"))


async def test_a_message_of_answers_that_is_sent_again_is_stored_once(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the acknowledgement was lost: answers of a job without a budget have no turn."""
    publish = bus.js.publish
    acks: list[PubAck] = []

    async def loses_the_first_answer(*args: Any, **kwargs: Any) -> PubAck:
        acks.append(await publish(*args, **kwargs))
        if len(acks) == 1:
            raise nats.errors.TimeoutError
        return acks[-1]

    monkeypatch.setattr(bus.js, "publish", loses_the_first_answer)
    packer = Packer.of(held(), 2, bus, "e1")
    for position in range(2):
        packer.add(item_result_pb2.ItemResult(position=position, calls=1))
        await packer.flush()
    assert [ack.duplicate for ack in acks] == [None, True, None]
    assert await told(bus) == [(KIND_ITEMS, 1), (KIND_ITEMS, 1)]
