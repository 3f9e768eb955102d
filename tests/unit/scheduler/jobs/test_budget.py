"""A job's budget: what it needs, and which units go out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.bus import KIND_BEGUN, ResultHeaders
from services.errors import ConflictError, InvalidRequestError
from services.scheduler.jobs.budget import Spending, affordable, dollars
from services.scheduler.jobs.job import Job
from services.scheduler.ports import Told
from tests.unit.scheduler.fakes import ALICE, World, dataset_spec, evaluator, plan
from tests.unit.scheduler.jobs.priced import answer, costly, give_back, number, priced, running, units_out, with_budget
from touchstone.v1 import endpoint_pb2, evaluator_pb2, item_result_pb2, job_pb2, suite_pb2


@pytest.fixture
def world(priced_world: World) -> World:
    return priced_world


async def field_of(world: World, wanted: job_pb2.JobSpec) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    return refused.value.field


@pytest.mark.parametrize("budget", [-0.01, 1.000001e9, float("nan"), float("inf")])
async def test_a_budget_is_an_amount(world: World, budget: float) -> None:
    assert await field_of(world, with_budget(budget)) == "spec.budget_usd"


async def test_a_budget_needs_a_bound_of_every_answer(world: World) -> None:
    assert await field_of(world, with_budget(1, max_tokens=0)) == "spec.sampling.max_tokens"
    world.datasets.put()
    rows = dataset_spec()
    rows.budget_usd = 1
    assert await field_of(world, rows) == "spec.sampling.max_tokens"
    world.datasets.put(most_max_tokens=64)
    await world.desk.create(ALICE, "", rows)
    counted = with_budget(1, max_tokens=0)
    counted.mode = suite_pb2.MODE_LOGLIKELIHOOD
    world.fleet.hear(in_both_modes(), world.time)
    await world.desk.create(ALICE, "", counted)


def in_both_modes() -> evaluator_pb2.Evaluator:
    announced = evaluator()
    announced.endpoints[0].models[0].CopyFrom(priced())
    for task in announced.suites[0].tasks:
        task.modes.append(suite_pb2.MODE_LOGLIKELIHOOD)
    return announced


async def test_a_budget_needs_prices_where_the_model_is_listed(world: World) -> None:
    world.fleet.hear(evaluator(), world.time)
    assert await field_of(world, with_budget(1)) == "spec.budget_usd"
    await world.desk.create(ALICE, "", with_budget(0))
    unlisted = with_budget(1)
    unlisted.model = "other"
    await world.desk.create(ALICE, "", unlisted)


async def test_a_plan_that_does_not_tell_what_an_answer_may_cost_fails(world: World) -> None:
    job = await running(world, 1.0, costly(most=0.0))
    assert world.state(job) == "failed"
    assert "The prices of m at stub are unknown" in world.desk.get(job).reason


def test_units_go_out_while_their_most_fits_beside_what_is_spent() -> None:
    units = [(0, 4), (1, 4), (2, 4)]
    spending = Spending(spent=0.5, lost=0.1, reserved=0.2)
    assert affordable(1.0, spending, units, [0.1, 0.1, 0.1]) == units[:2]
    assert affordable(0.8, spending, units, [0.1, 0.1, 0.1]) == []
    assert affordable(0.0, spending, units, [9.0, 9.0, 9.0]) == units, "no budget"


def test_a_budget_may_be_used_to_its_last_cent() -> None:
    assert affordable(0.3, Spending(spent=0.1, reserved=0.1), [(0, 1)], [0.1]) == [(0, 1)]


async def test_no_unit_goes_out_that_could_pass_the_budget(world: World) -> None:
    job = await running(world, 0.10)
    assert units_out(world, job) == [0, 1], "two of .04 fit into .10"
    progress = world.desk.get(job).progress
    assert not progress.HasField("cost_usd")
    assert progress.reserved_usd == pytest.approx(0.08)
    answer(world, job, 0, 0.004)
    await world.settle()
    assert units_out(world, job) == [1, 2]
    progress = world.desk.get(job).progress
    assert [progress.cost_usd, progress.reserved_usd] == pytest.approx([0.004, 0.08])


async def test_answers_free_what_they_did_not_cost_before_their_unit_is_done(world: World) -> None:
    job = await running(world, 0.10)
    answer(world, job, 0, 0.002, items=3, done=False)
    await world.settle()
    assert units_out(world, job) == [0, 1, 2]


async def test_a_used_up_budget_ends_the_job_once_nothing_is_out_and_tells_what_was_spent(world: World) -> None:
    job = await running(world, 0.10)
    answer(world, job, 0, 0.03)
    await world.settle()
    assert units_out(world, job) == [1]
    answer(world, job, 1, 0.03)
    await world.settle()
    assert units_out(world, job) == [2], "to the last cent"
    assert world.state(job) == "running"
    answer(world, job, 2, 0.035)
    await world.settle()
    assert world.state(job) == "failed"
    ended = world.desk.get(job)
    assert ended.reason == (
        "The budget of $0.10 does not allow more calls: $0.095 was spent on 12 of 40 items, and the next ones may cost "
        "up to $0.040. Answers so far are kept. To continue, re-run this job with a higher budget: a new job reuses "
        "its answers and runs the rest."
    )
    assert [ended.progress.cost_usd, ended.progress.reserved_usd] == pytest.approx([0.095, 0])
    with pytest.raises(ConflictError, match="has used up its budget of"):
        await world.desk.retry(ALICE, job)


async def test_a_new_job_with_a_higher_budget_takes_the_answers_and_starts_at_nothing_spent(world: World) -> None:
    job = await running(world, 0.05)
    answer(world, job, 0, 0.04)
    await world.settle()
    wanted = job_pb2.JobSpec()
    wanted.CopyFrom(world.desk.get(job).spec)
    wanted.budget_usd = 0.5
    wanted.reuse.MergeFrom(job_pb2.Reuse(job_id=job, rerun=[item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR]))
    again = (await world.desk.create(ALICE, "", wanted)).job_id
    await world.settle()
    await world.planned(again, costly())
    assert len(units_out(world, again)) > 2
    assert world.desk.get(again).progress.cost_usd == 0


async def test_jobs_that_call_nobody_need_no_money(world: World) -> None:
    job = await running(world, 0.5)
    for unit in range(10):
        answer(world, job, unit, 0.001)
        await world.settle()
    assert world.state(job) == "completed"
    wanted = job_pb2.JobSpec()
    wanted.CopyFrom(world.desk.get(job).spec)
    wanted.budget_usd = 0.000001
    wanted.reuse.job_id = job
    again = (await world.desk.create(ALICE, "", wanted)).job_id
    await world.settle()
    await world.planned(again, plan(40, 4, ["one"]))
    await world.run_all(again)
    assert world.state(again) == "completed"


async def test_other_jobs_go_on_beside_one_that_waits_for_its_money(world: World) -> None:
    poor = await running(world, 0.04)
    rich = await world.create()
    await world.planned(rich)
    assert units_out(world, poor) == [0]
    assert units_out(world, rich)


async def test_nothing_goes_out_while_a_job_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await running(world, 0.08)
    released = len(world.work.log)
    close = world.work.close

    async def slowly(job_id: str, attempt: int, units: Sequence[int], after: int) -> Sequence[Told]:
        told = await close(job_id, attempt, units, after)
        for one in told:
            # Who follows RESULTS hears of it first.
            world.scheduler.on_returned(job, one.unit, one.headers, one.sequence)
        await world.settle()
        return told

    monkeypatch.setattr(world.work, "close", slowly)
    await world.desk.cancel(ALICE, job)
    assert world.state(job) == "cancelled"
    assert len(world.work.log) == released
    assert world.desk.get(job).progress.lost_calls == 0


async def test_answers_without_a_price_and_failed_calls_count_at_their_most(world: World) -> None:
    job = await running(world, 0.10)
    answer(world, job, 0, 0.001, items=4, unpriced=3)
    await world.settle()
    progress = world.desk.get(job).progress
    assert progress.cost_usd == pytest.approx(0.001)
    assert progress.reserved_usd == pytest.approx(0.03 + 0.04)


async def test_what_attempts_have_cost_counts_in_the_next_one(world: World) -> None:
    job = await running(world, 0.20)
    answer(world, job, 0, 0.03)
    await world.desk.cancel(ALICE, job)
    ended = world.desk.get(job).progress
    assert [ended.cost_usd, ended.reserved_usd] == pytest.approx([0.03, 0]), "three were out, no call had begun"
    world.results.have = {"one": set(range(4))}
    await world.desk.retry(ALICE, job)
    await world.settle()
    await world.planned(job, costly())
    assert units_out(world, job) == [1, 2, 3, 4]
    assert world.desk.get(job).progress.cost_usd == pytest.approx(0.03)


async def test_a_job_keeps_the_prices_it_was_planned_with(world: World) -> None:
    made = costly()
    made.receipt.prices.CopyFrom(
        endpoint_pb2.Prices(input=1.0, output=2.0, source=endpoint_pb2.Prices.SOURCE_LIST, as_of="2026-10-03")
    )
    job = (await world.desk.create(ALICE, "", with_budget(0.20))).job_id
    await world.settle()
    assert not world.work.offered[job, -1].HasField("prices"), "they are not known yet"
    await world.planned(job, made)
    assert units_out(world, job)
    assert all(world.work.offered[job, unit].prices == made.receipt.prices for unit in units_out(world, job))
    await world.desk.cancel(ALICE, job)
    await world.desk.retry(ALICE, job)
    await world.settle()
    assert world.work.offered[job, -1].prices == made.receipt.prices, "of the first attempt"


async def test_without_a_budget_nothing_is_reserved_and_costs_are_told(world: World) -> None:
    job = await world.create()
    await world.planned(job, plan(40, 4, ["one"]))
    answer(world, job, 0, 0.5, items=2, done=False)
    answer(world, job, 0, 0.5, items=2, done=False, delivery=2)
    progress = world.desk.get(job).progress
    assert (progress.cost_usd, progress.reserved_usd) == (1.0, 0.0)
    assert progress.lost_calls == 2, "of the first delivery nobody answered for"


async def test_a_scheduler_that_restarts_knows_what_was_spent_and_what_is_out(world: World) -> None:
    job = await running(world, 0.20)
    answer(world, job, 0, 0.002)
    answer(world, job, 1, 0.001, items=1, done=False)
    await give_back(world, job, 1)
    await world.settle()
    world.time += 6
    await world.stop()
    before = world.desk.get(job).progress
    stored = [known.record() for known in world.registry.jobs.values()]
    messages = world.work.position
    world.lead()
    after = world.scheduler.restore([Job.load(record) for record in stored], await world.work.released(), messages)
    assert after == messages
    now = world.desk.get(job).progress
    assert now.cost_usd == pytest.approx(before.cost_usd)
    assert now.reserved_usd == pytest.approx(before.reserved_usd)


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "$0.00"), (1234.5, "$1,234.50"), (1, "$1.00"), (0.25, "$0.25"), (0.0123, "$0.012"), (0.0000456, "$0.000046")],
)
def test_amounts_are_told_to_the_cent_or_to_two_digits(amount: float, words: str) -> None:
    assert dollars(amount) == words


def begin(world: World, job: str, unit: int, items: int) -> None:
    """An evaluator tells that it begins a call: so many of the unit's items are answered or have begun then."""
    delivery = number(world, job, unit)
    world.work.position += 1
    headers = ResultHeaders(KIND_BEGUN, 1, delivery, "one", items, evaluator="e1")
    world.scheduler.on_begun(job, unit, headers, world.work.position)


async def test_calls_lost_with_their_evaluator_count_at_their_most(world: World) -> None:
    job = await running(world, 0.10)
    answer(world, job, 0, 0.001, items=1, done=False)
    await give_back(world, job, 0)
    assert units_out(world, job) == [1], "0.031 may be gone, 0.04 is out: a third of 0.04 does not fit"
    progress = world.desk.get(job).progress
    assert (progress.lost_calls, progress.cost_usd) == (3, 0.001)
    assert [progress.lost_usd, progress.reserved_usd] == pytest.approx([0.03, 0.03 + 0.04])
    answer(world, job, 1, 0.025)
    await world.settle()
    assert units_out(world, job) == [0]
    assert world.work.offered[job, 0].begun
    answer(world, job, 0, 0.02)
    await world.settle()
    reason = world.desk.get(job).reason
    assert "$0.046 was spent on 8 of 40 items, and lost calls may have cost up to $0.030" in reason


async def test_of_a_lost_unit_count_the_calls_that_had_begun_and_were_not_answered(world: World) -> None:
    job = await running(world, 0.10)
    assert world.work.offered[job, 0].counted_until > 0, "evaluators are to tell of each call"
    begin(world, job, 0, 1)
    begin(world, job, 0, 3)
    answer(world, job, 0, 0.002, items=1, done=False)
    assert world.desk.get(job).progress.reserved_usd == pytest.approx(0.03 + 0.04), "the fourth may begin yet"
    before = world.work.offered[job, 0].counted_until
    await give_back(world, job, 0, counted=True)
    progress = world.desk.get(job).progress
    assert (progress.cost_usd, progress.lost_calls) == (0.002, 2)
    assert progress.lost_usd == pytest.approx(0.02)
    answer(world, job, 1, 0.001)
    await world.settle()
    assert world.work.offered[job, 0].counted_until > before


async def test_a_lost_unit_of_which_no_call_began_costs_nothing(world: World) -> None:
    job = await running(world, 0.10)
    await give_back(world, job, 0, counted=True)
    progress = world.desk.get(job).progress
    assert (progress.lost_usd, progress.lost_calls) == (0, 0)
    assert units_out(world, job) == [0, 1]


async def test_answers_of_an_evaluator_that_tells_of_no_call_show_that_its_units_count_whole(world: World) -> None:
    job = await running(world, 0.10)
    answer(world, job, 0, 0.001, items=1, done=False)
    await give_back(world, job, 0, counted=True)
    assert world.desk.get(job).progress.lost_calls == 3


async def test_what_is_under_way_when_a_job_is_cancelled_counts_as_lost(world: World) -> None:
    job = await running(world, 0.10)
    begin(world, job, 0, 2)
    answer(world, job, 0, 0.001, items=1, done=False)
    # The scheduler has yet to hear of this: RESULTS has it when the job is cancelled.
    world.work.position += 1
    unheard = ResultHeaders(KIND_BEGUN, 1, 1, "one", 3, evaluator="e1")
    world.work.unread.append(Told(0, unheard, world.work.position))
    await world.desk.cancel(ALICE, job)
    progress = world.desk.get(job).progress
    assert progress.lost_calls == 2, "three of unit 0 had begun, one of them was answered; none of unit 1"
    assert progress.lost_usd == progress.reserved_usd == pytest.approx(0.02)
    assert progress.cost_usd == 0.001
    assert world.store.events[-1].job.progress.lost_calls == 2, "the audit trail says the same"


async def test_where_results_has_no_room_a_cancelled_job_counts_all_that_was_out(world: World) -> None:
    job = await running(world, 0.10)
    begin(world, job, 0, 2)
    answer(world, job, 0, 0.001, items=1, done=False)
    world.work.full = True
    await world.desk.cancel(ALICE, job)
    progress = world.desk.get(job).progress
    assert progress.lost_calls == 3 + 4
    assert progress.lost_usd == progress.reserved_usd == pytest.approx(0.07)


async def test_restarts_of_evaluators_condemn_no_job_and_cost_what_had_begun(world: World) -> None:
    """Which unit ends its evaluators is for witnesses to say; without any, money and time end the job."""
    job = await running(world, 0.50)
    for restart in range(12):
        offered = world.work.offered[job, 0]
        assert offered.earlier_deliveries == restart, "so that its evaluator knows how often it was begun"
        begin(world, job, 0, 1)
        await give_back(world, job, 0, counted=True)
    progress = world.desk.get(job).progress
    assert (world.state(job), progress.lost_calls) == ("running", 12)
    assert progress.lost_usd == pytest.approx(0.12)
    for unit in range(10):
        answer(world, job, unit, 0.001)
        await world.settle()
    assert world.state(job) == "completed"
    ended = world.desk.get(job).progress
    assert ended.lost_calls == 12
    assert ended.cost_usd == pytest.approx(0.01)


async def test_restarts_without_end_use_up_the_budget(world: World) -> None:
    job = await running(world, 0.10)
    restarts = 0
    while world.state(job) == "running" and restarts < 100:
        restarts += 1
        for unit in units_out(world, job):
            begin(world, job, unit, 1)
            await give_back(world, job, unit, counted=True)
    assert (world.state(job), restarts < 12) == ("failed", True)
    ended = world.desk.get(job)
    assert "The budget of $0.10 does not allow more calls" in ended.reason
    assert 0.06 < ended.progress.lost_usd <= 0.10
