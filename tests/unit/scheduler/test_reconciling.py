"""Jobs that results calls live and the queue has lost."""

from __future__ import annotations

import asyncio

from services.scheduler.job import PENDING, RUNNING, Job, stamp
from services.scheduler.reconciling import LOST, end_lost_jobs
from tests.unit.scheduler.fakes import ALICE, World, evaluator, plan, spec
from touchstone.v1 import job_pb2


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
    await end_lost_jobs(world.board, world.results)
    job = world.desk.get("gone")
    assert (world.state("gone"), job.reason) == ("failed", LOST)
    assert [(event.action, event.job.reason) for event in world.store.events] == [("failed", LOST)]
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
    async with world.board.lock:
        await world.board.commit(ended, "alice", "cancelled")
    lost(world, "ended", PENDING)
    await end_lost_jobs(world.board, world.results)
    assert world.state(known) == "planning"
    assert "ended" not in world.board.jobs
    await world.stop()


async def test_a_silent_results_service_is_asked_again() -> None:
    world = World()
    lost(world, "gone", PENDING)
    world.results.down = True
    asking = asyncio.create_task(end_lost_jobs(world.board, world.results))
    await asyncio.sleep(0.1)
    assert "gone" not in world.board.jobs
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
