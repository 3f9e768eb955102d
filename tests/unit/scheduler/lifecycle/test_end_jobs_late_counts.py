"""Counts of jobs that ended early: what the results service has stored."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from services.errors import TouchstoneError
from services.scheduler.lifecycle import end_jobs
from tests.unit.scheduler.fakes import ALICE, World, evaluator
from touchstone.v1 import job_pb2


async def cancelled(world: World) -> str:
    """A job with 3 of 200 items done, as far as the scheduler knows."""
    job = await world.create()
    await world.planned(job)
    world.report(job, 0, items=3, done=False)
    await world.desk.cancel(ALICE, job)
    return job


def store(world: World, job_id: str, done: int, failed: int = 0) -> None:
    """Results has so many items of its first task."""
    stored = job_pb2.Job()
    stored.CopyFrom(world.desk.get(job_id))
    progress = stored.progress
    progress.items_done, progress.items_failed = done, failed
    progress.tasks[0].items_done, progress.tasks[0].items_failed = done, failed
    world.results.old[job_id] = stored


def counts(job: job_pb2.Job) -> tuple[int, int, int, int]:
    progress = job.progress
    return progress.items_done, progress.items_failed, progress.tasks[0].items_done, progress.tasks[1].items_done


async def settled(world: World, job_id: str, done: int) -> None:
    for _ in range(1200):
        shown, stored = world.desk.get(job_id), world.store.jobs()[0].message
        if shown.progress.items_done == stored.progress.items_done == done:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(world.desk.get(job_id).progress)


async def test_a_cancelled_jobs_counts_become_those_that_are_stored(world: World) -> None:
    job = await cancelled(world)
    assert counts(world.desk.get(job)) == (3, 0, 3, 0)
    store(world, job, 8, 1)
    await settled(world, job, 8)
    assert counts(world.desk.get(job)) == (8, 1, 8, 0)
    assert counts(world.store.jobs()[0].message) == (8, 1, 8, 0), "and are stored"
    assert world.store.events[-1].action == "cancelled", "which is no event"


async def test_an_answer_that_comes_later_still_is_counted(world: World) -> None:
    job = await cancelled(world)
    store(world, job, 8)
    await settled(world, job, 8)
    store(world, job, 10)
    await world.look()
    assert counts(world.desk.get(job))[0] == 8, "nothing has come since"
    world.report(job, 1, items=2, done=False)
    await settled(world, job, 10)


async def test_a_leadership_ends_that_is_cancelled_while_a_call_loses_cancellations(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await cancelled(world)
    store(world, job, 8)
    await settled(world, job, 8)
    asked = asyncio.Event()

    async def losing(job_id: str, sequence: int) -> dict[str, set[int]]:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return {}

    monkeypatch.setattr(world.results, "stored", losing)
    running = asyncio.create_task(end_jobs.Settling(world.registry, world.results, lambda: 0).run())
    await asked.wait()
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=10)
    assert done


async def test_a_job_that_failed_is_counted_after_a_restart(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    world.report(job, 0, items=3, done=False)
    async with world.registry.lock:
        await world.registry.fail(world.registry.jobs[job], "It broke.")
    await world.stop()
    store(world, job, 5)
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
    await world.start()
    await settled(world, job, 5)
    assert world.state(job) == "failed"


async def test_what_results_knows_of_another_attempt_changes_nothing(world: World) -> None:
    job = await cancelled(world)
    store(world, job, 8)
    world.results.old[job].attempt = 0
    await world.look()
    assert counts(world.desk.get(job))[0] == 3
    await world.desk.retry(ALICE, job)
    store(world, job, 8)
    await asyncio.sleep(0.4)
    assert world.state(job) in ("pending", "planning")


async def test_results_is_asked_again_when_it_fails_at_a_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await cancelled(world)
    store(world, job, 8)
    tell, tries = world.results.job, 0

    async def fail_twice(job_id: str) -> job_pb2.Job:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TouchstoneError("It broke.")
        return await tell(job_id)

    monkeypatch.setattr(world.results, "job", fail_twice)
    monkeypatch.setattr(end_jobs, "_PAUSE_S", 0.01)
    await settled(world, job, 8)
    assert tries >= 3
