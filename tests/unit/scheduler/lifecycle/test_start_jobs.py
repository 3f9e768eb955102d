"""Jobs start, and are planned."""

from __future__ import annotations

from services.bus import PLAN_UNIT
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan
from touchstone.v1 import unit_pb2


async def test_three_jobs_run_at_once_and_the_fourth_starts_when_one_ends(world: World) -> None:
    jobs = [await world.create() for _ in range(4)]
    assert [world.state(j) for j in jobs] == ["planning"] * 3 + ["pending"]
    assert world.desk.get(jobs[3]).progress.queue_position == 1
    await world.desk.cancel(ALICE, jobs[0])
    await world.settle()
    assert world.state(jobs[3]) == "planning"


async def test_a_finalizing_job_holds_no_slot(world: World) -> None:
    world.results.down = True
    jobs = [await world.create() for _ in range(4)]
    await world.planned(jobs[0])
    await world.run_all(jobs[0])
    assert world.state(jobs[0]) == "finalizing"
    assert world.state(jobs[3]) == "planning"


async def test_a_plan_that_fails_fails_the_job_with_its_reason(world: World) -> None:
    job = await world.create()
    await world.planned(job, unit_pb2.Plan(error="Failed to load DEMO dataset: it is missing."))
    assert world.desk.get(job).reason == "Failed to load DEMO dataset: it is missing."
    assert world.state(job) == "failed"


async def test_a_retry_on_changed_data_fails_and_mixes_nothing(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    changed = plan()
    changed.tasks[0].item_set = "other"
    await world.settle()
    await world.planned(job, changed)
    assert world.state(job) == "failed"
    assert "have changed" in world.desk.get(job).reason


async def test_a_retry_whose_plan_came_while_nobody_led_goes_on_at_the_next_start(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.stop()
    world.results.have = {"one": set(range(100)), "two": set(range(90))}
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
    # As the replay of RESULTS does, before anything else runs.
    await world.planned(job)
    await world.start()
    assert world.state(job) == "running"
    await world.run_all(job)
    assert world.state(job) == "completed"


async def test_a_planning_unit_that_is_still_offered_is_no_unit_of_a_running_job(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.stop()
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    offered = await world.work.released()
    world.scheduler.restore(world.store.jobs(), offered | {(job, PLAN_UNIT), (job, 10**6)}, world.work.position)
    await world.start()
    await world.run_all(job)
    assert world.state(job) == "completed"
