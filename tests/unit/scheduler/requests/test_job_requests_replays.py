"""Jobs that ask items of a completed one again."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.words import replays
from tests.unit.scheduler.fakes import ALICE, BOB, World
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_UNPARSED
from touchstone_client.specs import rerun_spec, rescore_spec


async def completed(world: World) -> job_pb2.Job:
    job_id = await world.create()
    await world.planned(job_id)
    await world.run_all(job_id)
    await world.settle()
    assert world.state(job_id) == "completed"
    return world.registry.view(world.registry.find(job_id))


async def test_a_replay_is_an_ordinary_job_that_names_the_old_one(world: World) -> None:
    await world.start()
    old = await completed(world)
    made = await world.desk.create(BOB, "r1", replays.spec_of(old, 3))
    assert made.spec.replays_job_id == old.job_id
    assert made.spec.suite.limit == 2, "of two tasks"
    assert (made.spec.model, made.spec.endpoint, made.spec.sampling) == (
        old.spec.model,
        old.spec.endpoint,
        old.spec.sampling,
    )
    assert not made.spec.HasField("reuse")
    assert (await world.desk.create(BOB, "r1", replays.spec_of(old, 3))).job_id == made.job_id
    await world.stop()


async def test_only_what_a_completed_job_asked_is_replayed(world: World) -> None:
    await world.start()
    old = await completed(world)
    other = replays.spec_of(old)
    other.sampling.temperature = 0.9
    with pytest.raises(InvalidRequestError, match="asks as job"):
        await world.desk.create(ALICE, "", other)
    waiting = world.registry.view(world.registry.find(await world.create()))
    with pytest.raises(ConflictError, match=r"has not completed\. Replay it once it has\.$"):
        await world.desk.create(ALICE, "", replays.spec_of(waiting))
    await world.desk.cancel(ALICE, waiting.job_id)
    with pytest.raises(ConflictError, match=r"Replay it once it has\. A retry runs the rest\.$"):
        await world.desk.create(ALICE, "", replays.spec_of(waiting))
    unknown = replays.spec_of(old)
    unknown.replays_job_id = "0f3b6c2a-9d8e-4f71-b5a0-c4d2e6f81357"
    with pytest.raises(NotFoundError):
        await world.desk.create(ALICE, "", unknown)
    await world.stop()


async def test_a_replays_answers_are_scored_and_asked_again(world: World) -> None:
    await world.start()
    old = await completed(world)
    replay = await world.desk.create(ALICE, "", replays.spec_of(old, 3))
    await world.planned(replay.job_id)
    await world.run_all(replay.job_id)
    await world.settle()
    replay = world.registry.view(world.registry.find(replay.job_id))
    for spec in (rescore_spec(replay), rerun_spec(replay, [OUTCOME_UNPARSED])):
        made = await world.desk.create(ALICE, "", spec)
        assert (made.spec.replays_job_id, made.spec.reuse.job_id) == (old.job_id, replay.job_id)
    other = rescore_spec(old)
    other.replays_job_id = replay.job_id
    with pytest.raises(InvalidRequestError, match="is a replay"):
        await world.desk.create(ALICE, "", other)
    await world.stop()
