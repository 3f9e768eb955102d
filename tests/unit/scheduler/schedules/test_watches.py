"""Watches: what their runs ask, and what cannot be watched."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.scheduler.requests.visibility import Reads
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, BOB, World, evaluator, spec
from touchstone.v1 import job_pb2, schedule_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

MINUTE = 60.0


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(absent_after_s=864_000), reads=Reads(own=True))
    made.fleet.hear(evaluator(), made.time)
    reference = job_pb2.Job(job_id="old", owner="alice", spec=spec(), state=job_pb2.Job.STATE_COMPLETED)
    reference.spec.suite.limit, reference.spec.suite.repeats = 50, 2
    reference.spec.sampling.temperature = 0.7
    reference.spec.labels["why"] = "reference"
    made.results.old["old"] = reference
    await made.start()
    yield made
    await made.stop()


def request(**fields: object) -> pb.StartWatchRequest:
    usual = {"reference_job_id": "old", "cron": "* * * * *", "items": 3}
    return pb.StartWatchRequest(**(usual | fields))  # type: ignore[arg-type]


async def pass_time(world: World, seconds: float = MINUTE) -> None:
    world.time += seconds
    runner = world.running_timetable()
    await world.settle()
    await world.end(runner)


def runs(world: World) -> list[job_pb2.Job]:
    return [job.message for job in world.registry.jobs.values() if job.message.spec.HasField("watching")]


async def cancel_last(world: World) -> None:
    await world.desk.cancel(ALICE, runs(world)[-1].job_id)


async def test_runs_ask_all_canaries_in_turn_and_then_again(world: World) -> None:
    schedule = await world.watches.start(ALICE, request())
    for _ in range(3):
        await pass_time(world)
        await cancel_last(world)
    asked = [([c.item for c in run.spec.watching.canaries], run.spec.watching.start) for run in runs(world)]
    assert asked == [([0, 1, 2], 0), ([3], 3), ([0, 1, 2], 4)]
    assert {(run.spec.schedule_id, *run.spec.suite.tasks) for run in runs(world)} == {(schedule.schedule_id, "one")}
    assert {(run.spec.suite.limit, run.spec.suite.repeats) for run in runs(world)} == {(0, 0)}
    assert runs(world)[0].spec.labels["why"] == "reference"


async def test_a_crash_between_run_and_schedule_asks_the_same_once(world: World) -> None:
    await world.watches.start(ALICE, request())
    before = schedule_pb2.Schedule()
    before.CopyFrom(next(iter(await world.schedules.load())))
    await pass_time(world)
    await world.schedules.put(before)
    await world.timetable.load()
    await pass_time(world, 1.0)
    assert [run.spec.watching.start for run in runs(world)] == [0]
    await cancel_last(world)
    await pass_time(world)
    assert [run.spec.watching.start for run in runs(world)] == [0, 3]


async def test_no_run_begins_before_the_last_one_has_ended(world: World) -> None:
    await world.watches.start(ALICE, request())
    await pass_time(world)
    await pass_time(world)
    assert len(runs(world)) == 1
    (shown,) = world.timetable.list(ALICE, "")
    assert shown.last_problem == f"Its last run, job {runs(world)[0].job_id}, has not ended yet."
    assert (len(shown.spec.watching.canaries), shown.spec.watching.total) == (0, 4)


async def test_no_run_begins_without_the_reference(world: World) -> None:
    """Its answers could be compared with nothing, and each would cost something."""
    await world.watches.start(ALICE, request())
    reference = world.results.old.pop("old")
    await pass_time(world)
    assert runs(world) == []
    (shown,) = world.timetable.list(ALICE, "")
    assert "old not found" in shown.last_problem
    world.results.old["old"] = reference
    await pass_time(world)
    assert [run.spec.watching.start for run in runs(world)] == [0]


async def test_a_silent_results_service_holds_up_no_run(world: World) -> None:
    await world.watches.start(ALICE, request())
    world.results.down = True
    await pass_time(world)
    assert len(runs(world)) == 1


async def test_another_model_or_endpoint_can_be_watched(world: World) -> None:
    schedule = await world.watches.start(ALICE, request(model="other", request_id="r1"))
    assert (schedule.spec.model, schedule.spec.watching.error) == ("other", 0.01)
    again = await world.watches.start(ALICE, request(model="other", request_id="r1"))
    assert again.schedule_id == schedule.schedule_id


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"reference_job_id": ""}, InvalidRequestError, "Name the job"),
        ({"reference_job_id": "none"}, NotFoundError, "not found"),
        ({"again_job_id": "old"}, InvalidRequestError, "another job"),
        ({"again_job_id": "none"}, NotFoundError, "not found"),
        ({"items": 101}, InvalidRequestError, "between 1 and 100"),
        ({"items": -1}, InvalidRequestError, "between 1 and 100"),
        ({"error": 0.5}, InvalidRequestError, "at most 0.2"),
        ({"error": float("nan")}, InvalidRequestError, "at most 0.2"),
        ({"cron": "daily"}, InvalidRequestError, "five fields"),
    ],
)
async def test_what_cannot_be_watched_is_said(
    world: World, fields: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        await world.watches.start(ALICE, request(**fields))
    assert world.timetable.list(ALICE, "") == []


async def test_a_reference_must_have_completed_and_be_visible(world: World) -> None:
    with pytest.raises(NotFoundError):
        await world.watches.start(BOB, request())
    world.results.old["old"].state = job_pb2.Job.STATE_FAILED
    with pytest.raises(ConflictError, match="has not completed"):
        await world.watches.start(ALICE, request())


async def test_several_answers_without_a_temperature_are_no_reference(world: World) -> None:
    """They are asked for at the provider's own temperature, and the canaries would be at 0."""
    reference = world.results.old["old"]
    reference.spec.sampling.ClearField("temperature")
    with pytest.raises(ConflictError, match="at its provider's own temperature"):
        await world.watches.start(ALICE, request())
    reference.spec.sampling.extra_json = '{"options": {"top_k": 3}}'
    await world.watches.start(ALICE, request())
    reference.spec.sampling.ClearField("extra_json")
    reference.spec.suite.repeats = 1
    await world.watches.start(ALICE, request())


async def test_a_judges_job_is_no_reference(world: World) -> None:
    """Each run would be another judge of the judged job."""
    world.results.old["old"].spec.judging.job_id = "judged"
    with pytest.raises(ConflictError, match="is a judge's"):
        await world.watches.start(ALICE, request())


async def test_a_replay_may_be_a_reference_but_its_runs_replay_nothing(world: World) -> None:
    world.results.old["old"].spec.replays_job_id = "older"
    schedule = await world.watches.start(ALICE, request())
    assert schedule.spec.replays_job_id == ""


async def test_users_cannot_set_what_a_job_watches(world: World) -> None:
    wanted = spec()
    wanted.watching.items = 3
    with pytest.raises(InvalidRequestError, match="Start a watch instead"):
        await world.desk.create(ALICE, "", wanted)
