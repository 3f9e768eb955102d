"""What users are shown of each other's jobs, with reads open and closed, and who may raise a priority."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.errors import InvalidRequestError, NotFoundError, PermissionDeniedError
from services.scheduler.requests.visibility import Reads
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB, World, dataset_spec, evaluator, spec
from touchstone.v1 import job_pb2, queue_pb2

URL = "https://hooks.example.com/?token=abc"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(reads=Reads(own=True))
    made.fleet.hear(evaluator(), made.time)
    await made.start()
    yield made
    await made.stop()


def job(owner: str = "alice") -> job_pb2.Job:
    wanted = spec()
    wanted.webhook_url = URL
    return job_pb2.Job(
        job_id="j1",
        owner=owner,
        spec=wanted,
        state=job_pb2.Job.STATE_PENDING,
        progress=job_pb2.Progress(queue_position=3, current_step="Waiting for an evaluator that serves stub"),
    )


def test_open_reads_show_everything_but_where_the_owner_is_told() -> None:
    seen = Reads().job(BOB, job())
    assert (seen.owner, seen.spec.model, seen.spec.webhook_url) == ("alice", "m", "")
    assert Reads().job(ALICE, job()).spec.webhook_url == URL
    assert Reads().job(ADMIN, job()).spec.webhook_url == URL
    assert [one.spec.webhook_url for one in Reads().jobs(BOB, [job(), job("bob")])] == ["", URL]


def test_closed_reads_hide_jobs_of_others_from_users_alone() -> None:
    reads = Reads(own=True)
    with pytest.raises(NotFoundError, match="Benchmark job j1 not found"):
        reads.job(BOB, job())
    assert reads.jobs(BOB, [job(), job("bob")]) == [job("bob")]
    assert reads.jobs(ADMIN, [job(), job("bob")]) == [job(), job("bob")]


def test_a_closed_queue_shows_places_and_nothing_of_what_stands_there() -> None:
    queue = queue_pb2.Queue(pending=[job(), job("bob")], slots=3)
    first, second = Reads(own=True).queue(BOB, queue).pending
    assert first == job_pb2.Job(
        state=job_pb2.Job.STATE_PENDING,
        progress=job_pb2.Progress(queue_position=3, current_step="Waiting in the queue, place 3"),
    )
    assert second == job("bob")
    assert list(Reads(own=True).queue(ADMIN, queue).pending) == list(queue.pending)
    assert Reads().queue(BOB, queue).pending[0].owner == "alice"


async def test_what_cannot_be_read_can_be_neither_stopped_nor_taken_from(world: World) -> None:
    job_id = await world.create(ALICE)
    with pytest.raises(NotFoundError):
        await world.desk.cancel(BOB, job_id)
    with pytest.raises(NotFoundError):
        await world.desk.retry(BOB, job_id)
    with pytest.raises(NotFoundError):
        await world.desk.visible(BOB, job_id)
    wanted = spec()
    wanted.reuse.job_id = job_id
    with pytest.raises(NotFoundError):
        await world.desk.create(BOB, "", wanted)
    await world.desk.visible(ALICE, job_id)
    await world.desk.cancel(ADMIN, job_id)


async def test_evaluators_are_not_told_the_url(world: World) -> None:
    wanted = spec()
    wanted.webhook_url = URL
    made = await world.desk.create(ALICE, "", wanted)
    await world.settle()
    await world.planned(made.job_id)
    assert world.work.offered
    assert {unit.spec.webhook_url for unit in world.work.offered.values()} == {""}
    assert world.desk.get(made.job_id).spec.webhook_url == URL


async def test_a_url_inside_the_network_is_refused_with_the_job(world: World) -> None:
    wanted = spec()
    wanted.webhook_url = "http://169.254.169.254/latest/meta-data/"
    with pytest.raises(InvalidRequestError, match="not a public address") as refused:
        await world.desk.create(ALICE, "", wanted)
    assert refused.value.field == "spec.webhook_url"


async def test_jobs_are_listed_by_project(world: World) -> None:
    for project in (0, 7, 7):
        wanted = spec()
        wanted.project_id = project
        await world.desk.create(ALICE, "", wanted)
    assert [one.spec.project_id for one in world.desk.list("", 7)] == [7, 7]
    assert len(world.desk.list("alice")) == 3
    assert world.desk.list("alice", 8) == []
    with pytest.raises(InvalidRequestError, match="project_id must be 0 or more"):
        world.desk.list("", -1)


async def test_a_queue_of_one_project_keeps_the_places_of_the_whole_one() -> None:
    world = World(Limits(running_jobs=1))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    for project in (7, 8, 7, 8):
        wanted = spec()
        wanted.project_id = project
        await world.desk.create(ALICE, "", wanted)
        world.time += 1
    await world.settle()
    whole, eight = world.desk.queue(), world.desk.queue(8)
    assert (len(whole.running), [job.progress.queue_position for job in whole.pending]) == (1, [1, 2, 3])
    assert list(eight.running) == []
    assert [job.progress.queue_position for job in eight.pending] == [1, 3]
    assert [job.spec.project_id for job in world.desk.queue(7).running] == [7]
    assert world.desk.queue(9).slots == whole.slots
    with pytest.raises(InvalidRequestError):
        world.desk.queue(-1)
    await world.stop()


async def test_a_suites_usual_priority_is_the_highest_and_any_lower_one_may_be_asked_for(world: World) -> None:
    low, normal, high = job_pb2.PRIORITY_LOW, job_pb2.PRIORITY_NORMAL, job_pb2.PRIORITY_HIGH
    for priority, stored in ((None, high), (low, low), (normal, normal), (high, high)):
        assert (await world.desk.create(ALICE, "", spec(priority=priority))).spec.priority == stored
    dataset = job_pb2.JobSpec(
        endpoint="stub", model="m", dataset=job_pb2.DatasetWork(dataset_id="ds"), priority=job_pb2.PRIORITY_HIGH
    )
    with pytest.raises(PermissionDeniedError, match="above normal"):
        await world.desk.create(ALICE, "", dataset)


@pytest.mark.parametrize(
    ("field", "value"), [("priority", 9), ("priority", -1), ("mode", 99), ("project_id", -1), ("time_limit_s", -1)]
)
async def test_values_that_no_field_has_are_refused(world: World, field: str, value: int) -> None:
    wanted = spec()
    setattr(wanted, field, value)
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    assert refused.value.field == f"spec.{field}"


async def test_with_closed_reads_nobody_runs_another_users_dataset(world: World) -> None:
    world.datasets.put(owner="alice")
    with pytest.raises(NotFoundError, match="not found"):
        await world.desk.create(BOB, "", dataset_spec())
    assert (await world.desk.create(ALICE, "", dataset_spec())).spec.dataset.name == "rows.jsonl"
    assert (await world.desk.create(ADMIN, "", dataset_spec())).spec.dataset.name == "rows.jsonl"
