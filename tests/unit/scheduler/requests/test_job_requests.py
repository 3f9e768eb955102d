"""Requests for jobs: create, cancel, retry, watch."""

from __future__ import annotations

import asyncio

import pytest

from services import further_fields
from services.errors import (
    ConflictError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
    PermissionDeniedError,
)
from services.scheduler.jobs.job import Job, stamp
from services.scheduler.ports import LeadershipLostError
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB, World, evaluator, spec
from touchstone.v1 import job_pb2


async def test_a_repeated_request_id_makes_one_job(world: World) -> None:
    first, again = await world.create(request_id="r1"), await world.create(request_id="r1")
    assert first == again
    assert await world.create(BOB, request_id="r1") != first, "request ids belong to their user"


async def test_a_request_id_sent_again_for_another_job_is_refused(world: World) -> None:
    first = await world.create(request_id="nightly")
    with pytest.raises(ConflictError, match=first):
        await world.create(request_id="nightly", priority=job_pb2.PRIORITY_LOW)


async def test_the_eleventh_waiting_job_is_refused_and_other_users_are_not_affected(world: World) -> None:
    for _ in range(13):
        await world.create()
    with pytest.raises(LimitReachedError) as refused:
        await world.create()
    assert refused.value.message == "Queue is full. Please try again later."
    assert refused.value.retry_after_s == 300
    await world.create(BOB)
    assert world.store.pending == {"alice": 10, "bob": 1}


async def test_cancel_withdraws_the_units_and_is_final(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    assert world.work.offered
    await world.desk.cancel(ALICE, job)
    assert world.work.offered == {}
    assert world.state(job) == "cancelled"
    with pytest.raises(ConflictError):
        await world.desk.cancel(ALICE, job)


async def test_only_the_owner_or_an_admin_may_cancel(world: World) -> None:
    job = await world.create()
    with pytest.raises(PermissionDeniedError):
        await world.desk.cancel(BOB, job)
    await world.desk.cancel(ADMIN, job)


async def test_a_watcher_sees_changes_and_the_end(world: World) -> None:
    job = await world.create()
    seen: list[str] = []

    async def watch() -> None:
        async for message in world.desk.watch(job):
            seen.append(job_pb2.Job.State.Name(message.state))

    watcher = asyncio.create_task(watch())
    await world.settle()
    await world.planned(job)
    await asyncio.sleep(0.3)
    await world.run_all(job)
    await asyncio.wait_for(watcher, 60)
    assert seen[0] == "STATE_PLANNING"
    assert seen[-1] == "STATE_COMPLETED"


async def test_a_description_that_is_too_long_is_refused(world: World) -> None:
    wrong = spec()
    further_fields.write(wrong.sampling, {"padding": "x" * 50_000})
    with pytest.raises(InvalidRequestError, match="at most 40,960"):
        await world.desk.create(ALICE, "", wrong)


async def test_a_caller_who_goes_away_during_the_write_leaves_no_half_of_it(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    call = asyncio.create_task(world.desk.cancel(ALICE, job))
    await asyncio.sleep(0)
    call.cancel()
    await world.settle()
    assert world.state(job) == "cancelled"
    assert world.store.events[-1].action == "cancelled"
    assert world.store.jobs()[0].state == job_pb2.Job.STATE_CANCELLED
    assert world.work.offered == {}


async def test_a_retry_does_not_wait_for_silent_results_with_the_lock(world: World) -> None:
    job = await world.create()
    silent = asyncio.Event()

    async def never(job_id: str) -> job_pb2.Job:
        await silent.wait()
        raise AssertionError

    world.results.job = never  # type: ignore[method-assign]
    retry = asyncio.create_task(world.desk.retry(ALICE, "11111111-1111-1111-1111-111111111111"))
    await world.settle()
    await asyncio.wait_for(world.desk.cancel(ALICE, job), 60)
    assert world.state(job) == "cancelled"
    retry.cancel()


async def test_a_waiting_job_gets_another_priority_and_a_started_one_does_not(world: World) -> None:
    started = await world.create()
    for _ in range(5):
        await world.create(BOB)
    order = [job.job_id for job in world.desk.queue().pending]
    assert len(order) == 3
    await world.desk.set_priority(ADMIN, order[0], job_pb2.PRIORITY_LOW)
    moved = [job.job_id for job in world.desk.queue().pending]
    assert moved == [*order[1:], order[0]]
    assert world.store.events[-1].action == "reordered"
    with pytest.raises(ConflictError, match="Only a waiting job"):
        await world.desk.set_priority(ADMIN, started, job_pb2.PRIORITY_LOW)
    with pytest.raises(InvalidRequestError, match="is not a valid priority"):
        await world.desk.set_priority(ADMIN, order[0], job_pb2.PRIORITY_UNSPECIFIED)


async def test_the_queue_has_jobs_that_have_just_ended(world: World) -> None:
    job = await world.create()
    assert not world.desk.queue().ended
    await world.desk.cancel(ALICE, job)
    await world.settle()
    assert [one.job_id for one in world.desk.queue().ended] == [job]
    world.time += 11
    assert not world.desk.queue().ended


async def test_a_waiting_job_says_about_when_it_starts(world: World) -> None:
    jobs = [await world.create() for _ in range(4)]
    assert not world.desk.get(jobs[3]).progress.HasField("starts_in_s"), "nothing is known of any job's length"
    done = job_pb2.Job(job_id="done", state=job_pb2.Job.STATE_COMPLETED, spec=world.registry.jobs[jobs[0]].message.spec)
    done.progress.elapsed_s = 40
    stamp(done.finished_at, world.time)
    world.registry.jobs["done"] = Job(done)
    world.time += 1
    late = await world.create()
    pending = world.desk.queue().pending
    assert [(job.job_id, job.progress.starts_in_s) for job in pending] == [(jobs[3], 40), (late, 40)]
    assert not world.desk.get(jobs[0]).progress.HasField("starts_in_s"), "it has started"


async def test_only_a_finished_job_of_ones_own_is_deleted(world: World) -> None:
    job = await world.create()
    with pytest.raises(ConflictError, match="Cancel it first"):
        await world.desk.delete(ALICE, job)
    await world.desk.cancel(ALICE, job)
    with pytest.raises(PermissionDeniedError):
        await world.desk.delete(BOB, job)
    await world.desk.delete(ADMIN, job)
    with pytest.raises(NotFoundError):
        world.desk.get(job)
    event = world.store.events[-1]
    assert (event.action, event.actor, event.job.HasField("deleted_at")) == ("deleted", "root", True)
    for again in (world.desk.delete, world.desk.retry):
        with pytest.raises(NotFoundError):
            await again(ALICE, job)


async def test_a_crash_while_a_job_is_deleted_leaves_it_whole_or_gone(world: World) -> None:
    job = await world.create(request_id="once")
    await world.desk.cancel(ALICE, job)
    world.store.fenced = True
    with pytest.raises(LeadershipLostError):
        await world.desk.delete(ALICE, job)
    world.store.fenced = False
    world.lead()
    world.scheduler.restore(world.store.jobs(), set(), 0)
    assert world.state(job) == "cancelled"
    await world.desk.delete(ALICE, job)
    world.lead()
    world.scheduler.restore(world.store.jobs(), set(), 0)
    # The results service may not have read the event yet.
    world.results.old[job] = world.registry.deleted[job].message
    assert world.desk.list("") == []
    for call in (world.desk.delete(ALICE, job), world.desk.retry(ALICE, job), world.desk.visible(ALICE, job)):
        with pytest.raises(NotFoundError):
            await call
    world.fleet.hear(evaluator(), world.time)
    with pytest.raises(ConflictError, match="was deleted"):
        await world.create(request_id="once")


async def test_a_job_that_only_the_results_service_knows_is_deleted(world: World) -> None:
    job = job_pb2.Job(job_id="old", owner="alice", state=job_pb2.Job.STATE_COMPLETED, attempt=1)
    world.results.old["old"] = job

    deleting = asyncio.create_task(world.desk.delete(ALICE, "old"))
    await world.settle()
    assert world.store.events[-1].action == "deleted"
    assert not deleting.done(), "the results service still lists it"
    del world.results.old["old"]
    await deleting
    with pytest.raises(NotFoundError):
        await world.desk.retry(ALICE, "old")


async def test_a_job_whose_answers_a_live_one_takes_is_not_deleted(world: World) -> None:
    source = await world.create()
    await world.desk.cancel(ALICE, source)
    taker = await world.create()
    world.registry.jobs[taker].message.spec.reuse.job_id = source
    with pytest.raises(ConflictError, match=taker):
        await world.desk.delete(ALICE, source)
    await world.desk.cancel(ALICE, taker)
    await world.desk.delete(ALICE, source)
