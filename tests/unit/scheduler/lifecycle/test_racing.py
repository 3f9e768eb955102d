"""Races while their jobs run: one write starts them, each beaten model stops, and the last ones stop together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services.errors import ConflictError, InvalidRequestError
from services.scheduler.admission import decision_rules
from services.scheduler.ports import Change, LeadershipLostError
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, FakeStore, World, evaluator, plan, spec
from touchstone.v1 import decision_pb2, job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

Racer = decision_pb2.Racer
ENDPOINTS = ("one", "two", "three")


def serve(world: World, endpoints: Sequence[str] = ENDPOINTS) -> None:
    for place, name in enumerate(endpoints):
        world.fleet.hear(evaluator(f"e{place}", name, 4), world.time)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(Limits(running_jobs=1, pending_per_owner=5))
    serve(made)
    await made.start()
    yield made
    await made.stop()


def request(*endpoints: str) -> pb.StartDecisionRequest:
    first, second, *rest = map(spec, endpoints)
    return pb.StartDecisionRequest(request_id="r", baseline=first, candidate=second, further_candidates=rest)


async def begin(world: World, *endpoints: str) -> list[str]:
    asked = request(*endpoints)
    made = await world.desk.create_all(ALICE, "r", decision_rules.specs(asked), decision_rules.sides(asked))
    await world.settle()
    return [job.job_id for job in made]


async def run(world: World) -> list[str]:
    ids = await begin(world, *ENDPOINTS)
    for job_id in ids:
        await world.planned(job_id, plan(items=400))
    return ids


def offered(world: World, job_id: str) -> list[int]:
    return sorted(unit for (job, unit) in world.work.offered if job == job_id and unit >= 0)


async def answer(world: World, job_id: str, units: Sequence[int]) -> None:
    for unit in units:
        world.report(job_id, unit, items=len(world.work.offered[job_id, unit].positions), done=True)
    await world.settle()


def standing(ids: Sequence[str], **states: str) -> decision_pb2.Decision:
    """`beaten` is by the last model; others are racing."""
    racers = []
    for place, job_id in enumerate(ids):
        state = states.get(f"m{place}", "RACING")
        racer = Racer(job=job_pb2.Job(job_id=job_id), state=f"STATE_{state}", against_job_id=ids[-1])
        if state == "BEATEN":
            racer.beaten_at, racer.difference, racer.low, racer.high = 40, -0.2, -0.3, -0.1
        racers.append(racer)
    return decision_pb2.Decision(items_total=800, racers=racers)


def states(world: World, ids: Sequence[str]) -> list[str]:
    return [world.state(job_id) for job_id in ids]


async def news(world: World, job_id: str, found: decision_pb2.Decision) -> None:
    world.results.decision = found
    await answer(world, job_id, offered(world, job_id)[:1])
    await looked(world)


async def looked(world: World) -> None:
    """Lets the scheduler look at decisions, as it does twenty times a second at most."""
    await asyncio.sleep(0.15)
    await world.settle()


async def test_all_jobs_name_each_other_and_the_same_request_returns_them(world: World) -> None:
    ids = await begin(world, *ENDPOINTS)
    specs = [world.desk.get(job_id).spec.deciding for job_id in ids]
    assert [list(side.race_job_ids) for side in specs] == [ids] * 3
    assert [(side.candidate, side.against_job_id) for side in specs] == [
        (False, ids[1]),
        (True, ids[0]),
        (True, ids[0]),
    ]
    assert await begin(world, *ENDPOINTS) == ids
    with pytest.raises(ConflictError):
        await begin(world, *ENDPOINTS, "one")


async def test_all_jobs_share_the_only_slot(world: World) -> None:
    ids = await begin(world, *ENDPOINTS)
    waiting = await world.create(endpoint="one")
    assert states(world, [*ids, waiting]) == ["planning"] * 3 + ["pending"]
    queue = world.desk.queue()
    assert len(queue.running) == queue.slots == 3


async def test_units_do_not_carry_the_other_jobs(world: World) -> None:
    ids = await run(world)
    assert not any(unit.spec.deciding.race_job_ids for (job, _), unit in world.work.offered.items() if job in ids)


async def test_a_race_needs_room_for_one_and_has_at_most_20_models(world: World) -> None:
    assert len(await begin(world, *(["one"] * 20))) == 20
    with pytest.raises(InvalidRequestError, match="at most 20") as refused:
        decision_rules.sides(request(*(["one"] * 21)))
    assert refused.value.field == "further_candidates"
    asked = request(*ENDPOINTS)
    asked.further_candidates[0].suite.limit = 5
    with pytest.raises(InvalidRequestError, match="same items") as refused:
        decision_rules.sides(asked)
    assert refused.value.field == "further_candidates[0]"


async def test_a_beaten_model_stops_and_the_others_go_on(world: World) -> None:
    ids = await run(world)
    await news(world, ids[1], standing(ids, m0="BEATEN"))
    assert states(world, ids) == ["cancelled", "running", "running"]
    out = world.desk.get(ids[0])
    assert out.reason == "Stopped: m@three is better, after 40 of 800 items. A retry runs the rest."
    assert out.decided == job_pb2.Decided(
        verdict=job_pb2.DECISION_VERDICT_WORSE, pairs=40, difference=-0.2, low=-0.3, high=-0.1, against_job_id=ids[2]
    )
    assert not [key for key in world.work.offered if key[0] == ids[0]]
    with pytest.raises(ConflictError, match="has not ended"):
        await world.desk.retry(ALICE, ids[0])
    # It holds nobody up.
    for _ in range(4):
        for job_id in ids[1:]:
            await answer(world, job_id, offered(world, job_id))
        await looked(world)
    assert all(offered(world, job_id) for job_id in ids[1:])


async def test_the_winner_stops_with_the_last_other_one(world: World) -> None:
    ids = await run(world)
    found = standing(ids, m0="BEATEN", m1="BEATEN", m2="BEST")
    found.verdict, found.decided_at = job_pb2.DECISION_VERDICT_BEST, 40
    await news(world, ids[1], found)
    assert states(world, ids) == ["cancelled"] * 3
    best = world.desk.get(ids[2])
    assert best.reason == (
        "Stopped: decided after 40 of 800 items. m@three is the best of 3 models. A retry runs the rest."
    )
    assert (best.decided.verdict, best.decided.pairs) == (job_pb2.DECISION_VERDICT_BEST, 40)
    assert world.desk.get(ids[0]).decided.verdict == job_pb2.DECISION_VERDICT_WORSE


async def test_models_that_are_not_told_apart_stop_together(world: World) -> None:
    ids = await run(world)
    found = standing(ids, m0="BEATEN", m1="LEFT", m2="LEFT")
    found.verdict, found.decided_at = job_pb2.DECISION_VERDICT_NO_DIFFERENCE, 300
    await news(world, ids[1], found)
    assert states(world, ids) == ["cancelled"] * 3
    assert "m@two and m@three are not shown to differ" in world.desk.get(ids[1]).reason
    assert "The best is one of them." in world.desk.get(ids[2]).reason
    assert [world.desk.get(job_id).decided.verdict for job_id in ids[1:]] == [found.verdict] * 2


async def test_a_race_goes_on_without_one_that_fails_but_not_alone(world: World) -> None:
    ids = await run(world)
    async with world.registry.lock:
        await world.registry.fail(world.registry.jobs[ids[0]], "wrong key")
    world.results.decision = standing(ids, m0="WITHDRAWN")
    await world.look()
    await world.look()
    assert states(world, ids) == ["failed", "running", "running"]
    looks = len(world.results.looks)
    await world.look()
    await world.look()
    assert len(world.results.looks) == looks
    async with world.registry.lock:
        await world.registry.fail(world.registry.jobs[ids[1]], "no such model")
    await world.look()
    await world.look()
    assert states(world, ids) == ["failed", "failed", "cancelled"]
    assert "no such model" in world.desk.get(ids[2]).reason
    assert not world.desk.get(ids[2]).HasField("decided")


async def test_models_that_left_a_race_are_kept_until_it_ends() -> None:
    world = World(Limits(running_jobs=1, keep_finished_s=100, absent_after_s=1_000))
    serve(world)
    await world.start()
    ids = await run(world)
    async with world.registry.lock:
        await world.registry.fail(world.registry.jobs[ids[0]], "wrong key")
    world.results.decision = standing(ids, m0="WITHDRAWN")
    world.time += 101
    await world.look()
    await world.look()
    # Without its job, the results service would take it for beaten.
    assert states(world, ids) == ["failed", "running", "running"]
    await world.desk.cancel(ALICE, ids[1])
    await world.look()
    assert states(world, ids) == ["failed", "cancelled", "cancelled"]
    world.time += 101
    for _ in range(5):
        # At rest, the clock is looked at every 2 s.
        await world.look()
    assert not {*ids} & {*world.registry.jobs}
    await world.stop()


async def test_the_faster_ones_wait_for_the_slowest(world: World) -> None:
    ids = await run(world)
    seen: set[int] = set()
    for _ in range(6):
        for job_id in ids[:2]:
            seen.update(offered(world, job_id))
            await answer(world, job_id, offered(world, job_id))
        await looked(world)
    assert max(seen) < 15
    await answer(world, ids[2], offered(world, ids[2]))
    await looked(world)
    assert all(offered(world, job_id) for job_id in ids)


class Failing(FakeStore):
    """Loses leadership at one of its writes, before or after it is stored."""

    def __init__(self, at: int, stored: bool) -> None:
        super().__init__()
        self.left, self._stored = at, stored

    async def commit(self, changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        self.left -= 1
        if self.left == 0:
            if self._stored:
                await super().commit(changes, pending_by_owner)
            raise LeadershipLostError("killed")
        await super().commit(changes, pending_by_owner)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("at", [1, 2, 21, 41, 42, 43])
async def test_a_kill_at_any_write_leaves_all_of_a_race_or_nothing(at: int, stored: bool) -> None:
    """Of the start of 20 jobs: they are created, go to planning, run, some are beaten, and the rest stops."""
    store = Failing(at, stored)
    world = World(Limits(running_jobs=1), store)
    serve(world, ["one"])
    await world.start()
    ids: list[str] = []
    for _ in range(2):
        try:
            ids = ids or await begin(world, *(["one"] * 20))
            for job_id in ids:
                if world.state(job_id) == "planning":
                    await world.planned(job_id, plan(items=400))
            await news(world, ids[1], standing(ids, **{f"m{place}": "BEATEN" for place in range(0, 18, 3)}))
            found = standing(ids, **{f"m{place}": "BEATEN" for place in range(19)}, m19="BEST")
            found.verdict, found.decided_at = job_pb2.DECISION_VERDICT_BEST, 40
            await news(world, ids[1], found)
            if store.left > 0 or not world.registry.closed:
                break
        except (LeadershipLostError, AssertionError, IndexError):
            pass
        await world.stop()
        # One write for all: there are none, or 20 that name each other.
        assert len(store.jobs()) in (0, 20)
        world.lead()
        serve(world, ["one"])
        released = {key for key in world.work.offered if key[1] >= 0}
        world.scheduler.restore(store.jobs(), released, world.work.position)
        await world.start()
        ids = [job.id for job in sorted(store.jobs(), key=lambda job: job.id)]
    await asyncio.sleep(0)
    assert len(ids) == 20
    assert states(world, ids) == ["cancelled"] * 20
    assert {tuple(world.desk.get(job_id).spec.deciding.race_job_ids) for job_id in ids} == {tuple(ids)}
    verdicts = [world.desk.get(job_id).decided.verdict for job_id in ids]
    assert verdicts == [job_pb2.DECISION_VERDICT_WORSE] * 19 + [job_pb2.DECISION_VERDICT_BEST]
    await world.stop()
