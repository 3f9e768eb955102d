"""Jobs of one request: all of them or none."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, LimitReachedError
from tests.unit.scheduler.fakes import ALICE, BOB, World, spec
from touchstone.v1 import job_pb2


def specs(*projects: int, **fields: object) -> list[job_pb2.JobSpec]:
    made = [spec(**fields) for _ in projects]  # type: ignore[arg-type]
    for one, project in zip(made, projects, strict=True):
        one.project_id = project
    return made


async def test_several_jobs_are_queued_and_start_in_the_order_of_the_request(world: World) -> None:
    jobs = await world.desk.create_all(ALICE, "", specs(1, 2, 3, 4, 5))
    assert [job.spec.project_id for job in jobs] == [1, 2, 3, 4, 5]
    await world.settle()
    states = [world.state(job.job_id) for job in jobs]
    assert states == ["planning", "planning", "planning", "pending", "pending"]
    assert [world.desk.get(job.job_id).progress.queue_position for job in jobs[3:]] == [1, 2]


async def test_where_one_is_refused_none_is_queued_and_the_refusal_names_it(world: World) -> None:
    asked = specs(1, 2)
    asked[1].suite.suite = "nope"
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create_all(ALICE, "r1", asked)
    assert refused.value.message == "m@stub: Suite nope not found. Suites: demo."
    asked = specs(1, -2)
    with pytest.raises(InvalidRequestError, match="project_id"):
        await world.desk.create_all(ALICE, "r1", asked)
    assert not world.registry.jobs
    assert not world.store.records
    assert len(await world.desk.create_all(ALICE, "r1", specs(1, 2))) == 2


async def test_without_room_for_all_none_is_queued(world: World) -> None:
    for _ in range(11):
        await world.create()
    with pytest.raises(LimitReachedError, match="room for 2 more of your jobs, not for 3"):
        await world.desk.create_all(ALICE, "", specs(1, 2, 3))
    assert len(world.registry.jobs) == 11
    assert len(await world.desk.create_all(ALICE, "", specs(1, 2))) == 2
    with pytest.raises(LimitReachedError, match="Queue is full"):
        await world.desk.create_all(ALICE, "", specs(1, 2))
    assert len(await world.desk.create_all(BOB, "", specs(1, 2))) == 2


async def test_a_repeated_request_id_gives_the_same_jobs(world: World) -> None:
    first = await world.desk.create_all(ALICE, "r1", specs(1, 2, 3))
    again = await world.desk.create_all(ALICE, "r1", specs(1, 2, 3))
    assert [job.job_id for job in again] == [job.job_id for job in first]
    with pytest.raises(ConflictError, match="already used for 3 jobs with a different request"):
        await world.desk.create_all(ALICE, "r1", specs(1, 2))
    with pytest.raises(ConflictError, match=first[2].job_id):
        await world.desk.create_all(ALICE, "r1", specs(1, 2, 4))
    with pytest.raises(ConflictError, match="already used for 3 jobs with a different request"):
        await world.create(request_id="r1")
    assert len(world.registry.jobs) == 3


async def test_a_request_of_which_a_job_is_forgotten_is_forgotten(world: World) -> None:
    first = await world.desk.create_all(ALICE, "r1", specs(1, 2))
    del world.registry.jobs[first[0].job_id]
    again = await world.desk.create_all(ALICE, "r1", specs(1, 2))
    assert {job.job_id for job in again}.isdisjoint(job.job_id for job in first)


@pytest.mark.parametrize("count", [0, 101])
async def test_too_few_and_too_many_jobs_are_refused(world: World, count: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"between 1 and 100 jobs; it holds {count}") as refused:
        await world.desk.create_all(ALICE, "", specs(*range(count)))
    assert refused.value.field == "specs"
