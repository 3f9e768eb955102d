"""The scheduler over fakes: life of a job, limits, crashes at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.bus import KIND_ITEMS, ResultHeaders
from services.errors import ConflictError, InvalidRequestError
from services.scheduler.ports import Change
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB, World, evaluator, spec
from touchstone.v1 import job_pb2, results_service_pb2, unit_pb2


async def test_a_job_runs_through_every_state_and_leaves_an_audit_event_for_each(world: World) -> None:
    job = await world.create()
    assert world.state(job) == "planning"
    await world.planned(job)
    assert world.state(job) == "running"
    assert await world.run_all(job) == 20
    assert world.state(job) == "completed"
    assert [e.action for e in world.store.events] == ["created", "planning", "running", "finalizing", "completed"]
    done = world.desk.get(job)
    assert done.progress.items_done == 200
    assert not done.incomplete
    assert done.item_set


async def test_a_fault_fails_the_job_and_a_late_one_changes_nothing(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.scheduler.on_fault(job, 1, unit_pb2.Fault(reason="stub refused the key"), 9)
    assert (world.state(job), world.desk.get(job).reason) == ("failed", "stub refused the key")
    await world.scheduler.on_fault(job, 1, unit_pb2.Fault(reason="later"), 10)
    assert world.desk.get(job).reason == "stub refused the key"


async def test_too_many_errors_fail_the_job_and_a_few_make_it_incomplete(world: World) -> None:
    few, many = await world.create(), await world.create()
    await world.planned(few)
    await world.planned(many)
    world.results.errors = 10
    await world.run_all(few)
    assert (world.state(few), world.desk.get(few).incomplete) == ("completed", True)
    world.results.errors = 11
    await world.run_all(many)
    assert world.state(many) == "failed"
    assert "11 of 200 items" in world.desk.get(many).reason


async def test_a_retry_runs_only_what_is_missing_as_the_next_attempt(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    world.results.have = {"one": set(range(95)), "two": set(range(100))}
    await world.planned(job)
    assert [(u.unit, list(u.positions), u.attempt) for u in world.work.offered.values()] == [
        (9, [95, 96, 97, 98, 99], 2)
    ]
    await world.run_all(job)
    assert world.state(job) == "completed"
    assert world.desk.get(job).progress.items_done == 200
    with pytest.raises(ConflictError):
        await world.desk.retry(ALICE, job)


async def test_results_of_an_earlier_attempt_do_not_count(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.planned(job)
    world.scheduler.on_items(job, 0, ResultHeaders(KIND_ITEMS, attempt=1, items=10, done=True), 50)
    assert world.desk.get(job).progress.items_done == 0


@pytest.mark.parametrize("at", ["pending", "planning", "running", "half", "finalizing"])
async def test_a_crash_at_any_step_loses_nothing_and_repeats_no_finished_unit(at: str) -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    if at == "pending":
        job = (await world.desk.create(ALICE, "", spec())).job_id
    else:
        await world.start()
        job = await world.create()
        if at != "planning":
            await world.planned(job)
        if at == "half":
            for number in sorted(u for _, u in world.work.offered)[:2]:
                world.report(job, number, items=10, done=True)
            await world.settle()
        if at == "finalizing":
            world.results.down = True
            await world.run_all(job)
            world.results.down = False
        await world.stop()
    done_before = {0, 1} if at == "half" else set()
    headers = world.registry.jobs[job].ledger
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    jobs = world.store.jobs()
    after = world.scheduler.restore(jobs, await world.work.released(), world.work.position)
    if at == "half":
        # The store was last written before the units were done: the stream brings them back.
        assert headers is not None
        assert after < world.work.position
        for position, number in enumerate(sorted(done_before), after + 1):
            world.scheduler.on_items(job, number, ResultHeaders(KIND_ITEMS, 1, 1, "one", 10, 0, 0, True), position)
    world.work.log.clear()
    await world.start()
    if world.state(job) == "planning":
        await world.planned(job)
    await world.run_all(job)
    assert world.state(job) == "completed"
    assert world.desk.get(job).progress.items_done == 200
    assert not done_before & {u for _, u in world.work.log}
    await world.stop()


async def test_results_that_refuse_for_good_end_the_job(world: World) -> None:
    async def refuse(job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse:
        raise InvalidRequestError("no metric is named nonsense")

    world.results.seal = refuse  # type: ignore[method-assign]
    job = await world.create()
    await world.planned(job)
    await world.run_all(job)
    assert (world.state(job), "nonsense" in world.desk.get(job).reason) == ("failed", True)


async def test_the_floor_never_passes_what_is_stored(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    commit = world.store.commit

    async def while_results_come_in(changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        await commit(changes, pending_by_owner)
        if world.registry.jobs[job].ledger is not None:
            world.report(job, sorted(u for _, u in world.work.offered)[0], items=10, done=True)

    world.store.commit = while_results_come_in  # type: ignore[method-assign]
    world.time += 6
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    stored = world.store.jobs()[0].ledger
    assert stored is not None
    assert world.store.floor <= stored.sequence


async def test_the_rate_of_a_retry_counts_only_what_it_ran(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    world.results.have = {"one": set(range(95)), "two": set(range(100))}
    await world.planned(job)
    world.time += 1
    await world.run_all(job)
    assert world.desk.get(job).progress.items_per_second == pytest.approx(5)


async def test_a_retry_counts_its_own_time(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    world.registry.find(job).pause(1000.0)
    await world.desk.cancel(ALICE, job)
    before = world.desk.get(job).progress.elapsed_s
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.planned(job)
    world.time += 7
    assert world.desk.get(job).progress.elapsed_s == pytest.approx(before + 7)


@pytest.mark.parametrize("exclusive", [False, True])
async def test_a_second_users_job_begins_after_at_most_one_of_ten_of_the_first(exclusive: bool) -> None:
    world = World(Limits(running_jobs=3))
    world.fleet.hear(evaluator(exclusive=exclusive), world.time)
    await world.start()

    jobs: list[str] = []

    async def plan_all() -> None:
        for job in jobs:
            if world.state(job) == "planning":
                await world.planned(job)

    try:
        jobs += [await world.create(ALICE) for _ in range(10)]
        await plan_all()
        bobs = await world.create(BOB)
        jobs.append(bobs)
        await plan_all()
        ended = 0
        while bobs not in {job for job, _ in world.work.offered}:
            ended += 1
            await world.run_all(next(job for job, _ in world.work.offered))
            await plan_all()
        assert ended <= 1
    finally:
        await world.stop()


async def _two_ready(world: World, first: str, second: str) -> None:
    """Plans two jobs while no evaluator is there, so that the release chooses between them when one comes."""
    world.time += world.limits.absent_after_s + 1
    await world.planned(first)
    await world.planned(second)
    assert not world.work.offered
    world.fleet.hear(evaluator(exclusive=True), world.time)
    world.registry.wake.set()
    await world.settle()


async def test_a_retried_job_does_not_keep_an_exclusive_endpoint_that_it_had_before() -> None:
    world = World()
    world.fleet.hear(evaluator(exclusive=True), world.time)
    await world.start()
    try:
        bobs = await world.create(BOB)
        world.time += 1
        again = await world.create(ALICE)
        await world.planned(again)
        await world.desk.cancel(ALICE, again)
        await world.settle()
        await world.desk.retry(ALICE, again)
        await world.settle()
        await _two_ready(world, again, bobs)
        assert {job for job, _ in world.work.offered} == {bobs}
    finally:
        await world.stop()


async def test_a_job_that_a_more_urgent_one_interrupted_goes_on_before_another_users() -> None:
    world = World()
    world.fleet.hear(evaluator(exclusive=True), world.time)
    await world.start()
    try:
        half, urgent = await world.create(ALICE, priority=job_pb2.PRIORITY_NORMAL), ""
        await world.planned(half)
        for _, number in sorted(world.work.offered):
            if number == 0:
                world.report(half, number, items=10, done=True)
        urgent = await world.create(ALICE, priority=job_pb2.PRIORITY_HIGH)
        await world.planned(urgent)
        bobs = await world.create(BOB, priority=job_pb2.PRIORITY_NORMAL)
        await world.planned(bobs)
        for number in sorted(number for job, number in world.work.offered if job == half):
            world.report(half, number, items=10, done=True)
        await world.settle()
        assert {job for job, _ in world.work.offered} == {urgent}
        await world.run_all(urgent)
        assert {job for job, _ in world.work.offered} == {half}
    finally:
        await world.stop()


async def test_turns_at_an_exclusive_endpoint_are_forgotten_with_the_last_job_there() -> None:
    world = World()
    world.fleet.hear(evaluator(exclusive=True), world.time)
    await world.start()
    try:
        for who in (ALICE, BOB):
            job = await world.create(who)
            await world.planned(job)
            assert (world.scheduler._at, list(world.scheduler._turns)) == ({"stub": job}, [("stub", who.user)])
            await world.run_all(job)
        assert not world.scheduler._at
        assert not world.scheduler._turns
    finally:
        await world.stop()


async def test_a_user_who_comes_back_has_no_turn_before_one_whose_turn_is_longer_ago() -> None:
    world = World()
    world.fleet.hear(evaluator(exclusive=True), world.time)
    await world.start()
    try:
        first, waits = await world.create(BOB), await world.create(BOB)
        await world.planned(first)
        await world.run_all(first)
        world.time += 1
        alices = await world.create(ALICE)
        await world.planned(alices)
        await world.run_all(alices)
        back = await world.create(ALICE)
        await _two_ready(world, back, waits)
        assert {job for job, _ in world.work.offered} == {waits}
    finally:
        await world.stop()


async def test_a_job_that_no_evaluator_serves_takes_no_turn_from_its_users_next(world: World) -> None:
    world.registry.limits = replace(world.limits, running_jobs=1)
    running = await world.create(ADMIN)
    world.fleet.hear(evaluator("e2", "gone"), world.time)
    unserved = await world.create(ALICE, endpoint="gone")
    gone = evaluator("e2", "gone")
    gone.draining = True
    world.fleet.hear(gone, world.time)
    jobs = []
    for who in (BOB, BOB, ALICE):
        world.time += 1
        jobs.append(await world.create(who))
    places = [world.desk.get(job).progress.queue_position for job in (*jobs, unserved)]
    assert (world.state(running), places) == ("planning", [1, 3, 2, 4])
