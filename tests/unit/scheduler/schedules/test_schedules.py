"""Schedules: one job for a time through crashes, limits, owners, problems."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.bus import Level
from services.errors import ConflictError, InvalidRequestError, LimitReachedError, NotFoundError, PermissionDeniedError
from services.rpc import Identity
from services.scheduler.requests.visibility import Reads
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB, World, evaluator, spec
from touchstone.v1 import job_pb2, schedule_pb2

MINUTE, DAY = 60.0, 24 * 3600.0


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(absent_after_s=10 * DAY))
    made.fleet.hear(evaluator(), made.time)
    await made.start()
    yield made
    await made.stop()


async def scheduled(
    world: World, who: Identity = ALICE, cron: str = "* * * * *", request_id: str = "", **of_spec: object
) -> schedule_pb2.Schedule:
    wanted = spec(**of_spec)  # type: ignore[arg-type]
    return await world.timetable.create(who, request_id, cron, "", wanted, "nightly")


async def pass_time(world: World, seconds: float) -> None:
    """The timetable looks at the clock once."""
    world.time += seconds
    runner = world.running_timetable()
    await world.settle()
    await world.end(runner)


def made_jobs(world: World) -> list[job_pb2.Job]:
    return [job.message for job in world.registry.jobs.values() if job.message.spec.schedule_id]


async def test_each_time_makes_one_low_job_of_the_owner(world: World) -> None:
    schedule = await scheduled(world)
    assert world.time < schedule.next_at.ToSeconds() <= world.time + MINUTE
    await pass_time(world, 1.0)
    assert made_jobs(world) == []
    for count in (1, 2, 3):
        await pass_time(world, MINUTE)
        assert len(made_jobs(world)) == count
    assert {(job.owner, job.spec.schedule_id) for job in made_jobs(world)} == {("alice", schedule.schedule_id)}
    assert {job.spec.priority for job in made_jobs(world)} == {job_pb2.PRIORITY_LOW}
    (now,) = world.timetable.list(ALICE, "")
    assert now.last_job_id == made_jobs(world)[-1].job_id
    assert now.last_problem == ""


async def test_missed_times_are_made_up_for_by_one_job(world: World) -> None:
    await scheduled(world)
    await pass_time(world, 3 * DAY)
    await pass_time(world, 1.0)
    assert len(made_jobs(world)) == 1


async def test_a_crash_between_a_job_and_its_schedule_makes_no_second_job(world: World) -> None:
    schedule = await scheduled(world)
    world.time += MINUTE
    world.schedules.crash = True
    runner = world.running_timetable()
    await world.settle()
    assert runner.done(), "the write did not come back"
    assert runner.exception() is not None
    (before,) = made_jobs(world)
    await world.stop()

    world.schedules.crash = False
    world.lead()
    world.scheduler.restore(world.store.jobs(), set(), 0)
    await world.timetable.load()
    await pass_time(world, 1.0)
    (after,) = made_jobs(world)
    assert after.job_id == before.job_id
    assert world.timetable.list(ALICE, "")[0].last_job_id == before.job_id
    assert world.timetable.list(ALICE, "")[0].next_at.ToSeconds() > schedule.next_at.ToSeconds()


async def test_a_full_queue_is_told_and_tried_at_the_next_time(world: World) -> None:
    await scheduled(world)
    waiting = [await world.create(ALICE, endpoint="stub") for _ in range(13)]
    await pass_time(world, MINUTE)
    assert made_jobs(world) == []
    assert world.timetable.list(ALICE, "")[0].last_problem == "Queue is full. Please try again later."
    await world.desk.cancel(ALICE, waiting[-1])
    await pass_time(world, MINUTE)
    assert len(made_jobs(world)) == 1
    assert world.timetable.list(ALICE, "")[0].last_problem == ""


async def test_a_time_without_room_on_the_disk_is_made_up_for(world: World) -> None:
    schedule = await scheduled(world)
    world.registry.room.level, world.registry.room.sentence = Level.LOW, "The disk is almost full."
    for _ in range(3):
        await pass_time(world, MINUTE)
    assert made_jobs(world) == []
    (now,) = world.timetable.list(ALICE, "")
    assert now.last_problem == "The disk is almost full."
    assert now.next_at == schedule.next_at

    world.registry.room.level, world.registry.room.sentence = Level.ENOUGH, ""
    await pass_time(world, 1.0)
    await pass_time(world, 1.0)
    assert len(made_jobs(world)) == 1
    (now,) = world.timetable.list(ALICE, "")
    assert now.last_problem == ""
    assert now.next_at.ToSeconds() > world.time


async def test_a_spec_that_no_job_may_have_is_refused_at_once(world: World) -> None:
    with pytest.raises(InvalidRequestError, match="Endpoint other not found"):
        await scheduled(world, endpoint="other")
    with pytest.raises(InvalidRequestError, match="label"):
        await world.timetable.create(ALICE, "", "* * * * *", "", spec(), "x" * 81)
    named = spec()
    named.schedule_id = "a"
    with pytest.raises(InvalidRequestError, match="schedule_id"):
        await world.timetable.create(ALICE, "", "* * * * *", "", named, "")
    with pytest.raises(InvalidRequestError, match="schedule_id"):
        await world.desk.create(ALICE, "", named)


async def test_schedules_are_listed_by_the_project_of_their_jobs(world: World) -> None:
    for project in (0, 7, 7, 8):
        wanted = spec()
        wanted.project_id = project
        await world.timetable.create(ALICE, "", "* * * * *", "", wanted, "")
    assert [one.spec.project_id for one in world.timetable.list(ALICE, "", 7)] == [7, 7]
    assert len(world.timetable.list(ALICE, "")) == 4
    assert world.timetable.list(BOB, "bob", 7) == []
    with pytest.raises(InvalidRequestError):
        world.timetable.list(ALICE, "", -1)


async def test_only_an_admin_raises_the_priority(world: World) -> None:
    with pytest.raises(PermissionDeniedError, match="above low"):
        await scheduled(world, priority=job_pb2.PRIORITY_NORMAL)
    assert (await scheduled(world, ADMIN, priority=job_pb2.PRIORITY_HIGH)).spec.priority == job_pb2.PRIORITY_HIGH


async def test_a_user_has_twenty_schedules_and_another_user_all_of_theirs(world: World) -> None:
    for _ in range(20):
        await scheduled(world)
    with pytest.raises(LimitReachedError, match="20 schedules"):
        await scheduled(world)
    await scheduled(world, BOB)


async def test_a_repeated_request_makes_one_schedule_and_another_body_none(world: World) -> None:
    first = await scheduled(world, request_id="r1")
    assert (await scheduled(world, request_id="r1")).schedule_id == first.schedule_id
    with pytest.raises(ConflictError, match="r1"):
        await scheduled(world, request_id="r1", cron="5 * * * *")
    assert (await scheduled(world, BOB, request_id="r1")).schedule_id != first.schedule_id


async def test_the_owner_and_an_admin_delete_and_nobody_else(world: World) -> None:
    first, second = await scheduled(world), await scheduled(world)
    with pytest.raises(PermissionDeniedError, match="belongs to alice"):
        await world.timetable.delete(BOB, first.schedule_id)
    await world.timetable.delete(ALICE, first.schedule_id)
    await world.timetable.delete(ADMIN, second.schedule_id)
    with pytest.raises(NotFoundError):
        await world.timetable.delete(ALICE, first.schedule_id)
    await pass_time(world, MINUTE)
    assert made_jobs(world) == []
    assert await world.schedules.load() == []


async def test_others_see_schedules_without_their_webhook_url_or_not_at_all(world: World) -> None:
    wanted = spec()
    wanted.webhook_url = "https://hooks.example.com/secret"
    await world.timetable.create(ALICE, "", "* * * * *", "", wanted, "")
    (seen,) = world.timetable.list(BOB, "")
    assert not seen.spec.webhook_url
    assert world.timetable.list(ALICE, "alice")[0].spec.webhook_url
    assert world.timetable.list(BOB, "bob") == []
    world.reads = Reads(own=True)
    world.lead()
    await world.timetable.load()
    assert world.timetable.list(BOB, "") == []
    assert len(world.timetable.list(ADMIN, "")) == 1
    with pytest.raises(NotFoundError):
        await world.timetable.delete(BOB, seen.schedule_id)


async def test_a_paused_schedule_makes_no_jobs_and_makes_up_for_none_through_a_crash(world: World) -> None:
    schedule = await scheduled(world)
    paused = await world.timetable.set_paused(ALICE, schedule.schedule_id, True)
    assert (paused.paused_at.seconds > 0, paused.HasField("next_at")) == (True, False)
    await pass_time(world, 10 * MINUTE)
    await world.timetable.load()
    # The clock was ahead, so that every next time is computed again.
    world.wrong_by = -30.0
    await pass_time(world, 1.0)
    assert made_jobs(world) == []
    with pytest.raises(PermissionDeniedError):
        await world.timetable.set_paused(BOB, schedule.schedule_id, False)
    resumed = await world.timetable.set_paused(ADMIN, schedule.schedule_id, False)
    assert not resumed.HasField("paused_at")
    await pass_time(world, 1.0)
    assert made_jobs(world) == []
    await pass_time(world, MINUTE)
    assert len(made_jobs(world)) == 1


async def test_a_schedule_that_is_paused_while_its_job_is_created_stays_paused(world: World) -> None:
    schedule = await scheduled(world)
    world.time += MINUTE
    async with world.registry.lock:
        runner = world.running_timetable()
        await world.settle()
        await world.timetable.set_paused(ALICE, schedule.schedule_id, True)
    await world.settle()
    await world.end(runner)
    assert len(made_jobs(world)) == 1
    (now,) = world.timetable.list(ALICE, "")
    assert (now.HasField("paused_at"), now.HasField("next_at"), now.last_job_id) == (
        True,
        False,
        made_jobs(world)[0].job_id,
    )
