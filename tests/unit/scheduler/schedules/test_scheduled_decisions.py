"""Schedules of decisions: all jobs of one decision for a time, or none, through crashes, limits and what is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from services.errors import ConflictError, InvalidRequestError
from services.rpc import Identity
from services.scheduler.ports import Change, LeadershipLostError
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, BOB, FakeStore, World, evaluator, spec
from touchstone.v1 import job_pb2, schedule_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

MINUTE, DAY = 60.0, 24 * 3600.0
ENDPOINTS = ("one", "two", "three")


def serve(world: World, endpoints: Sequence[str] = ENDPOINTS) -> None:
    for place, name in enumerate(endpoints):
        world.fleet.hear(evaluator(f"e{place}", name, 4), world.time)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(absent_after_s=10 * DAY, running_jobs=1))
    serve(made)
    await made.start()
    yield made
    await made.stop()


def decision(*endpoints: str, **fields: Any) -> pb.StartDecisionRequest:
    first, second, *rest = (spec(name) for name in endpoints or ("one", "two"))
    return pb.StartDecisionRequest(baseline=first, candidate=second, further_candidates=rest, **fields)


async def scheduled(
    world: World, asked: pb.StartDecisionRequest | None = None, who: Identity = ALICE, request_id: str = ""
) -> schedule_pb2.Schedule:
    asked = asked or decision(margin=0.02, error=0.1)
    return await world.timetable.create(who, request_id, "* * * * *", "", asked.baseline, "nightly", decision=asked)


async def pass_time(world: World, seconds: float = MINUTE) -> None:
    """The timetable looks at the clock once."""
    world.time += seconds
    runner = world.running_timetable()
    await world.settle()
    await world.end(runner)


def jobs(world: World) -> list[job_pb2.Job]:
    """Those of the schedule, in the order of their creation."""
    return [job.message for job in world.registry.jobs.values() if job.message.spec.schedule_id]


def shown(world: World) -> schedule_pb2.Schedule:
    (one,) = world.timetable.list(ALICE, "")
    return one


async def cancel(world: World) -> None:
    """Cancels the decision that is under way."""
    for job in [*world.registry.jobs.values()]:
        if job.live and job.message.spec.schedule_id:
            await world.desk.cancel(ALICE, job.id)
    await world.settle()


async def test_each_time_starts_a_decision_in_an_order_of_its_own(world: World) -> None:
    schedule = await scheduled(world)
    assert [one.endpoint for one in (schedule.spec, *schedule.candidates)] == ["one", "two"]
    for _ in range(2):
        await pass_time(world)
        await cancel(world)
    first, second, third, fourth = jobs(world)
    for baseline, candidate in ((first, second), (third, fourth)):
        sides = baseline.spec.deciding, candidate.spec.deciding
        assert [side.against_job_id for side in sides] == [candidate.job_id, baseline.job_id]
        assert [side.candidate for side in sides] == [False, True]
        assert {(side.margin, side.error) for side in sides} == {(0.02, 0.1)}
        assert len({side.seed for side in sides}) == 1
        assert 0 <= sides[0].seed < 2**53
    assert first.spec.deciding.seed != third.spec.deciding.seed
    assert {(one.spec.schedule_id, one.owner) for one in jobs(world)} == {(schedule.schedule_id, "alice")}
    assert {one.spec.priority for one in jobs(world)} == {job_pb2.PRIORITY_LOW}
    assert (shown(world).last_job_id, shown(world).last_problem) == (third.job_id, "")


async def test_a_race_is_started_whole(world: World) -> None:
    await scheduled(world, decision(*ENDPOINTS))
    await pass_time(world)
    ids = [one.job_id for one in jobs(world)]
    assert [one.spec.endpoint for one in jobs(world)] == [*ENDPOINTS]
    assert [list(one.spec.deciding.race_job_ids) for one in jobs(world)] == [ids] * 3


async def test_none_starts_while_a_job_of_the_last_one_has_not_ended() -> None:
    # Not started, so that nobody stops the other job of a decision.
    world = World(Limits(absent_after_s=10 * DAY))
    serve(world)
    await scheduled(world)
    await pass_time(world)
    baseline, candidate = jobs(world)
    await pass_time(world)
    assert len(jobs(world)) == 2
    said = f"Its last decision, {baseline.job_id}, has not ended yet."
    assert shown(world).last_problem == said
    await world.desk.cancel(ALICE, baseline.job_id)
    await pass_time(world)
    assert (len(jobs(world)), shown(world).last_problem) == (2, said)
    await world.desk.cancel(ALICE, candidate.job_id)
    await pass_time(world)
    assert (len(jobs(world)), shown(world).last_problem) == (4, "")


async def test_none_starts_while_a_race_runs_whose_first_model_was_beaten_days_ago() -> None:
    world = World(Limits(absent_after_s=10 * DAY))
    serve(world)
    await scheduled(world, decision(*ENDPOINTS))
    await pass_time(world)
    baseline, *_ = jobs(world)
    await world.desk.cancel(ALICE, baseline.job_id)
    # A job that ended is kept for a day.
    del world.registry.jobs[baseline.job_id]
    await pass_time(world)
    assert len(jobs(world)) == 2
    assert shown(world).last_problem == f"Its last decision, {baseline.job_id}, has not ended yet."


async def test_a_retry_of_its_jobs_does_not_hold_up_the_next_one(world: World) -> None:
    await scheduled(world)
    await pass_time(world)
    await cancel(world)
    for one in list(jobs(world)):
        await world.desk.retry(ALICE, one.job_id)
    await pass_time(world)
    assert (len(jobs(world)), shown(world).last_problem) == (4, "")


async def test_missed_times_are_made_up_for_by_one_decision(world: World) -> None:
    await scheduled(world)
    await pass_time(world, 3 * DAY)
    await cancel(world)
    await pass_time(world, 1.0)
    assert len(jobs(world)) == 2


class Dying(FakeStore):
    """Loses leadership when the jobs of a decision are written, before or after they are stored."""

    def __init__(self, stored: bool) -> None:
        super().__init__()
        self._stored, self.dies = stored, True

    async def commit(self, changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        if self.dies and any(change.job.message.spec.schedule_id for change in changes):
            if self._stored:
                await super().commit(changes, pending_by_owner)
            raise LeadershipLostError("killed")
        await super().commit(changes, pending_by_owner)


@pytest.mark.parametrize("stored", [False, True])
async def test_a_kill_while_a_decision_is_created_leaves_no_half_and_makes_no_second_one(stored: bool) -> None:
    store = Dying(stored)
    world = World(Limits(absent_after_s=10 * DAY), store)
    serve(world)
    await world.start()
    schedule = await scheduled(world)
    world.time += MINUTE
    runner = world.running_timetable()
    await world.settle()
    assert isinstance(runner.exception(), ExceptionGroup)
    assert len(store.jobs()) == (2 if stored else 0)
    ids = sorted(job.id for job in store.jobs())
    await world.stop()

    store.dies = False
    world.lead()
    serve(world)
    world.scheduler.restore(store.jobs(), set(), 0)
    await world.timetable.load()
    await pass_time(world, 1.0)
    assert len(jobs(world)) == 2
    assert ids in ([], sorted(one.job_id for one in jobs(world)))
    assert shown(world).last_job_id == min(one.job_id for one in jobs(world))
    assert shown(world).last_problem == ""
    assert shown(world).next_at.ToSeconds() > schedule.next_at.ToSeconds()


async def test_a_crash_between_a_decision_and_its_schedule_makes_no_second_one(world: World) -> None:
    await scheduled(world)
    world.time += MINUTE
    world.schedules.crash = True
    runner = world.running_timetable()
    await world.settle()
    assert runner.exception() is not None
    before = [(one.job_id, one.spec.deciding.seed) for one in jobs(world)]
    await world.stop()

    world.schedules.crash = False
    world.lead()
    serve(world)
    world.scheduler.restore(world.store.jobs(), set(), 0)
    await world.timetable.load()
    await pass_time(world, 1.0)
    assert sorted((one.job_id, one.spec.deciding.seed) for one in jobs(world)) == before
    assert (shown(world).last_job_id, shown(world).last_problem) == (before[0][0], "")


async def test_without_room_in_the_queue_no_job_of_it_is_created(world: World) -> None:
    await scheduled(world)
    waiting = [await world.create(ALICE, endpoint="one") for _ in range(11)]
    await pass_time(world)
    assert jobs(world) == []
    assert shown(world).last_problem == "Queue is full. Please try again later."
    await world.desk.cancel(ALICE, waiting[-1])
    await pass_time(world)
    assert len(jobs(world)) == 2


async def test_if_one_of_its_jobs_is_refused_none_is_created(world: World) -> None:
    await scheduled(world)
    world.lead()
    serve(world, ["one"])
    await world.timetable.load()
    await pass_time(world)
    assert jobs(world) == []
    assert shown(world).last_problem == "m@two: Endpoint two not found. Endpoints: one."
    serve(world)
    await pass_time(world)
    assert len(jobs(world)) == 2


async def test_a_budget_that_cannot_be_kept_is_refused_with_the_schedule(world: World) -> None:
    asked = decision()
    asked.candidate.budget_usd = 1.0
    with pytest.raises(InvalidRequestError, match="price"):
        await scheduled(world, asked)
    assert world.timetable.list(ALICE, "") == []


async def test_a_decision_that_was_deleted_does_not_stop_the_next_one(world: World) -> None:
    await scheduled(world)
    await pass_time(world)
    await cancel(world)
    for one in list(jobs(world)):
        await world.desk.delete(ALICE, one.job_id)
    await pass_time(world)
    assert len(jobs(world)) == 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (decision(error=0.9), "error must be between"),
        (decision(margin=1.0), "margin must be"),
        (decision(*["one"] * 21), "has 21 models; at most 20"),
    ],
)
async def test_what_no_decision_may_be_is_refused_at_once(
    world: World, asked: pb.StartDecisionRequest, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        await scheduled(world, asked)
    other = decision()
    other.candidate.suite.limit = 5
    with pytest.raises(InvalidRequestError, match="same items"):
        await scheduled(world, other)
    assert world.timetable.list(ALICE, "") == []


async def test_a_repeated_request_makes_one_schedule_and_another_candidate_none(world: World) -> None:
    first = await scheduled(world, decision(), request_id="r1")
    assert (await scheduled(world, decision(), request_id="r1")).schedule_id == first.schedule_id
    with pytest.raises(ConflictError, match="r1"):
        await scheduled(world, decision("one", "three"), request_id="r1")


async def test_others_do_not_see_the_addresses_that_its_jobs_call(world: World) -> None:
    asked = decision()
    asked.baseline.webhook_url = asked.candidate.webhook_url = "https://hooks.example.com/secret"
    await scheduled(world, asked)
    (seen,) = world.timetable.list(BOB, "")
    assert [one.webhook_url for one in (seen.spec, *seen.candidates)] == ["", ""]
    assert shown(world).candidates[0].webhook_url
