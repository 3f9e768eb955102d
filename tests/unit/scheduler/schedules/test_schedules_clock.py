"""Schedules while the clock on the wall is set: none falls silent, and no time makes two jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.scheduler.schedules import schedules
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, evaluator, spec
from touchstone.v1 import schedule_pb2

MINUTE, HOUR, DAY = 60.0, 3600.0, 24 * 3600.0


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(schedules, "_TICK_S", 0.001)
    made = World(Limits(absent_after_s=100 * DAY, pending_per_owner=1000))
    made.time = 100 * DAY + 1
    made.fleet.hear(evaluator(), made.time)
    await made.start()
    yield made
    await made.stop()


async def pass_time(world: World, seconds: float) -> None:
    """The timetable looks at the clock every few seconds of these."""
    runner = world.running_timetable()
    for _ in range(max(1, int(seconds / 20))):
        world.time += 20 if seconds >= 20 else seconds
        await asyncio.sleep(0.01)
        await world.settle()
    await world.end(runner)


def planned(world: World) -> list[int]:
    """The planned time of each job, in the order in which they were made."""
    jobs = [job for job in world.registry.jobs.values() if job.message.spec.schedule_id]
    return [int(job.request_id.rpartition(" ")[2]) for job in jobs]


async def scheduled(world: World) -> schedule_pb2.Schedule:
    return await world.timetable.create(ALICE, "", "* * * * *", "", spec(), "each minute")


async def next_at(world: World) -> float:
    (schedule,) = world.timetable.list(ALICE, "")
    return schedule.next_at.ToSeconds()


@pytest.mark.parametrize("ahead", [DAY, 3 * HOUR, 90.0, 365 * DAY])
async def test_a_clock_that_was_ahead_leaves_no_schedule_silent(world: World, ahead: float) -> None:
    await scheduled(world)
    await pass_time(world, 80)
    world.wrong_by = ahead
    await pass_time(world, 80)
    assert await next_at(world) > world.time + ahead - MINUTE
    world.wrong_by = 0
    await pass_time(world, 40)
    minutes = [MINUTE * (int(world.time / MINUTE) + number) for number in range(1, 5)]
    assert await next_at(world) == next(minute for minute in minutes if minute not in planned(world))
    made = len(planned(world))
    await pass_time(world, 200)
    assert len(planned(world)) > made
    assert len(set(planned(world))) == len(planned(world))


async def test_a_clock_that_was_ahead_when_its_scheduler_ended_is_noticed_at_the_next_start(world: World) -> None:
    world.wrong_by = DAY
    await scheduled(world)
    await pass_time(world, 80)
    await world.stop()
    world.wrong_by = 0
    world.lead()
    world.scheduler.restore(world.store.jobs(), set(), 0)
    await world.timetable.load()
    await pass_time(world, 20)
    assert world.time < await next_at(world) <= world.time + MINUTE


@pytest.mark.parametrize("behind", [2.0, 90.0, 3 * HOUR])
async def test_a_clock_that_steps_back_makes_no_time_due_twice(world: World, behind: float) -> None:
    await scheduled(world)
    await pass_time(world, 200)
    before = planned(world)
    world.wrong_by = -behind
    await pass_time(world, 200)
    world.wrong_by = 0
    await pass_time(world, 100)
    made = planned(world)
    assert made[: len(before)] == before
    assert len(set(made)) == len(made)
    assert len(made) > len(before)
