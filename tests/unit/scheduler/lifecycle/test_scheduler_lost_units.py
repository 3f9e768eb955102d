"""Units that left WORK without a word: what they may have cost is stored before they go out again."""

from __future__ import annotations

import pytest

from services.bus import KIND_BEGUN, ResultHeaders
from tests.unit.scheduler.fakes import ALICE, FakeStore, FakeWork, World, evaluator, plan, spec
from touchstone.v1 import job_record_pb2, unit_pb2


class WatchedWork(FakeWork):
    """Notes for every release which units are charged in the store by then."""

    def __init__(self, store: FakeStore) -> None:
        super().__init__()
        self.store = store
        self.charged: list[tuple[int, list[int]]] = []

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        record = job_record_pb2.JobRecord.FromString(self.store.records[unit.job_id])
        self.charged.append((unit.unit, [entry.unit for entry in record.charged_units]))
        return await super().release(endpoint, priority, unit)


async def test_the_charge_of_a_lost_unit_is_stored_before_the_unit_is_released_again() -> None:
    world = World()
    world.work = world.registry.work = watched = WatchedWork(world.store)
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    priced = plan(40, 4, ["one"])
    priced.tasks[0].most_cost_usd = 0.01
    await world.planned(job, priced)
    watched.charged.clear()
    del watched.offered[job, 1]
    for _ in range(2):
        world.time += 16
        world.fleet.hear(evaluator(), world.time)
        await world.look()
    assert watched.charged[0] == (1, [1])
    await world.stop()
    (restored,) = world.store.jobs()
    assert restored.ledger is not None
    assert restored.ledger.spending().lost == pytest.approx(4 * 0.01)


async def test_of_a_lost_unit_with_a_counted_bill_count_the_calls_that_had_begun() -> None:
    world = World()
    announced = evaluator()
    announced.endpoints[0].models[0].input_price = announced.endpoints[0].models[0].output_price = 1.0
    world.fleet.hear(announced, world.time)
    await world.start()
    wanted = spec()
    wanted.budget_usd, wanted.sampling.max_tokens = 1.0, 100
    job = (await world.desk.create(ALICE, "", wanted)).job_id
    await world.settle()
    priced = plan(40, 4, ["one"])
    priced.tasks[0].most_cost_usd = 0.01
    await world.planned(job, priced)
    world.work.position += 1
    world.scheduler.on_begun(job, 1, ResultHeaders(KIND_BEGUN, 1, 1, "one", 2), world.work.position)
    del world.work.offered[job, 1]
    for _ in range(2):
        world.time += 16
        world.fleet.hear(announced, world.time)
        await world.look()
    progress = world.desk.get(job).progress
    assert (progress.lost_calls, progress.lost_usd) == (2, 0.02)
    assert world.work.offered[job, 1].earlier_deliveries > 0
    assert world.work.offered[job, 1].begun
    await world.stop()


async def test_a_lost_unit_whose_answers_are_all_stored_is_done_and_asked_no_more() -> None:
    world = World()
    world.fleet.hear(evaluator(concurrency=40), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job, plan(40, 10, ["one"]))
    world.results.have = {"one": set(range(10, 25))}
    for unit in (1, 2):
        del world.work.offered[job, unit]
    for _ in range(2):
        world.time += 16
        world.fleet.hear(evaluator(concurrency=40), world.time)
        await world.look()

    # Unit 1 has every answer; of unit 2 half are missing, so it runs again.
    assert (job, 1) not in world.work.offered
    assert (job, 2) in world.work.offered
    for unit in (0, 2, 3):
        world.report(job, unit, items=10, done=True)
    await world.settle()
    assert world.state(job) == "completed"
    await world.stop()


async def test_lost_units_wait_while_the_results_service_is_silent() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job, plan(40, 10, ["one"]))
    world.results.down = True
    del world.work.offered[job, 1]
    for down in (True, False):
        world.results.down = down
        world.time += 16
        world.fleet.hear(evaluator(), world.time)
        await world.look()
        assert ((job, 1) in world.work.offered) is not down
    await world.stop()


async def test_a_unit_that_is_lost_again_and_again_fails_its_job_with_the_reason() -> None:
    world = World()
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    job = await world.create()
    await world.planned(job)
    for lost in range(11):
        assert world.state(job) == "running", f"after {lost} losses"
        world.work.offered.pop((job, 1))
        for _ in range(2):
            world.time += 16
            world.fleet.hear(evaluator(), world.time)
            await world.scheduler._upkeep._find_lost(world.time)
        await world.settle()
    assert world.state(job) == "failed"
    assert "Unit 1 was lost from the queue 11 times without an answer" in world.desk.get(job).reason
    await world.stop()
