"""The scheduler over fakes: life of a job, limits, crashes at each step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services import further
from services.bus import KIND_ITEMS, PLAN_UNIT, Level, ResultHeaders
from services.errors import ConflictError, InvalidRequestError, LimitReachedError, NoRoomError, PermissionDeniedError
from services.scheduler import upkeep
from services.scheduler.fleet import Fleet
from services.scheduler.ports import Change, LeadershipLostError
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ADMIN, ALICE, BOB, World, evaluator, plan, spec
from touchstone.v1 import job_pb2, results_service_pb2, unit_pb2


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.fleet.hear(evaluator(), made.time)
    await made.start()
    yield made
    await made.stop()


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


async def test_a_repeated_request_id_makes_one_job(world: World) -> None:
    first, again = await world.create(request_id="r1"), await world.create(request_id="r1")
    assert first == again
    assert await world.create(BOB, request_id="r1") != first, "request ids belong to their user"


async def test_a_request_id_sent_again_for_another_job_is_refused(world: World) -> None:
    first = await world.create(request_id="nightly")
    with pytest.raises(ConflictError, match=first):
        await world.create(request_id="nightly", priority=job_pb2.PRIORITY_LOW)


async def test_three_jobs_run_at_once_and_the_fourth_starts_when_one_ends(world: World) -> None:
    jobs = [await world.create() for _ in range(4)]
    assert [world.state(j) for j in jobs] == ["planning"] * 3 + ["pending"]
    assert world.desk.get(jobs[3]).progress.queue_position == 1
    await world.desk.cancel(ALICE, jobs[0])
    await world.settle()
    assert world.state(jobs[3]) == "planning"


async def test_the_eleventh_waiting_job_is_refused_and_other_users_are_not_affected(world: World) -> None:
    for _ in range(13):
        await world.create()
    with pytest.raises(LimitReachedError) as refused:
        await world.create()
    assert refused.value.message == "Queue is full. Please try again later."
    assert refused.value.retry_after_s == 300
    await world.create(BOB)
    assert world.store.pending == {"alice": 10, "bob": 1}


async def test_a_finalizing_job_holds_no_slot(world: World) -> None:
    world.results.down = True
    jobs = [await world.create() for _ in range(4)]
    await world.planned(jobs[0])
    await world.run_all(jobs[0])
    assert world.state(jobs[0]) == "finalizing"
    assert world.state(jobs[3]) == "planning"


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


async def test_a_plan_that_fails_fails_the_job_with_its_reason(world: World) -> None:
    job = await world.create()
    await world.planned(job, unit_pb2.Plan(error="Failed to load DEMO dataset: it is missing."))
    assert world.desk.get(job).reason == "Failed to load DEMO dataset: it is missing."
    assert world.state(job) == "failed"


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


async def test_a_retry_on_changed_data_fails_and_mixes_nothing(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    changed = plan()
    changed.tasks[0].item_set = "other"
    await world.settle()
    await world.planned(job, changed)
    assert world.state(job) == "failed"
    assert "have changed" in world.desk.get(job).reason


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
    headers = world.board.jobs[job].ledger
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


async def test_a_retry_whose_plan_came_while_nobody_led_goes_on_at_the_next_start(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.stop()
    world.results.have = {"one": set(range(100)), "two": set(range(90))}
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
    # As the replay of RESULTS does, before anything else runs.
    await world.planned(job)
    await world.start()
    assert world.state(job) == "running"
    await world.run_all(job)
    assert world.state(job) == "completed"


async def test_a_stale_leader_stops_and_tells_nobody(world: World) -> None:
    world.store.fenced = True
    with pytest.raises(Exception, match="fenced"):
        await world.create()
    assert world.store.records == {}


async def test_a_known_endpoint_without_evaluators_queues_and_an_unknown_one_is_refused() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    world.time += 60
    await world.start()
    job = await world.create()
    assert world.state(job) == "pending"
    assert "an evaluator that serves stub" in world.desk.get(job).progress.current_step
    with pytest.raises(InvalidRequestError, match="Endpoints: stub"):
        await world.create(endpoint="nowhere")
    world.fleet.hear(evaluator(), world.time)
    world.board.wake.set()
    await world.settle()
    assert world.state(job) == "planning"
    await world.stop()


async def test_the_time_limit_fails_the_job_and_frees_its_slot() -> None:
    world = World(Limits(job_time_s=60, running_jobs=1))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, following = await world.create(), await world.create()
    await world.planned(job)
    world.time += 61
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert world.state(job) == "failed"
    assert world.desk.get(job).reason == (
        "Job execution failed: Resource limits exceeded. Stopped after 1 minute with 0 of 200 items done. "
        "The rest can run as a second attempt."
    )
    assert world.state(following) == "planning"
    await world.stop()


async def test_time_without_a_scheduler_does_not_count_towards_the_limit() -> None:
    world = World(Limits(job_time_s=60))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job)
    world.time += 20
    await world.look()
    await world.stop()
    for _ in range(2):
        world.time += 3600
        world.lead()
        world.fleet.hear(evaluator(), world.time)
        world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
        await world.start()
        world.time += 15
        world.fleet.hear(evaluator(), world.time)
        await world.look()
        assert world.state(job) == "running"
        await world.stop()
    assert world.desk.get(job).progress.elapsed_s == pytest.approx(50)
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    world.scheduler.restore(world.store.jobs(), await world.work.released(), world.work.position)
    await world.start()
    world.time += 11
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert world.state(job) == "failed"
    await world.stop()


async def test_a_unit_that_left_work_without_being_done_is_released_again(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    world.report(job, 0, items=1, done=False)
    lost = next(key for key in world.work.offered if key[1] == 1)
    del world.work.offered[lost]
    for _ in range(2):
        world.time += 16
        world.fleet.hear(evaluator(), world.time)
        await world.look()
    assert lost in world.work.offered
    assert world.work.offered[lost].begun, "some of its answers may be stored"
    assert not world.work.offered[job, 0].begun


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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda s: s.sampling.__setattr__("temperature", 2.1), "spec.sampling.temperature"),
        (lambda s: s.sampling.__setattr__("temperature", float("nan")), "spec.sampling.temperature"),
        (lambda s: s.sampling.__setattr__("top_k", 101), "spec.sampling.top_k"),
        (lambda s: s.sampling.__setattr__("max_tokens", 0), "spec.sampling.max_tokens"),
        (lambda s: s.__setattr__("model", ""), "spec.model"),
        (lambda s: s.suite.__setattr__("suite", "nope"), "spec.suite.suite"),
        (lambda s: s.suite.tasks.append("three"), "spec.suite.tasks"),
        (lambda s: s.suite.__setattr__("shots", 1), "spec.suite.shots"),
        (lambda s: s.suite.__setattr__("limit", -1), "spec.suite.limit"),
        (lambda s: s.__setattr__("mode", 2), "spec.mode"),
        (lambda s: s.__setattr__("time_limit_s", 10_801), "spec.time_limit_s"),
        (lambda s: s.ClearField("suite"), "spec.work"),
    ],
)
async def test_a_wrong_spec_is_refused_with_the_field(world: World, change, field) -> None:  # type: ignore[no-untyped-def]
    wrong = spec()
    change(wrong)
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wrong)
    assert refused.value.field == field
    assert world.store.records == {}


async def test_a_description_that_is_too_long_is_refused(world: World) -> None:
    wrong = spec()
    further.write(wrong.sampling, {"padding": "x" * 20_000})
    with pytest.raises(InvalidRequestError, match="may have 16,384"):
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


async def test_planning_that_takes_too_long_fails_and_frees_its_slot() -> None:
    world = World(Limits(planning_s=60, running_jobs=1))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, following = await world.create(), await world.create()
    world.time += 61
    world.fleet.hear(evaluator(), world.time)
    await world.look()
    assert (world.state(job), world.state(following)) == ("failed", "planning")
    assert "not read within 1 minute" in world.desk.get(job).reason
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
        if world.board.jobs[job].ledger is not None:
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


def test_a_live_evaluators_suites_count_before_an_old_ones() -> None:
    world_fleet = Fleet(10)
    old, new = evaluator("old"), evaluator("new")
    del old.suites[0].tasks[1:]
    world_fleet.hear(old, 0)
    world_fleet.hear(new, 100)
    assert [task.task for task in world_fleet.suite("demo", 101).tasks] == ["one", "two"]


def set_room(world: World, level: Level) -> None:
    world.board.room.level = level
    world.board.room.sentence = "The disk is full." if level else ""
    world.board.wake.set()


async def test_a_low_disk_refuses_new_jobs_and_retries_and_holds_the_queue(world: World) -> None:
    cancelled = await world.create(request_id="first")
    await world.desk.cancel(ALICE, cancelled)
    running = [await world.create() for _ in range(3)]
    waiting = await world.create()
    set_room(world, Level.LOW)
    with pytest.raises(NoRoomError, match=r"The disk is full\."):
        await world.create()
    with pytest.raises(NoRoomError):
        await world.desk.retry(ALICE, cancelled)
    assert await world.create(request_id="first") == cancelled, "a request that made a job before is answered"
    assert world.desk.queue().notice == "The disk is full."

    await world.planned(running[0])
    await world.run_all(running[0])
    assert world.state(running[0]) == "completed", "running jobs go on"
    assert world.state(waiting) == "pending"

    set_room(world, Level.ENOUGH)
    await world.settle()
    assert world.state(waiting) == "planning"
    assert world.desk.queue().notice == ""


async def test_a_change_that_a_full_disk_refuses_names_the_disk(world: World) -> None:
    job = await world.create()
    set_room(world, Level.FULL)
    world.store.fenced = True
    with pytest.raises(NoRoomError, match=r"The disk is full\."):
        await world.desk.cancel(ALICE, job)


async def test_a_full_disk_pauses_running_jobs(world: World) -> None:
    job = await world.create()
    set_room(world, Level.FULL)
    await world.planned(job)
    assert not [unit for _, unit in world.work.offered if unit != PLAN_UNIT]
    set_room(world, Level.ENOUGH)
    await world.settle()
    assert await world.run_all(job) == 20
    assert world.state(job) == "completed"


async def test_time_on_a_full_disk_counts_towards_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_TICK_S", 0.001)
    world = World(Limits(job_time_s=60, planning_s=60, absent_after_s=1e9))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job, planning = await world.create(), await world.create()
    await world.planned(job)
    await asyncio.sleep(0.02)

    set_room(world, Level.FULL)
    for _ in range(10):
        world.time += 100
        await asyncio.sleep(0.005)
    assert (world.state(job), world.state(planning)) == ("running", "planning")
    assert world.desk.get(job).progress.elapsed_s < 30
    assert world.desk.get(job).progress.current_step == "Paused: the disk is full"

    set_room(world, Level.ENOUGH)
    await asyncio.sleep(0.02)
    world.time += 61
    await asyncio.sleep(0.02)
    assert (world.state(job), world.state(planning)) == ("failed", "failed"), "with room both limits count again"
    await world.stop()


async def test_a_retry_counts_its_own_time(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    world.board.find(job).pause(1000.0)
    await world.desk.cancel(ALICE, job)
    before = world.desk.get(job).progress.elapsed_s
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.planned(job)
    world.time += 7
    assert world.desk.get(job).progress.elapsed_s == pytest.approx(before + 7)


async def test_a_planning_unit_that_is_still_offered_is_no_unit_of_a_running_job(world: World) -> None:
    job = await world.create()
    await world.planned(job)
    await world.stop()
    world.lead()
    world.fleet.hear(evaluator(), world.time)
    offered = await world.work.released()
    world.scheduler.restore(world.store.jobs(), offered | {(job, PLAN_UNIT), (job, 10**6)}, world.work.position)
    await world.start()
    await world.run_all(job)
    assert world.state(job) == "completed"


async def test_nothing_is_stored_after_a_write_that_failed(world: World) -> None:
    """The cancellation is in memory then; stored without its event, the trail would lack it for ever."""
    job_id = await world.create()
    before = dict(world.store.records)
    world.store.fenced = True
    with pytest.raises(LeadershipLostError):
        await world.desk.cancel(ALICE, job_id)
    world.store.fenced = False
    with pytest.raises(LeadershipLostError):
        await world.board.save([Change(world.board.jobs[job_id])])
    assert world.store.records == before


async def test_a_change_after_the_leadership_is_refused_and_not_given_up(world: World) -> None:
    """A cancelled wait would leave its caller without any status."""
    job_id = await world.create()
    await world.stop()
    with pytest.raises(LeadershipLostError):
        await world.desk.cancel(ALICE, job_id)
