"""Jobs through a provider's batch API: where their units go, whose slots they take, what is told of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.bus import BatchRecord, BatchStage, batched_endpoint, batches_endpoint
from services.errors import InvalidRequestError
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, dataset_spec, evaluator
from touchstone.v1 import job_pb2, suite_pb2, unit_pb2


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(running_jobs=1, batch_jobs=2))
    made.fleet.hear(evaluator(), made.time)
    made.datasets.put()
    await made.start()
    yield made
    await made.stop()


def rows_plan(items: int = 100, unit_size: int = 60) -> unit_pb2.Plan:
    task = job_pb2.TaskPlan(task="rows", items=items, unit_size=unit_size, item_set="rows", version="1")
    task.data.MergeFrom(suite_pb2.DataSource(dataset="d", revision="r"))
    return unit_pb2.Plan(tasks=[task], receipt=job_pb2.Receipt(configuration="c"))


async def create(world: World, batched: bool = True) -> str:
    wanted = dataset_spec()
    wanted.provider_batch = batched
    job = await world.desk.create(ALICE, "", wanted)
    await world.settle()
    return job.job_id


def record(job_id: str, unit: int, stage: BatchStage, **changes: int | str) -> BatchRecord:
    return BatchRecord(job_id, 1, unit, "stub", "mark", stage, label="OpenAI", **changes)  # type: ignore[arg-type]


def step(world: World, job_id: str) -> str:
    return world.desk.get(job_id).progress.current_step


async def test_batches_take_slots_of_their_own(world: World) -> None:
    batches = [await create(world) for _ in range(3)]
    plain = [await create(world, batched=False) for _ in range(2)]
    states = [world.state(job) for job in (*batches, *plain)]
    assert states == ["planning", "planning", "pending", "planning", "pending"]


async def test_all_units_go_out_beside_the_endpoints_calls(world: World) -> None:
    job_id = await create(world)
    await world.planned(job_id, rows_plan(1000, 60))
    assert len([key for key in world.work.offered if key[0] == job_id]) == 17
    plain = await create(world, batched=False)
    await world.planned(plain, rows_plan(40, 4))
    assert [key for key in world.work.offered if key[0] == plain], "rows in batches are no calls under way"


async def test_an_exclusive_endpoint_keeps_no_batch_waiting() -> None:
    world = World()
    world.fleet.hear(evaluator(exclusive=True), world.time)
    capacity = world.fleet.capacity(batches_endpoint("stub"), world.time)
    assert (capacity.evaluators, capacity.exclusive) == (1, False)
    assert world.fleet.capacity(batches_endpoint("other"), world.time).evaluators == 0
    assert batched_endpoint(batches_endpoint("a-b")) == "a-b"
    assert batched_endpoint("a-b") == ""


async def test_an_endpoint_of_another_kind_is_refused_with_what_to_do(world: World) -> None:
    other = evaluator()
    other.endpoints[0].kind = "ollama"
    world.fleet.hear(other, world.time)
    with pytest.raises(InvalidRequestError, match="kind openai or gemini, or leave provider_batch out") as refused:
        await create(world)
    assert refused.value.field == "spec.provider_batch"


async def test_the_step_tells_what_the_provider_tells(world: World) -> None:
    job_id = await create(world)
    await world.planned(job_id, rows_plan())
    assert step(world, job_id) == "Sending the rows to the provider's batch API"
    world.scheduler.on_batch(record(job_id, 0, BatchStage.SENDING))
    assert step(world, job_id) == "Sending the rows to OpenAI's batch API"
    world.scheduler.on_batch(record(job_id, 0, BatchStage.WAITING, done=20, failed=1))
    world.scheduler.on_batch(record(job_id, 1, BatchStage.WRITING, words="OpenAI has no room yet"))
    assert step(world, job_id) == "Waiting for OpenAI's batch: 21 of 100 done"
    world.scheduler.on_batch(record(job_id, 1, BatchStage.WAITING, done=9))
    assert step(world, job_id) == "Waiting for OpenAI's 2 batches: 30 of 100 done"
    world.scheduler.on_batch(record(job_id, 0, BatchStage.READING, done=60))
    world.report(job_id, 0, items=40, done=False)
    assert step(world, job_id) == "Waiting for OpenAI's 2 batches: 69 of 100 done"
    world.report(job_id, 0, items=20, done=True)
    assert step(world, job_id) == "Waiting for OpenAI's batch: 69 of 100 done"
    world.scheduler.on_batch(BatchRecord(job_id, 2, 1, "stub", "mark", BatchStage.WAITING, done=40))
    assert "69 of 100" in step(world, job_id), "of another attempt"
