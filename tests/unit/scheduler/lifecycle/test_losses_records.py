"""Jobs of which the audit trail has lost the last events."""

from __future__ import annotations

import asyncio

import pytest

from services.scheduler.jobs.job import CANCELLED, COMPLETED, PENDING, RUNNING, Job, stamp
from services.scheduler.lifecycle.losses import LOST_ANSWERS, LOST_JOB, end_lost_jobs, tell_again
from services.scheduler.ports import LeadershipLostError
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan, spec
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
    await tell_again(world.registry, world.results, relayed)


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
    await tell_again(world.registry, world.results, relayed)
    assert world.store.events == events
    # An event of this leadership is on its way to the trail.
    world.store.events = []
    job = world.registry.jobs[job_id]
    async with world.registry.lock:
        job.message.incomplete = True
        await world.registry.commit(job, "alice", "retried")
    world.store.events = []
    await tell_again(world.registry, world.results, relayed)
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
    assert job.reason == (LOST_ANSWERS.format(40 - left, 40) if state == "failed" else "")
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
    job = world.registry.jobs[job_id]
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
        await tell_again(world.registry, world.results, relayed)


def test_the_last_event_is_stored_with_its_job() -> None:
    told = job_pb2.JobEvent(event_id="7", actor="alice", action="cancelled")
    job = Job(job_pb2.Job(job_id="x", state=CANCELLED), told)
    again = Job.load(job.record())
    assert again.event() == job_pb2.JobEvent(event_id="7", actor="alice", action="cancelled", job=job.message)


def lost(world: World, job_id: str, state: job_pb2.Job.State = RUNNING) -> job_pb2.Job:
    """A job of which only results knows."""
    message = job_pb2.Job(job_id=job_id, owner=ALICE.user, spec=spec(), state=state, attempt=1)
    message.plan.extend(plan(40, 10, ["one"]).tasks)
    stamp(message.created_at, world.time)
    world.results.old[job_id] = message
    return message


async def test_a_job_that_the_queue_lost_ends_as_failed_with_the_reason_and_is_retried() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    lost(world, "gone")
    await world.start()
    await end_lost_jobs(world.registry, world.results)
    job = world.desk.get("gone")
    assert (world.state("gone"), job.reason) == ("failed", LOST_JOB)
    assert [(event.action, event.job.reason) for event in world.store.events] == [("failed", LOST_JOB)]
    world.results.have = {"one": set(range(30))}
    await world.desk.retry(ALICE, "gone")
    await world.settle()
    await world.planned("gone", plan(40, 10, ["one"]))
    assert [unit for job_id, unit in world.work.offered if job_id == "gone"] == [3]
    await world.run_all("gone")
    assert world.state("gone") == "completed"
    await world.stop()


async def test_jobs_in_the_queue_and_jobs_whose_end_the_trail_has_stay_as_they_are() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    known = await world.create()
    world.results.old[known] = world.desk.get(known)
    ended = Job(lost(world, "ended", PENDING))
    ended.cancel("alice", world.time)
    async with world.registry.lock:
        await world.registry.commit(ended, "alice", "cancelled")
    lost(world, "ended", PENDING)
    await end_lost_jobs(world.registry, world.results)
    assert world.state(known) == "planning"
    assert "ended" not in world.registry.jobs
    await world.stop()


async def test_a_silent_results_service_is_asked_again() -> None:
    world = World()
    lost(world, "gone", PENDING)
    world.results.down = True
    asking = asyncio.create_task(end_lost_jobs(world.registry, world.results))
    await asyncio.sleep(0.1)
    assert "gone" not in world.registry.jobs
    world.results.down = False
    await asyncio.wait_for(asking, 30)
    assert world.state("gone") == "failed"


async def test_messages_of_a_stream_that_lost_its_end_are_counted() -> None:
    world = World()
    world.work.position = 1000
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job_id = await world.create()
    await world.planned(job_id, plan(20, 10, ["one"]))
    await world.stop()
    (job,) = world.store.jobs()
    assert job.ledger is not None
    assert job.ledger.sequence >= 1000
    job.rewind(7)
    assert job.ledger.sequence == 7
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.work.position = 7
    assert world.scheduler.restore([job], set(world.work.offered), 7) == 7
    await world.start()
    await world.run_all(job_id)
    assert world.state(job_id) == "completed"
    await world.stop()


async def test_a_deletion_that_the_trail_has_lost_is_told_again_and_is_no_loss_of_answers() -> None:
    world = World()
    job_id = await finished(world)
    await world.desk.delete(ALICE, job_id)
    world.results.have = {}
    lost = world.store.events.pop()
    await look(world)
    assert world.store.events[-1] == lost
    world.time += world.limits.keep_finished_s + 1
    await world.start()
    await world.look()
    await world.stop()
    assert job_id not in world.store.records
    assert job_id not in world.registry.deleted
