"""Jobs with a budget, and answers that cost something."""

from __future__ import annotations

from services.bus import KIND_ITEMS, KIND_RETURNED, ResultHeaders
from tests.unit.scheduler.fakes import ALICE, World, plan, spec
from touchstone.v1 import endpoint_pb2, job_pb2, unit_pb2

MOST = 0.01
"""US dollars that one answer may cost."""


def priced() -> endpoint_pb2.Model:
    return endpoint_pb2.Model(model="m", input_price=1.0, output_price=2.0)


def with_budget(budget: float, max_tokens: int = 100) -> job_pb2.JobSpec:
    wanted = spec()
    wanted.budget_usd = budget
    if max_tokens:
        wanted.sampling.max_tokens = max_tokens
    return wanted


def costly(items: int = 40, unit_size: int = 4, most: float = MOST) -> unit_pb2.Plan:
    made = plan(items, unit_size, ["one"])
    made.tasks[0].most_cost_usd = most
    return made


async def running(world: World, budget: float, made: unit_pb2.Plan | None = None) -> str:
    job = await world.desk.create(ALICE, "", with_budget(budget))
    await world.settle()
    await world.planned(job.job_id, made or costly())
    return job.job_id


def units_out(world: World, job: str) -> list[int]:
    return sorted(unit for owner, unit in world.work.offered if owner == job and unit >= 0)


def answer(
    world: World,
    job: str,
    unit: int,
    cost: float | None,
    *,
    items: int = 4,
    done: bool = True,
    delivery: int = 0,
    unpriced: int = 0,
) -> None:
    """Some answers of a unit, `cost` US dollars together; of the delivery that is offered, unless another is named."""
    delivery = delivery or number(world, job, unit)
    micro = None if cost is None else cost * 1e6
    headers = ResultHeaders(
        KIND_ITEMS, 1, delivery, "one", items, done=done, cost=micro, unpriced=unpriced, evaluator="e1"
    )
    world.work.position += 1
    world.scheduler.on_items(job, unit, headers, world.work.position)
    if done:
        world.work.offered.pop((job, unit), None)


def number(world: World, job: str, unit: int) -> int:
    """Of the first delivery of the unit as it is offered."""
    offered = world.work.offered.get((job, unit))
    return 1 if offered is None else offered.earlier_deliveries + 1


async def give_back(world: World, job: str, unit: int, *, counted: bool = False) -> None:
    """An evaluator finds that the unit was begun before, and leaves it to the scheduler."""
    delivery = number(world, job, unit)
    world.work.offered.pop((job, unit), None)
    world.work.position += 1
    headers = ResultHeaders(KIND_RETURNED, 1, delivery, counted=counted)
    world.scheduler.on_returned(job, unit, headers, world.work.position)
    await world.settle()
