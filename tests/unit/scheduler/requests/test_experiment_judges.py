"""Judges that a further call of an experiment names again: nothing is judged, or paid, twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.errors import ConflictError
from services.scheduler.jobs.job import Job
from tests.unit.scheduler.fakes import ADMIN, World
from tests.unit.scheduler.requests.test_experiments import JUDGE, MODELS, _complete, _fleet, _ids, _look, _run, _world
from touchstone.v1 import job_pb2

ONE: dict[str, Any] = {"models": MODELS[:1]}
ASKED = job_pb2.Sampling(max_tokens=50)


def _judge(budget_usd: float = 0.0, repeats: int = 0) -> job_pb2.Judge:
    return job_pb2.Judge(endpoint="ollama", model="latecomer", sampling=ASKED, budget_usd=budget_usd, repeats=repeats)


@pytest.fixture
async def world() -> World:
    return _world()


async def _judged(world: World, judge: job_pb2.Judge) -> tuple[str, str]:
    """An experiment of one model, completed, and the judge's job, which has been admitted."""
    await world.start()
    (job_id,) = _ids(await _run(world, judge, **ONE))
    await _complete(world, job_id)
    (judging,) = await _look(world)
    return job_id, judging.job_id


async def test_a_changed_budget_alone_judges_nothing_again(world: World) -> None:
    job_id, judging = await _judged(world, _judge())
    await _complete(world, judging)
    assert _ids(await _run(world, _judge(5.0), **ONE)) == [job_id]
    assert [job.job_id for job in await _look(world)] == [judging]
    assert (world.state(judging), world.desk.get(judging).spec.budget_usd) == ("completed", 0.0)
    assert [judge.budget_usd for judge in world.desk.get(job_id).spec.judges] == [5.0]
    await world.stop()


async def test_a_judge_that_stopped_at_its_budget_goes_on_with_a_higher_one(world: World) -> None:
    _, judging = await _judged(world, _judge(1.0))
    job = world.registry.jobs[judging]
    await world.desk.cancel(ADMIN, judging)
    job.message.progress.cost_usd = 0.95
    job.message.plan.add(task="rows", most_cost_usd=0.1)
    await _run(world, _judge(1.0), **ONE)
    assert world.state(judging) == "cancelled"
    await _run(world, _judge(2.0), **ONE)
    assert (job.message.attempt, job.message.spec.budget_usd) == (2, 2.0)
    assert [one.job_id for one in await _look(world)] == [judging]
    await world.stop()


async def test_a_judge_that_waits_gets_the_new_budget_and_one_that_runs_keeps_its_own() -> None:
    world = _world(running_jobs=1)
    await world.start()
    first, second = _ids(await _run(world, _judge(1.0)))
    for job_id in (first, second):
        await _complete(world, job_id)
    runs, waits = sorted(await _look(world), key=lambda job: job.state, reverse=True)
    assert (world.state(runs.job_id), world.state(waits.job_id)) == ("planning", "pending")
    await _run(world, _judge(2.0))
    assert world.desk.get(waits.job_id).spec.budget_usd == 2.0
    assert world.desk.get(runs.job_id).spec.budget_usd == 1.0
    stored = {job.id: job.message.spec for job in world.store.jobs()}
    assert (stored[waits.job_id].budget_usd, stored[first].judges[0].budget_usd) == (2.0, 2.0)
    assert len(await _look(world)) == 2
    await world.stop()


async def test_a_judge_that_failed_runs_again_by_the_same_call_unless_its_answers_are_replaced(world: World) -> None:
    job_id, judging = await _judged(world, JUDGE)
    await world.desk.cancel(ADMIN, judging)
    await _run(world, **ONE)
    assert world.state(judging) == "cancelled"
    await _run(world, JUDGE, **ONE)
    assert world.desk.get(judging).attempt == 2
    await world.desk.cancel(ADMIN, judging)
    world.registry.jobs[job_id].message.incomplete = True
    await _run(world, JUDGE, **ONE)
    assert (world.desk.get(job_id).attempt, world.state(judging)) == (2, "cancelled")
    await world.stop()


async def test_other_repeats_are_refused_with_what_to_do(world: World) -> None:
    job_id, judging = await _judged(world, _judge())
    assert _ids(await _run(world, _judge(repeats=1), **ONE)) == [job_id]
    for check_only in (True, False):
        with pytest.raises(ConflictError, match=r"each answer once in .* asks for 3 times\. Ask for the same again"):
            await _run(world, _judge(repeats=3), check_only=check_only, **ONE)
    assert [job.job_id for job in await _look(world)] == [judging]
    await world.stop()


async def test_a_judge_added_to_old_jobs_does_not_start_their_earlier_judges_again() -> None:
    world = _world(keep_finished_s=100)
    job_id, judging = await _judged(world, JUDGE)
    await _complete(world, judging)
    world.results.old = {one: world.desk.get(one) for one in (job_id, judging)}
    world.time += 200
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert not world.registry.jobs
    await _run(world, JUDGE, _judge(), **ONE)
    (made,) = await _look(world)
    assert made.spec.sampling.max_tokens == 50
    (stored,) = [job for job in world.store.jobs() if job.id == job_id]
    assert (stored.earlier_judges, len(stored.message.spec.judges)) == (1, 2)
    stored.message.state, stored.message.incomplete = job_pb2.Job.STATE_COMPLETED, True
    stored.retry(world.time)
    assert stored.earlier_judges == 0
    await world.stop()


async def test_no_crash_while_old_jobs_are_forgotten_starts_a_judge_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _world(keep_finished_s=100)
    _, judging = await _judged(world, JUDGE)
    await _complete(world, judging)
    # As a scheduler that starts reads them: in any order.
    world.registry.jobs = dict(reversed(world.registry.jobs.items()))
    forgotten: list[Job] = []

    async def forget(job: Job) -> None:
        forgotten.append(job)

    monkeypatch.setattr(world.store, "forget", forget)
    world.time += 200
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert [job.id == judging for job in forgotten] == [False, True]
    await world.stop()


async def test_a_deleted_judge_is_known_as_long_as_what_it_judged() -> None:
    world = _world(keep_finished_s=100)
    await world.start()
    first, second = _ids(await _run(world, JUDGE))
    await _complete(world, first)
    await world.desk.cancel(ADMIN, second)
    (judge,) = await _look(world)
    await world.desk.cancel(ADMIN, judge.job_id)
    await asyncio.wait_for(world.desk.delete(ADMIN, judge.job_id), 10)
    world.time += 80
    await world.desk.retry(ADMIN, second)
    world.time += 80
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert judge.job_id in world.registry.deleted
    await world.stop()


async def test_a_call_says_which_deleted_judges_judge_no_more(world: World) -> None:
    job_id, judging = await _judged(world, _judge())
    await _complete(world, judging)
    assert not (await _run(world, _judge(), **ONE)).deleted_judges
    await asyncio.wait_for(world.desk.delete(ADMIN, judging), 10)
    for check_only in (True, False):
        made = await _run(world, JUDGE, _judge(), check_only=check_only)
        assert [(one.judge, list(one.job_ids)) for one in made.deleted_judges] == [(1, [job_id])]
    world.registry.jobs[job_id].message.incomplete = True
    # Its answers are replaced, and judged as others.
    assert not (await _run(world, _judge(), **ONE)).deleted_judges
    await world.stop()
