"""Decisions while their jobs run: both keep step, share a slot, and stop together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services.errors import ConflictError, InvalidRequestError
from services.scheduler.admission import decision_rules
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, World, dataset_spec, evaluator, plan, spec
from touchstone.v1 import decision_pb2, job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

BETTER = decision_pb2.Decision(verdict=job_pb2.DECISION_VERDICT_BETTER, decided_at=40, items_total=200)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(running_jobs=1))
    made.fleet.hear(evaluator("e1", "one", 4), made.time)
    made.fleet.hear(evaluator("e2", "two", 4), made.time)
    await made.start()
    yield made
    await made.stop()


def request(baseline: str = "one", candidate: str = "two") -> pb.StartDecisionRequest:
    return pb.StartDecisionRequest(request_id="r", baseline=spec(baseline), candidate=spec(candidate), margin=0.02)


async def begin(world: World, baseline: str = "one", candidate: str = "two") -> tuple[str, str]:
    asked = request(baseline, candidate)
    specs = (asked.baseline, asked.candidate)
    made = await world.desk.create_all(ALICE, asked.request_id, specs, decision_rules.sides(asked))
    await world.settle()
    return made[0].job_id, made[1].job_id


async def run(world: World, baseline: str = "one", candidate: str = "two") -> tuple[str, str]:
    ids = await begin(world, baseline, candidate)
    for job_id in ids:
        await world.planned(job_id, plan(items=400))
    return ids


def offered(world: World, job_id: str) -> list[int]:
    return sorted(unit for (job, unit) in world.work.offered if job == job_id and unit >= 0)


async def answer(world: World, job_id: str, units: list[int]) -> None:
    for unit in units:
        world.report(job_id, unit, items=len(world.work.offered[job_id, unit].positions), done=True)
    await world.settle()


async def looked(world: World) -> None:
    """Once the answers so far were looked at."""
    await asyncio.sleep(0.12)
    await world.settle()


async def test_both_jobs_name_each_other_and_the_same_request_returns_them(world: World) -> None:
    baseline, candidate = await begin(world)
    assert world.desk.get(baseline).spec.deciding.against_job_id == candidate
    assert world.desk.get(candidate).spec.deciding.against_job_id == baseline
    assert await begin(world) == (baseline, candidate)


async def test_both_jobs_share_the_only_slot_and_others_wait(world: World) -> None:
    baseline, candidate = await begin(world)
    waiting = await world.create(endpoint="one")
    assert [world.state(job) for job in (baseline, candidate, waiting)] == ["planning", "planning", "pending"]
    queue = world.desk.queue()
    assert len(queue.running) == queue.slots == 2


async def test_a_decision_waits_until_both_endpoints_are_served(world: World) -> None:
    baseline, candidate = await begin(world, "one", "two")
    assert world.state(baseline) == "planning"
    await world.desk.cancel(ALICE, baseline)
    await world.look()
    await world.look()
    assert world.state(candidate) == "cancelled"
    world.time += 60
    world.fleet.hear(evaluator("e1", "one", 4), world.time)
    other = [
        job.job_id
        for job in await world.desk.create_all(ALICE, "s", (spec("one"), spec("two")), decision_rules.sides(request()))
    ]
    await world.settle()
    assert [world.state(job) for job in other] == ["pending", "pending"]


async def test_the_faster_job_waits_for_the_slower_one(world: World) -> None:
    fast, slow = await run(world)
    seen: set[int] = set()
    while units := offered(world, fast):
        seen.update(units)
        await answer(world, fast, units)
        await looked(world)
    assert 0 < len(seen) < 15
    assert max(seen) < 15
    await answer(world, slow, offered(world, slow))
    await looked(world)
    assert offered(world, fast)


async def test_both_ask_the_same_items_in_the_same_order(world: World) -> None:
    ids = await run(world)
    first, second = (
        [(world.work.offered[job, unit].task, tuple(world.work.offered[job, unit].positions)) for unit in (0, 1)]
        for job in ids
    )
    assert first == second
    assert all(1 <= len(positions) <= 8 for _, positions in first)


async def test_a_verdict_stops_both_jobs_at_once(world: World) -> None:
    ids = await run(world)
    world.results.decision = BETTER
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.look()
    assert [world.state(job) for job in ids] == ["cancelled", "cancelled"]
    assert "decided after 40 of 200 items. The candidate is better" in world.desk.get(ids[1]).reason
    assert {(job.decided.verdict, job.decided.pairs) for job in map(world.desk.get, ids)} == {(BETTER.verdict, 40)}
    assert not [key for key in world.work.offered if key[0] in ids]


@pytest.mark.parametrize(("baseline", "candidate", "at_once"), [("wide", "wide", 64), ("wide", "other", 128)])
async def test_few_items_are_asked_beyond_those_needed(
    world: World, baseline: str, candidate: str, at_once: int
) -> None:
    """Of models that answer at once, as those are asked the most while answers are looked at. `at_once` is twice the
    calls of each job."""
    needed = 500
    for place, name in enumerate(("wide", "other")):
        world.fleet.hear(evaluator(f"w{place}", name, 64), world.time)
    ids = await begin(world, baseline, candidate)
    for job_id in ids:
        await world.planned(job_id, plan(items=4000))
    asked: dict[str, dict[int, int]] = {job_id: {} for job_id in ids}

    def count(job_id: str) -> int:
        return sum(asked[job_id].values())

    async def evidence(jobs: Sequence[job_pb2.Job], sequence: int) -> decision_pb2.Decision:
        known = min(map(count, ids))
        # A look takes its time, and answers that come meanwhile are not in it.
        await asyncio.sleep(0.02)
        return BETTER if known >= needed else decision_pb2.Decision()

    world.results.evidence = evidence  # type: ignore[method-assign]
    while "running" in [world.state(job_id) for job_id in ids]:
        for job_id in ids:
            units = offered(world, job_id)
            asked[job_id].update({unit: len(world.work.offered[job_id, unit].positions) for unit in units})
            await answer(world, job_id, units)
        await asyncio.sleep(0.001)
    assert [world.state(job_id) for job_id in ids] == ["cancelled", "cancelled"]
    for job_id in ids:
        # Those that are out when enough are answered, and those of the look that finds it.
        assert needed <= count(job_id) <= needed + 2 * at_once


async def test_a_slow_endpoint_is_kept_busy(world: World) -> None:
    world.fleet.hear(evaluator("w", "wide", 64), world.time)
    ids = await begin(world, "wide", "wide")
    for job_id in ids:
        await world.planned(job_id, plan(items=4000))
    for _ in range(5):
        out = [(job_id, unit) for job_id in ids for unit in offered(world, job_id)]
        # Twice its calls but for parts of units, and a unit that one job is ahead.
        assert sum(len(world.work.offered[key].positions) for key in out) >= 2 * 64 - 3 * 8
        # The endpoint answers a part of what it has, and the rest has to wait for it.
        for job_id, unit in out[::2]:
            await answer(world, job_id, [unit])
        await looked(world)


async def test_where_one_job_waits_the_other_one_has_all_calls(world: World) -> None:
    world.fleet.hear(evaluator("w", "wide", 64), world.time)
    fast, slow = await begin(world, "wide", "wide")
    for job_id in (fast, slow):
        await world.planned(job_id, plan(items=4000))
    while units := offered(world, fast):
        await answer(world, fast, units)
        await looked(world)
    assert sum(len(world.work.offered[slow, unit].positions) for unit in offered(world, slow)) >= 2 * 64 - 8


async def test_a_new_leader_looks_at_once_and_finds_the_same(world: World) -> None:
    ids = await run(world)
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.stop()
    world.lead()
    for place, name in enumerate(("one", "two")):
        world.fleet.hear(evaluator(f"e{place}", name, 4), world.time)
    released = {key for key in world.work.offered if key[1] >= 0}
    world.scheduler.restore(world.store.jobs(), released, world.work.position)
    world.results.decision = BETTER
    world.results.looks.clear()
    await world.start()
    await world.look()
    assert world.results.looks
    assert [world.state(job) for job in ids] == ["cancelled", "cancelled"]


async def test_a_long_look_at_one_decision_holds_up_no_other() -> None:
    world = World(Limits(running_jobs=2))
    world.fleet.hear(evaluator("e1", "one", 4), world.time)
    world.fleet.hear(evaluator("e2", "two", 4), world.time)
    await world.start()
    large = await run(world)
    made = await world.desk.create_all(ALICE, "s", (spec("one"), spec("two")), decision_rules.sides(request()))
    await world.settle()
    small = [job.job_id for job in made]
    for job_id in small:
        await world.planned(job_id, plan(items=400))
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def evidence(jobs: Sequence[job_pb2.Job], sequence: int) -> decision_pb2.Decision:
        if jobs[0].job_id == large[0]:
            begun.set()
            await may_end.wait()
            return decision_pb2.Decision()
        return BETTER

    world.results.evidence = evidence  # type: ignore[method-assign]
    await answer(world, large[0], offered(world, large[0])[:1])
    await asyncio.wait_for(begun.wait(), 10)
    await answer(world, small[0], offered(world, small[0])[:1])
    await looked(world)
    assert [world.state(job) for job in (*small, *large)] == ["cancelled", "cancelled", "running", "running"]
    may_end.set()
    await world.stop()


async def test_a_silent_results_service_is_asked_again(world: World) -> None:
    ids = await run(world)
    world.results.down, world.results.decision = True, BETTER
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.look()
    assert [world.state(job) for job in ids] == ["running", "running"]
    world.results.down = False
    await world.look()
    await world.look()
    assert [world.state(job) for job in ids] == ["cancelled", "cancelled"]


async def test_little_is_asked_while_the_results_service_is_silent(world: World) -> None:
    ids = await run(world)
    world.results.down = True
    seen: set[int] = set()
    while units := [(job, offered(world, job)) for job in ids if offered(world, job)]:
        for job, some in units:
            seen.update(some)
            await answer(world, job, some)
    assert max(seen) < 40
    world.results.down = False
    await world.look()
    await world.look()
    assert all(offered(world, job) for job in ids)


async def test_the_other_job_stops_where_one_fails(world: World) -> None:
    ids = await run(world)
    async with world.registry.lock:
        await world.registry.fail(world.registry.jobs[ids[0]], "wrong key")
    await world.look()
    await world.look()
    assert [world.state(job) for job in ids] == ["failed", "cancelled"]
    assert "wrong key" in world.desk.get(ids[1]).reason


async def test_one_side_is_neither_retried_nor_deleted_while_the_other_one_runs(world: World) -> None:
    ids = await run(world)
    world.results.down = True
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.desk.cancel(ALICE, ids[0])
    for change in (world.desk.retry, world.desk.delete):
        with pytest.raises(ConflictError, match="of the same decision has not ended"):
            await change(ALICE, ids[0])
    world.results.down = False
    await world.look()
    await world.look()
    assert [world.state(job) for job in ids] == ["cancelled", "cancelled"]
    await world.desk.retry(ALICE, ids[0])


async def test_a_retried_job_runs_to_the_end_alone(world: World) -> None:
    ids = await run(world)
    world.results.decision = BETTER
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.look()
    await world.desk.retry(ALICE, ids[0])
    await world.settle()
    await world.planned(ids[0], plan(items=400))
    await world.run_all(ids[0])
    assert world.state(ids[0]) == "completed"
    assert world.desk.get(ids[0]).decided.pairs == 40


async def test_without_a_verdict_both_complete(world: World) -> None:
    ids = await run(world)
    while "running" in [world.state(job) for job in ids]:
        for job in ids:
            await answer(world, job, offered(world, job))
        await asyncio.sleep(0.01)
    assert [world.state(job) for job in ids] == ["completed", "completed"]
    assert {world.desk.get(job).progress.items_done for job in ids} == {800}


async def test_one_endpoint_that_takes_one_model_at_a_time_turns_between_them(world: World) -> None:
    world.fleet.hear(evaluator("e3", "gpu", 1, exclusive=True), world.time)
    ids = await run(world, "gpu", "gpu")
    turns: list[str] = []
    while "running" in [world.state(job) for job in ids]:
        ready = [job for job in ids if offered(world, job)]
        if not ready:
            await asyncio.sleep(0.01)
            continue
        assert len(ready) == 1
        turns += [ready[0]] if turns[-1:] != ready else []
        await answer(world, ready[0], offered(world, ready[0]))
    assert [world.state(job) for job in ids] == ["completed", "completed"]
    assert len(turns) <= 12


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"error": 0.7}, "error"),
        ({"error": float("nan")}, "error"),
        ({"error": -0.05}, "error"),
        # The statistics of so small an error have no numbers.
        ({"error": 1e-17}, "error"),
        ({"margin": 1.0}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"margin": -0.1}, "margin"),
    ],
)
def test_wrong_numbers_are_refused(change: dict[str, float], field: str) -> None:
    asked = request()
    for name, value in change.items():
        setattr(asked, name, value)
    with pytest.raises(InvalidRequestError) as refused:
        decision_rules.sides(asked)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.suite.tasks.append("one"),
        lambda spec: setattr(spec, "priority", job_pb2.PRIORITY_LOW),
        lambda spec: setattr(spec, "provider_batch", True),
        lambda spec: spec.judges.add(),
        lambda spec: setattr(spec.reuse, "job_id", "x"),
        lambda spec: setattr(spec, "replays_job_id", "x"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: object) -> None:
    asked = request()
    change(asked.candidate)  # type: ignore[operator]
    with pytest.raises(InvalidRequestError):
        decision_rules.sides(asked)


def test_prompts_and_parameters_may_differ() -> None:
    asked = request()
    asked.candidate.suite.shots, asked.candidate.sampling.temperature = 5, 1
    assert len(decision_rules.sides(asked)) == 2
    one, other = (dataset_spec(f"ds_{letter * 32}", limit=100) for letter in "ab")
    asked = pb.StartDecisionRequest(baseline=one, candidate=other)
    assert len(decision_rules.sides(asked)) == 2
    asked.candidate.dataset.limit = 50
    with pytest.raises(InvalidRequestError, match="same rows"):
        decision_rules.sides(asked)


async def test_jobs_with_other_items_stop_at_once(world: World) -> None:
    ids = await run(world)
    world.results.decision = decision_pb2.Decision(note="The jobs have other items.")
    await answer(world, ids[0], offered(world, ids[0])[:1])
    await world.look()
    assert [world.state(job) for job in ids] == ["cancelled", "cancelled"]
    assert world.desk.get(ids[1]).reason == "Stopped: no verdict is possible. The jobs have other items."
    assert not world.desk.get(ids[1]).HasField("decided")


async def test_callers_cannot_make_one_side(world: World) -> None:
    made = spec("one")
    made.deciding.against_job_id = "x"
    with pytest.raises(InvalidRequestError, match="set by the scheduler"):
        await world.desk.create(ALICE, "", made)


async def test_a_request_id_of_other_jobs_is_refused(world: World) -> None:
    await begin(world)
    with pytest.raises(ConflictError):
        await begin(world, "two", "one")
