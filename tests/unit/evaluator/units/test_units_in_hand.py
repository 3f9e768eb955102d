"""The units in hand when their job ends: what was read of it before must not let later ones begin."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from services.bus import Bus, JobHeaders
from services.evaluator.plugins.contract import NotHereError
from services.evaluator.units import units_in_hand
from services.evaluator.units.units_in_hand import Hand, Held
from tests.integration.evaluator_rig import until
from touchstone.v1 import job_pb2, unit_pb2

JOB = "019aa2f0-0000-7000-8000-000000000001"
RUNNING = JobHeaders(job_pb2.Job.STATE_RUNNING, 1)
CANCELLED = JobHeaders(job_pb2.Job.STATE_CANCELLED, 1)


class Jobs:
    """A bus with one job: each read of it waits to be answered."""

    def __init__(self) -> None:
        self.reads: list[asyncio.Future[JobHeaders]] = []
        self.released: list[tuple[str, unit_pb2.Unit]] = []
        self.faults = 0

    async def release(self, endpoint: str, priority: job_pb2.Priority, unit: unit_pb2.Unit) -> None:
        self.released.append((endpoint, unit))

    async def publish_fault(self, *_: object) -> int:
        self.faults += 1
        return 1

    async def job_headers(self, job_id: str) -> JobHeaders:
        assert job_id == JOB
        self.reads.append(asyncio.get_running_loop().create_future())
        return await self.reads[-1]

    async def answer(self, headers: JobHeaders) -> None:
        """Answers the oldest read that waits."""
        await until(lambda: self.waiting)
        self.waiting[0].set_result(headers)
        await asyncio.sleep(0.01)

    @property
    def waiting(self) -> list[asyncio.Future[JobHeaders]]:
        return [read for read in self.reads if not read.done()]


class Unit:
    """A delivered unit of the job, and what became of it."""

    def __init__(self, number: int) -> None:
        self.data = unit_pb2.Unit(job_id=JOB, attempt=1, unit=number, task="sst2").SerializeToString()
        self.subject = "work"
        self.metadata = SimpleNamespace(num_delivered=1)
        self.terminated = self.acknowledged = False

    async def ack_sync(self, **_: float) -> None:
        self.acknowledged = True

    async def term(self) -> None:
        self.terminated = True


def taken(hand: Hand, unit: Unit, began: list[int]) -> asyncio.Event:
    """Takes the unit, whose work lasts until it is stopped; set when its life is over."""
    over = asyncio.Event()

    async def work(held: Held) -> None:
        began.append(held.unit.unit)
        await asyncio.Event().wait()

    assert hand.take("endpoint", cast(Msg, unit), work, lambda _: over.set()) is not None
    return over


async def test_a_state_read_before_the_cancel_lets_no_later_unit_begin() -> None:
    jobs, began = Jobs(), list[int]()
    hand = Hand(cast(Bus, cast(Any, jobs)))
    first, second = Unit(1), Unit(2)
    first_over = taken(hand, first, began)
    await asyncio.sleep(0.01)  # Its read of the job is on the way.
    hand.heard(JOB, CANCELLED)
    await jobs.answer(RUNNING)
    await jobs.answer(CANCELLED)
    await until(first_over.is_set)
    second_over = taken(hand, second, began)
    await jobs.answer(CANCELLED)
    await until(second_over.is_set)
    assert second.terminated
    assert 2 not in began


async def test_a_unit_that_comes_before_a_heard_cancel_can_be_read_is_ended_all_the_same() -> None:
    jobs, began = Jobs(), list[int]()
    hand = Hand(cast(Bus, cast(Any, jobs)))
    hand.heard(JOB, CANCELLED)  # With nothing in hand.
    await jobs.answer(RUNNING)
    unit = Unit(1)
    over = taken(hand, unit, began)
    await until(lambda: jobs.waiting)
    await jobs.answer(RUNNING)
    await until(lambda: began)
    await jobs.answer(CANCELLED)
    await until(over.is_set)
    assert unit.terminated


async def test_a_unit_whose_plugin_is_missing_goes_back_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units_in_hand, "_NOT_HERE_S", 0.01)
    jobs, over = Jobs(), asyncio.Event()
    hand, unit = Hand(cast(Bus, cast(Any, jobs))), Unit(1)

    async def work(held: Held) -> None:
        raise NotHereError("it needs the plug-in example 1.0")

    assert hand.take("endpoint", cast(Msg, unit), work, lambda _: over.set()) is not None
    await jobs.answer(RUNNING)
    await until(over.is_set)
    assert (unit.acknowledged, unit.terminated, jobs.faults) == (True, False, 0)
    # It does not look like the delivery of a crash, and nothing of it has begun.
    assert jobs.released == [("endpoint", unit_pb2.Unit.FromString(unit.data))]
