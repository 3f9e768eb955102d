"""Jobs of which the audit trail has lost the last events."""

from __future__ import annotations

import asyncio

import pytest

from services.scheduler.job import CANCELLED, COMPLETED, RUNNING, Job
from services.scheduler.ports import LeadershipLostError
from services.scheduler.retelling import LOST, tell_again
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan
from touchstone.v1 import job_pb2

ALL = {"one": set(range(40))}


async def finished(world: World) -> str:
    """A completed job of 40 items, all of which results has."""
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job_id = await world.create()
    await world.planned(job_id, plan(40, 10, ["one"]))
    await world.run_all(job_id)
    assert world.state(job_id) == "completed"
    world.results.have = dict(ALL)
    return job_id


async def look(world: World) -> None:
    """The look of the next leadership."""
    relayed = await led_again(world)
    await tell_again(world.board, world.results, relayed)


async def led_again(world: World) -> dict[str, str]:
    """The next leadership over what is stored; ids of the events that it finds by job."""
    await world.stop()
    numbered = world._events
    world.lead()
    world._events = numbered
    jobs = world.store.jobs()
    world.scheduler.restore(jobs, set(world.work.offered), world.work.position)
    return {job.id: job.told.event_id for job in jobs}


async def test_a_job_whose_events_the_trail_has_lost_is_told_again_with_the_event_that_was_lost() -> None:
    world = World()
    job_id = await finished(world)
    lost, world.store.events = world.store.events, []
    await look(world)
    assert world.store.events == lost[-1:]
    await look(world)
    assert len(world.store.events) == 1
    assert world.state(job_id) == "completed"


async def test_a_job_whose_last_event_alone_is_lost_is_told_again_and_a_live_one_as_well() -> None:
    world = World()
    await finished(world)
    live = await world.create()
    before = [event for event in world.store.events if event.job.job_id == live]
    lost = [event for event in world.store.events if event.job.state == COMPLETED] + before[-1:]
    world.store.events = [event for event in world.store.events if event not in lost]
    await look(world)
    assert sorted(event.event_id for event in world.store.events[-2:]) == sorted(event.event_id for event in lost)
    assert world.state(live) == "planning"


async def test_nothing_is_told_of_jobs_that_the_trail_knows_and_of_those_that_move() -> None:
    world = World()
    job_id = await finished(world)
    relayed = await led_again(world)
    events = list(world.store.events)
    await tell_again(world.board, world.results, relayed)
    assert world.store.events == events
    # An event of this leadership is on its way to the trail.
    world.store.events = []
    job = world.board.jobs[job_id]
    async with world.board.lock:
        job.message.incomplete = True
        await world.board.commit(job, "alice", "retried")
    world.store.events = []
    await tell_again(world.board, world.results, relayed)
    assert world.store.events == []


@pytest.mark.parametrize(("left", "state"), [(39, "completed"), (0, "failed"), (20, "failed")])
async def test_a_completed_job_that_has_lost_answers_can_be_retried(left: int, state: str) -> None:
    world = World()
    job_id = await finished(world)
    world.store.events = []
    world.results.have = {"one": set(range(left))}
    await look(world)
    (event,) = world.store.events
    job = world.desk.get(job_id)
    assert event.job == job
    assert world.state(job_id) == state
    assert job.incomplete == (state == "completed")
    assert job.reason == (LOST.format(40 - left, 40) if state == "failed" else "")
    await world.desk.retry(ALICE, job_id)
    assert world.state(job_id) == "pending"


async def test_a_results_service_that_is_away_holds_up_only_what_depends_on_it() -> None:
    world = World()
    job_id = await finished(world)
    cancelled = await world.create()
    await world.desk.cancel(ALICE, cancelled)
    await world.settle()
    world.store.events = []
    world.results.down = True
    telling = asyncio.create_task(look(world))
    await asyncio.sleep(0.05)
    assert [event.job.job_id for event in world.store.events] == [cancelled]
    world.results.down = False
    await asyncio.wait_for(telling, 30)
    assert [event.job.job_id for event in world.store.events] == [cancelled, job_id]


async def test_jobs_of_earlier_versions_are_told_by_their_state() -> None:
    world = World()
    job_id = await finished(world)
    job = world.board.jobs[job_id]
    job.told.Clear()
    world.store.records[job_id] = job.record().SerializeToString()
    await look(world)
    events = list(world.store.events)
    assert [event.job.state for event in events].count(COMPLETED) == 1
    world.store.events = [event for event in events if event.job.state <= RUNNING]
    await look(world)
    again = world.store.events[-1]
    assert (again.action, again.job) == ("completed", events[-1].job)
    assert again.event_id not in {event.event_id for event in events}


async def test_a_trail_that_cannot_be_written_ends_the_leadership() -> None:
    world = World()
    await finished(world)
    relayed = await led_again(world)
    world.store.events, world.store.fenced = [], True
    with pytest.raises(LeadershipLostError):
        await tell_again(world.board, world.results, relayed)


def test_the_last_event_is_stored_with_its_job() -> None:
    told = job_pb2.JobEvent(event_id="7", actor="alice", action="cancelled")
    job = Job(job_pb2.Job(job_id="x", state=CANCELLED), told)
    again = Job.load(job.record())
    assert again.event() == job_pb2.JobEvent(event_id="7", actor="alice", action="cancelled", job=job.message)
