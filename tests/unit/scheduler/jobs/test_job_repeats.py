"""Several answers an item: what counts answers, and what counts items."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan
from touchstone.v1 import job_pb2, suite_pb2, unit_pb2


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    announced = evaluator()
    announced.suites.append(suite_pb2.Suite(suite="lm_eval", title="lm_eval", open=True))
    made.fleet.hear(announced, made.time)
    await made.start()
    yield made
    await made.stop()


def thrice(items: int = 100) -> unit_pb2.Plan:
    made = plan(items=items)
    for task in made.tasks:
        task.repeats = 3
    return made


async def test_progress_counts_answers_and_a_subset_counts_items(world: World) -> None:
    whole, part = await world.create(), await world.create()
    await world.planned(whole, thrice())
    await world.planned(part, thrice(items=50))
    assert world.desk.get(whole).progress.items_total == 600
    assert (world.desk.get(whole).subset, world.desk.get(whole).published_items) == (False, 200)
    assert (world.desk.get(part).subset, world.desk.get(part).published_items) == (True, 200)
    assert await world.run_all(whole) == 60
    assert world.desk.get(whole).progress.items_done == 600


async def test_the_share_of_errors_is_one_of_answers(world: World) -> None:
    few, many = await world.create(), await world.create()
    await world.planned(few, thrice())
    await world.planned(many, thrice())
    world.results.errors = 30
    await world.run_all(few)
    assert (world.state(few), world.desk.get(few).incomplete) == ("completed", True)
    world.results.errors = 31
    await world.run_all(many)
    assert world.state(many) == "failed"
    assert "31 of 600 items" in world.desk.get(many).reason


async def test_a_retry_runs_the_answers_that_are_missing(world: World) -> None:
    job = await world.create()
    await world.planned(job, thrice())
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    world.results.have = {"one": set(range(300)) - {7}, "two": set(range(300))}
    await world.planned(job, thrice())
    assert [list(unit.positions) for unit in world.work.offered.values()] == [[7]]


@pytest.mark.parametrize(("limit", "published", "subset"), [(0, 0, False), (100, 0, True), (100, 100, False)])
async def test_of_an_open_suites_task_a_reached_limit_is_a_part(
    world: World, limit: int, published: int, subset: bool
) -> None:
    work = job_pb2.SuiteWork(suite="lm_eval:hellaswag", limit=limit)
    job = await world.desk.create(ALICE, "", job_pb2.JobSpec(endpoint="stub", model="m", suite=work))
    await world.settle()
    made = plan(tasks=["hellaswag"])
    made.tasks[0].published_items = published
    await world.planned(job.job_id, made)
    assert world.desk.get(job.job_id).subset is subset
