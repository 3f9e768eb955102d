"""What time and a full disk do to jobs."""

from __future__ import annotations

import asyncio

import pytest

from services.bus import PLAN_UNIT, Level
from services.errors import NoRoomError
from services.scheduler.lifecycle import maintenance
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan


async def test_the_time_limit_fails_the_job_and_frees_its_slot() -> None:
    world = World(Limits(job_time_s=60, running_jobs=1))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, following = await world.create(), await world.create()
    await world.planned(job)
    world.time += 61
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert world.state(job) == "failed"
    assert world.desk.get(job).reason == (
        "Job execution failed: Resource limits exceeded. Stopped after 1 minute with 0 of 200 items done. "
        "A retry runs the rest."
    )
    assert world.state(following) == "planning"
    await world.stop()


async def test_time_without_a_scheduler_does_not_count_towards_the_limit() -> None:
    world = World(Limits(job_time_s=60))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job)
    world.time += 20
    await world.look()
    await world.stop()
    for _ in range(2):
        world.time += 3600
        world.lead()
        world.fleet.hear(evaluator(), world.time)
        world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
        await world.start()
        world.time += 15
        world.fleet.hear(evaluator(), world.time)
        await world.look()
        assert world.state(job) == "running"
        await world.stop()
    assert world.desk.get(job).progress.elapsed_s == pytest.approx(50)
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
    await world.start()
    world.time += 11
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert world.state(job) == "failed"
    await world.stop()


async def test_a_unit_that_left_work_without_being_done_is_released_again(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    world.report(job, 0, items=1, done=False)
    lost = next(key for key in world.work.offered if key[1] == 1)
    del world.work.offered[lost]
    for _ in range(2):
        world.time += 16
        world.fleet.hear(evaluator(), world.time)
        await world.look()
    assert lost in world.work.offered
    assert world.work.offered[lost].begun, "some of its answers may be stored"
    assert not world.work.offered[job, 0].begun


async def test_planning_that_takes_too_long_fails_and_frees_its_slot() -> None:
    world = World(Limits(planning_s=60, running_jobs=1))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, following = await world.create(), await world.create()
    world.time += 61
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert (world.state(job), world.state(following)) == ("failed", "planning")
    assert "not read within 1 minute" in world.desk.get(job).reason
    await world.stop()


def set_room(world: World, level: Level) -> None:
    world.registry.room.level = level
    world.registry.room.sentence = "The disk is full." if level else ""
    world.registry.wake.set()


async def test_a_low_disk_refuses_new_jobs_and_retries_and_holds_the_queue(world: World) -> None:
    cancelled = await world.create(request_id="first")
    await world.desk.cancel(ALICE, cancelled)
    running = [await world.create() for _ in range(3)]
    waiting = await world.create()
    set_room(world, Level.LOW)
    with pytest.raises(NoRoomError, match=r"The disk is full\."):
        await world.create()
    with pytest.raises(NoRoomError):
        await world.desk.retry(ALICE, cancelled)
    assert await world.create(request_id="first") == cancelled, "a request that made a job before is answered"
    assert world.desk.queue().notice == "The disk is full."

    await world.planned(running[0])
    await world.run_all(running[0])
    assert world.state(running[0]) == "completed", "running jobs go on"
    assert world.state(waiting) == "pending"

    set_room(world, Level.ENOUGH)
    await world.settle()
    assert world.state(waiting) == "planning"
    assert world.desk.queue().notice == ""


async def test_a_change_that_a_full_disk_refuses_names_the_disk(world: World) -> None:
    job = await world.create()
    set_room(world, Level.FULL)
    world.store.fenced = True
    with pytest.raises(NoRoomError, match=r"The disk is full\."):
        await world.desk.cancel(ALICE, job)


async def test_a_full_disk_pauses_running_jobs(world: World) -> None:
    job = await world.create()
    set_room(world, Level.FULL)
    await world.planned(job)
    assert not [unit for _, unit in world.work.offered if unit != PLAN_UNIT]
    set_room(world, Level.ENOUGH)
    await world.settle()
    assert await world.run_all(job) == 20
    assert world.state(job) == "completed"


async def test_time_on_a_full_disk_counts_towards_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_TICK_S", 0.001)
    world = World(Limits(job_time_s=60, planning_s=60, absent_after_s=1e9))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, planning = await world.create(), await world.create()
    await world.planned(job)
    await asyncio.sleep(0.02)

    set_room(world, Level.FULL)
    for _ in range(10):
        world.time += 100
        await asyncio.sleep(0.005)
    assert (world.state(job), world.state(planning)) == ("running", "planning")
    assert world.desk.get(job).progress.elapsed_s < 30
    assert world.desk.get(job).progress.current_step == "Paused: the disk is full"

    set_room(world, Level.ENOUGH)
    # With room both limits count again.
    async with asyncio.timeout(10):
        while (world.state(job), world.state(planning)) != ("failed", "failed"):
            world.time += 61
            await asyncio.sleep(0.02)
    await world.stop()


async def test_a_job_waits_for_its_plugin_and_fails_when_none_comes() -> None:
    world = World(Limits(planning_s=60))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    made = plan()
    for task in made.tasks:
        task.plugin = "example 1.0"
    await world.planned(job, made)
    assert world.work.offered.keys() & {(job, unit) for unit in range(20)} == set()
    step = world.desk.get(job).progress.current_step
    assert step == "Waiting for an evaluator that serves stub and has the plug-in example 1.0"

    world.time += 50
    able = evaluator()
    able.plugins.add(package="example", version="1.0").parts.add(part="suite", name="demo")
    world.fleet.hear(able, world.time)
    await world.look()
    assert (job, 0) in world.work.offered

    for _ in range(2):
        world.time += 50
        world.fleet.hear(evaluator(), world.time)
        await world.look()
    assert world.state(job) == "running", "it has had the plug-in in between"
    world.time += 50
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert world.desk.get(job).reason == (
        "No running evaluator that serves stub has had the plug-in example 1.0 for 1 minute. Install it where such an "
        "evaluator runs, restart that evaluator, then retry the job."
    )
    await world.stop()
