"""Judges of completed jobs: each is started once, whatever comes in between."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from services.errors import ConflictError, InvalidRequestError, LimitReachedError, TouchstoneError
from services.scheduler.requests.judges import Judges
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, evaluator, spec
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import dataset_pb2, job_pb2

RUBRIC = json.dumps(TIPS)


def _judge(**more: object) -> job_pb2.Judge:
    return job_pb2.Judge(**{"endpoint": "stub", "model": "m1", "rubric": RUBRIC, **more})  # type: ignore[arg-type]


def _spec(*judges: job_pb2.Judge) -> job_pb2.JobSpec:
    made = spec()
    made.judges.extend(judges)
    return made


@pytest.fixture
async def world() -> World:
    made = World(Limits(pending_per_owner=2))
    made.datasets.put()
    made.fleet.hear(evaluator(), made.time)
    return made


async def _completed(world: World, *judges: job_pb2.Judge) -> str:
    await world.start()
    job = await world.desk.create(ALICE, "", _spec(*judges))
    await world.settle()
    await world.planned(job.job_id)
    await world.run_all(job.job_id)
    await world.settle()
    assert world.state(job.job_id) == "completed"
    return job.job_id


async def _look(world: World, looks: int = 1, judges: Judges | None = None) -> list[job_pb2.Job]:
    """The jobs that judge, after leaderships, or `judges`, have looked so often for judges to start."""
    for _ in range(looks):
        running = asyncio.create_task((judges or Judges(world.registry, world.desk)).run())
        await world.settle()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    return [job for job in world.desk.list("") if job.spec.HasField("judging")]


async def test_each_judge_of_a_completed_job_starts_once(world: World) -> None:
    job_id = await _completed(world, _judge(), _judge(rubric=json.dumps(CORRECT), repeats=3, budget_usd=0))
    made = await _look(world, looks=3)
    assert len(made) == 2
    assert {job.owner for job in made} == {ALICE.user}
    assert sorted(job.spec.judging.repeats for job in made) == [1, 3]
    assert {job.spec.judging.job_id for job in made} == {job_id}
    assert {json.loads(job.spec.dataset.scoring.rubric)["version"] for job in made} == {"tip-v1", "qa-v1"}
    await world.stop()


async def test_a_leadership_ends_that_is_cancelled_while_a_call_loses_cancellations(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _completed(world, _judge())
    asked = asyncio.Event()

    async def losing(*args: Any) -> job_pb2.Job:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        raise InvalidRequestError("That judge cannot start.")

    monkeypatch.setattr(world.desk, "create_judge", losing)
    running = asyncio.create_task(Judges(world.registry, world.desk).run())
    await asked.wait()
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=10)
    assert done
    await world.stop()


async def test_a_judge_that_waits_while_its_job_runs_again_never_starts(world: World) -> None:
    world.registry.limits = Limits(running_jobs=1)
    job_id = await _completed(world, _judge())
    busy = await world.desk.create(ALICE, "", spec())
    await world.settle()
    (judge,) = await _look(world)
    assert (world.state(busy.job_id), judge.state) == ("planning", job_pb2.Job.STATE_PENDING)
    world.registry.jobs[job_id].message.incomplete = True
    await world.desk.retry(ALICE, job_id)
    # Before anybody has cancelled it, as after a crash, there is room for it.
    await world.desk.cancel(ALICE, busy.job_id)
    await world.settle()
    assert (world.state(judge.job_id), world.state(job_id)) == ("pending", "planning")
    (dropped,) = await _look(world)
    assert (dropped.job_id, world.state(judge.job_id)) == (judge.job_id, "cancelled")
    assert dropped.reason == f"Job {job_id} runs again. Its answers get a new judge once it has completed."
    assert (world.store.events[-1].actor, world.store.events[-1].action) == ("scheduler", "cancelled")
    await world.planned(job_id)
    await world.run_all(job_id)
    await world.settle()
    made = await _look(world, looks=2)
    assert len(made) == 2
    # A user who retries the old one learns the same.
    await world.desk.retry(ALICE, judge.job_id)
    await _look(world)
    assert world.state(judge.job_id) == "cancelled"
    await world.stop()


async def test_a_job_that_runs_again_while_its_judges_start_gets_all_of_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await _completed(world, _judge(), _judge(rubric=json.dumps(CORRECT)))
    prepare = world.results.prepare_judging

    async def retried_meanwhile(judging: job_pb2.Judging) -> dataset_pb2.Dataset:
        monkeypatch.undo()
        world.registry.jobs[job_id].message.incomplete = True
        await world.desk.retry(ALICE, job_id)
        return await prepare(judging)

    monkeypatch.setattr(world.results, "prepare_judging", retried_meanwhile)
    judges = Judges(world.registry, world.desk)
    await _look(world, judges=judges)
    await world.planned(job_id)
    await world.run_all(job_id)
    await world.settle()
    made = await _look(world, looks=2, judges=judges)
    whole = [job.spec.dataset.scoring.rubric for job in made if job.spec.judging.attempt == 2]
    assert len(set(whole)) == len(whole) == 2
    await world.stop()


async def test_a_judge_that_a_user_started_stays_when_its_job_runs_again(world: World) -> None:
    world.registry.limits = Limits(running_jobs=1)
    job_id = await _completed(world)
    asked = job_pb2.JobSpec(endpoint="stub", model="m1", judging=job_pb2.Judging(job_id=job_id, rubric=RUBRIC))
    busy = await world.desk.create(ALICE, "", spec())
    await world.settle()
    judge = await world.desk.create(ALICE, "mine", asked)
    world.registry.jobs[job_id].message.incomplete = True
    await world.desk.retry(ALICE, job_id)
    await _look(world)
    await world.desk.cancel(ALICE, busy.job_id)
    assert world.state(judge.job_id) == "pending"
    await world.stop()


async def test_a_judge_waits_for_the_results_service_and_for_room_in_the_queue(world: World) -> None:
    await _completed(world, _judge())
    world.results.down = True
    assert await _look(world) == []
    world.results.down = False
    waiting: list[str] = []
    with suppress(LimitReachedError):
        while len(waiting) < 20:
            waiting.append(await world.create())
    assert len(waiting) < 20
    assert await _look(world) == []
    await world.desk.cancel(ALICE, waiting[-1])
    assert len(await _look(world, looks=2)) == 1
    await world.stop()


async def test_a_judge_is_asked_for_again_after_a_failure_that_nobody_expected(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _completed(world, _judge())

    async def fails(judging: job_pb2.Judging) -> None:
        raise TouchstoneError("Internal error. The service's log has the details.")

    running = Judges(world.registry, world.desk)
    with monkeypatch.context() as patched:
        patched.setattr(world.results, "prepare_judging", fails)
        assert await _look(world, judges=running) == []
    assert len(await _look(world, judges=running)) == 1
    await world.stop()


async def test_a_judge_that_was_deleted_does_not_start_again(world: World) -> None:
    await _completed(world, _judge())
    (made,) = await _look(world)
    await world.desk.cancel(ALICE, made.job_id)
    with suppress(asyncio.TimeoutError):
        await world.desk.delete(ALICE, made.job_id)
    assert await _look(world, looks=2) == []
    await world.stop()


async def test_a_job_that_has_not_completed_has_no_judge_yet_and_cannot_be_judged(world: World) -> None:
    job = await world.desk.create(ALICE, "", _spec(_judge()))
    assert await _look(world) == []
    judging = spec()
    judging.ClearField("work")
    judging.judging.job_id, judging.judging.rubric = job.job_id, RUBRIC
    with pytest.raises(ConflictError, match="has not completed"):
        await world.desk.create(ALICE, "", judging)


@pytest.mark.parametrize(
    ("judges", "said"),
    [
        ([_judge(rubric="")], r"needs a rubric"),
        ([_judge(rubric='{"version": "v"}')], r"between 1 and 12 criteria"),
        ([_judge(endpoint="gone")], r"gone"),
        ([_judge(model="")], r"Name a model"),
        ([_judge(repeats=11)], r"spec\.judges\[0\]\.repeats must be between 1 and 10"),
        ([_judge(budget_usd=1)], r"budget needs max_tokens"),
        ([_judge()] * 4, r"spec\.judges"),
        ([_judge(), _judge(repeats=3, budget_usd=1)], r"given twice as the same judge, as number 1 and 2\. Leave one"),
    ],
)
async def test_a_judge_that_could_not_start_is_refused_with_its_job(
    world: World, judges: list[job_pb2.Judge], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said) as refused:
        await world.desk.create(ALICE, "", _spec(*judges))
    assert refused.value.field.startswith("spec.judges")


async def test_a_job_that_judges_takes_its_rows_from_the_judged_job_alone(world: World) -> None:
    made = spec()
    made.judging.job_id, made.judging.rubric = "x", RUBRIC
    with pytest.raises(InvalidRequestError, match="Leave suite, judges and reuse out"):
        await world.desk.create(ALICE, "", made)
