"""Schedules while the clock on the wall is set: none falls silent, and no time makes two jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scheduler import timetable
from services.scheduler.cron import Cron
from services.scheduler.due import next_time, note
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, evaluator, spec
from touchstone.v1 import schedule_pb2

MINUTE, HOUR, DAY = 60.0, 3600.0, 24 * 3600.0


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(timetable, "_TICK_S", 0.001)
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
    jobs = [job for job in world.board.jobs.values() if job.message.spec.schedule_id]
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


CRONS = ("* * * * *", "*/7 * * * *", "5 3 * * *", "0 0 * * MON", "30 2 * * *")
STEPS = st.lists(
    st.tuples(
        st.floats(1, 3 * HOUR),
        st.one_of(st.just(0.0), st.floats(-3 * DAY, 3 * DAY), st.sampled_from([HOUR, -HOUR, -1.0, DAY, -DAY])),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(cron=st.sampled_from(CRONS), zone=st.sampled_from(["UTC", "Europe/Zurich"]), steps=STEPS)
def test_whatever_the_clock_does_no_time_comes_twice_and_none_is_far_away(
    cron: str, zone: str, steps: list[tuple[float, float]]
) -> None:
    """A schedule as the timetable keeps it: it looks again when the clock shows less than before."""
    times, schedule = Cron(cron, zone), schedule_pb2.Schedule()
    right, seen = 1_792_800_000.0, 0.0
    due = next_time(times, right, schedule.done)
    made: list[float] = []
    for lasts, wrong_by in [*steps, (HOUR, 0.0)]:
        end = right + lasts
        while right < end:
            now = right + wrong_by
            if now < seen:
                due = min(due, next_time(times, now, schedule.done))
            seen = now
            if due <= now:
                made.append(due)
                note(times, due, schedule)
                due = next_time(times, now, schedule.done)
            # Nothing happens before the next time, or the next step of the clock.
            right = min(end, max(right + 0.25, due - wrong_by))
    assert len(set(made)) == len(made)
    assert len(schedule.done) <= len(steps) * 2 + 3
    first = next_time(times, right, schedule.done)
    assert due <= first, "the clock is right, and the next time that made no job is waited for"


def test_times_that_follow_each_other_are_kept_as_one_span() -> None:
    times, schedule = Cron("*/5 * * * *", "UTC"), schedule_pb2.Schedule()
    moments = [1_792_800_000.0 + 300 * number for number in range(1, 500)]
    for moment in moments:
        note(times, moment, schedule)
    assert [(span.first, span.last) for span in schedule.done] == [(moments[0], moments[-1])]
    assert next_time(times, moments[0] - 1, schedule.done) == moments[-1] + 300
    assert all(later - earlier == 300 for earlier, later in pairwise(moments))
