"""The ledger of a job: what is out, answered, lost and paid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.bus import KIND_BEGUN, KIND_ITEMS, KIND_RETURNED, ResultHeaders
from services.scheduler.jobs.ledger import Ledger
from touchstone.v1 import job_pb2, job_record_pb2


def tasks() -> list[job_pb2.TaskPlan]:
    return [job_pb2.TaskPlan(task="a", items=25, unit_size=10), job_pb2.TaskPlan(task="b", items=10, unit_size=10)]


def flush(items: int, *, done: bool = False, delivery: int = 1, errors: int = 0, tokens: int = 0) -> ResultHeaders:
    return ResultHeaders(KIND_ITEMS, 1, delivery, "a", items, errors, tokens, done)


def test_items_count_as_they_come_and_a_done_unit_counts_whole() -> None:
    ledger = Ledger(tasks())
    assert not ledger.record(0, flush(6), 1)
    assert ledger.items_done == 6
    assert ledger.record(0, flush(4, done=True, errors=1, tokens=9), 2)
    assert (ledger.items_done, ledger.items_failed, ledger.output_tokens) == (10, 1, 9)


def test_a_second_delivery_starts_its_unit_again() -> None:
    ledger = Ledger(tasks())
    ledger.record(0, flush(7), 1)
    ledger.record(0, flush(3, delivery=2), 2)
    assert ledger.items_done == 3
    ledger.record(0, flush(1), 3)
    assert ledger.items_done == 3, "a late flush of the first delivery is not added"


def test_a_message_seen_twice_counts_once() -> None:
    ledger = Ledger(tasks())
    ledger.record(0, flush(5), 7)
    ledger.record(0, flush(5), 7)
    assert ledger.items_done == 5


def test_a_late_first_delivery_that_finishes_ends_the_unit() -> None:
    ledger = Ledger(tasks())
    ledger.record(0, flush(7), 1)
    ledger.record(0, flush(3, delivery=2), 2)
    assert ledger.record(0, flush(3, done=True), 3)
    assert ledger.items_done == 10


def test_replay_after_a_checkpoint_gives_the_same_figures() -> None:
    messages = [
        (0, flush(6)),
        (1, flush(5, errors=1)),
        (0, flush(4, done=True)),
        (1, flush(2, delivery=2)),
        (3, flush(10, done=True, tokens=5)),
        (1, flush(8, delivery=2, done=True)),
        (2, flush(1)),
    ]
    whole = Ledger(tasks())
    for sequence, (unit, headers) in enumerate(messages, 1):
        whole.record(unit, headers, sequence)
    for cut in range(len(messages) + 1):
        first = Ledger(tasks())
        for sequence, (unit, headers) in enumerate(messages[:cut], 1):
            first.record(unit, headers, sequence)
        record = job_record_pb2.JobRecord(job=job_pb2.Job(plan=tasks()))
        first.save(record)
        second = Ledger.load(job_record_pb2.JobRecord.FromString(record.SerializeToString()))
        for sequence, (unit, headers) in enumerate(messages, 1):
            if sequence > record.results_sequence:
                second.record(unit, headers, sequence)
        assert (second.items_done, second.items_failed, second.output_tokens) == (
            whole.items_done,
            whole.items_failed,
            whole.output_tokens,
        ), f"cut after {cut}"
        assert second.unreleased(9) == whole.unreleased(9)


def test_answers_without_tokens_are_counted_in_flight_when_done_and_after_a_restart() -> None:
    ledger = Ledger(tasks())
    untold = replace(flush(4), untold=4)
    assert ResultHeaders.decode(untold.encode()) == untold
    ledger.record(0, untold, 1)
    ledger.record(0, replace(flush(6, done=True), untold=2), 2)
    ledger.record(1, untold, 3)
    record = job_record_pb2.JobRecord(job=job_pb2.Job(plan=tasks()))
    ledger.save(record)
    again = Ledger.load(record)
    again.record(1, untold, 3)
    for one in (ledger, again):
        progress = job_pb2.Progress()
        one.progress(1.0, progress)
        assert progress.output_untold == 10


def test_units_are_released_in_plan_order_and_a_lost_one_comes_back() -> None:
    ledger = Ledger(tasks())
    assert ledger.unreleased(2) == [(0, 10), (1, 10)]
    ledger.released |= {0, 1}
    assert ledger.unreleased(9) == [(2, 5), (3, 10)]
    ledger.charge(0)
    ledger.free(0)
    assert ledger.unreleased(1) == [(0, 10)]


def test_a_retry_keeps_what_is_stored() -> None:
    ledger = Ledger(tasks())
    ledger.keep({1: (12, 13), 3: ()})
    assert ledger.items_done == 15
    assert ledger.unreleased(9) == [(1, 2), (3, 10)]
    assert ledger.positions(1) == (12, 13)


def test_rate_and_time_left_follow_the_last_seconds() -> None:
    ledger = Ledger([job_pb2.TaskPlan(task="a", items=1000, unit_size=10)])
    progress = job_pb2.Progress()
    for second in range(40):
        ledger.record(second, flush(10, done=True, tokens=30), second + 1)
        ledger.sample(100.0 + second)
    ledger.progress(139.0, progress)
    assert progress.items_per_second == pytest.approx(10, rel=0.05)
    assert progress.tokens_per_second == pytest.approx(30, rel=0.05)
    assert progress.eta_s == pytest.approx(60, rel=0.05)
    assert progress.eta_low_s <= progress.eta_s <= progress.eta_high_s


def paid(items: int, cost: float, *, delivery: int = 1, done: bool = False, unpriced: int = 0) -> ResultHeaders:
    return ResultHeaders(
        KIND_ITEMS, 1, delivery, "a", items, done=done, cost=cost * 1e6, unpriced=unpriced, retries=2, evaluator="e1"
    )


def begun(items: int, *, delivery: int = 1) -> ResultHeaders:
    return ResultHeaders(KIND_BEGUN, 1, delivery, "a", items, evaluator="e1")


RETURNED = ResultHeaders(KIND_RETURNED, 1, 2)
COUNTED = ResultHeaders(KIND_RETURNED, 1, 2, counted=True)


def show(ledger: Ledger, unit: int, headers: ResultHeaders, sequence: int) -> None:
    if headers.kind == KIND_RETURNED:
        ledger.returned(unit, headers, sequence)
    elif headers.kind == KIND_BEGUN:
        ledger.begun(unit, headers, sequence)
    else:
        ledger.record(unit, headers, sequence)


def test_replay_after_a_checkpoint_gives_the_same_costs() -> None:
    plans = tasks()
    for plan in plans:
        plan.most_cost_usd = 0.5
    plans[1].items = 20
    messages = [
        (1, paid(2, 0.3)),
        (0, paid(6, 1.0, unpriced=1)),
        (0, RETURNED),
        (2, paid(1, 0.25)),
        (0, paid(3, 0.5)),
        (0, paid(7, 1.5, delivery=3, done=True)),
        (3, RETURNED),
        (2, paid(5, 0.75, delivery=3, done=True)),
        (3, paid(1, 0.125, delivery=3)),
        (1, paid(8, 0.5, done=True)),
        (4, begun(3)),
        (4, paid(2, 0.25)),
        (4, begun(5)),
        (4, COUNTED),
        (4, begun(2)),
        (4, begun(1, delivery=3)),
    ]

    def figures(ledger: Ledger) -> tuple[float, ...]:
        spending = ledger.spending()
        progress = job_pb2.Progress()
        ledger.progress(0.0, progress)
        assert progress.lost_usd == spending.lost
        return spending.spent, spending.lost, spending.reserved, ledger.taken_back(3), progress.lost_calls

    whole = Ledger(plans)
    for sequence, (unit, headers) in enumerate(messages, 1):
        show(whole, unit, headers, sequence)
    # Unit 0: four unheard and one without a price; what is told of them later is paid, too. Unit 3 was not heard of.
    # Unit 2: two deliveries of five items, of which one answered; then all of it. Unit 4: three begun and unheard.
    lost_calls = (4 + 1) + 10 + (5 + 4) + 3
    spent = (0.3 + 0.5) + (1.0 + 0.5 + 1.5) + (0.25 + 0.75) + 0.125 + 0.25
    assert figures(whole) == pytest.approx((spent, 0.5 * lost_calls, 0.5 * (9 + 10), 1, lost_calls))
    for cut in range(len(messages) + 1):
        first = Ledger(plans)
        for sequence, (unit, headers) in enumerate(messages[:cut], 1):
            show(first, unit, headers, sequence)
        record = job_record_pb2.JobRecord(job=job_pb2.Job(plan=plans))
        first.save(record)
        second = Ledger.load(job_record_pb2.JobRecord.FromString(record.SerializeToString()))
        for sequence, (unit, headers) in enumerate(messages, 1):
            if sequence > record.results_sequence:
                show(second, unit, headers, sequence)
        assert figures(second) == pytest.approx(figures(whole)), f"cut after {cut}"


def test_the_pace_and_what_was_kept_are_known_after_a_restart() -> None:
    ledger = Ledger([job_pb2.TaskPlan(task="a", items=1000, unit_size=10)])
    ledger.keep(dict.fromkeys(range(10, 100), ()))
    for second in range(40):
        ledger.record(10 + second, flush(10, done=True, tokens=30), second + 1)
        ledger.sample(100.0 + second)
    before, after = job_pb2.Progress(), job_pb2.Progress()
    ledger.progress(139.0, before)
    record = job_record_pb2.JobRecord(job=job_pb2.Job(plan=[job_pb2.TaskPlan(task="a", items=1000, unit_size=10)]))
    ledger.save(record)
    again = Ledger.load(record)
    again.progress(139.0, after)
    assert again.kept_items == 100
    assert after == before
    assert after.eta_s == pytest.approx(50, rel=0.05)
    assert after.eta_low_s < after.eta_s < after.eta_high_s


def test_units_that_an_evaluator_has_begun_are_known_until_they_are_done() -> None:
    ledger = Ledger(tasks())
    for unit, name in ((0, "e1"), (1, "e2"), (3, "e1")):
        ledger.record(unit, ResultHeaders(KIND_ITEMS, 1, items=1, evaluator=name), unit + 1)
    assert (ledger.held_by("e1"), ledger.held_by("e2"), ledger.held_by("e3")) == ([0, 3], [1], [])
    ledger.record(0, ResultHeaders(KIND_ITEMS, 1, items=9, done=True, evaluator="e1"), 7)
    ledger.record(3, ResultHeaders(KIND_ITEMS, 1, delivery=2, items=1, evaluator="e2"), 8)
    assert (ledger.held_by("e1"), ledger.held_by("e2")) == ([], [1, 3])


def test_costs_are_added_up_without_losing_digits() -> None:
    ledger = Ledger([job_pb2.TaskPlan(task="one", items=1000, unit_size=1)])
    for unit in range(1000):
        headers = ResultHeaders(kind=KIND_ITEMS, attempt=1, delivery=1, items=1, done=True, cost=0.1e6)
        ledger.record(unit, headers, unit + 1)
    progress = job_pb2.Progress()
    ledger.progress(0.0, progress)
    assert (ledger.cost_usd, progress.cost_usd) == (100.0, 100.0)


@pytest.mark.parametrize("told", ["nan", "inf", "-inf", "-100.0", "1e308", "much"])
def test_a_sum_of_costs_that_cannot_be_counts_as_not_known(told: str) -> None:
    """Earlier versions sent what providers said."""
    sent = ResultHeaders(KIND_ITEMS, 1, items=10, done=True, cost=1.0).encode() | {"Touchstone-Cost": told}
    headers = ResultHeaders.decode(sent)
    assert (headers.cost, headers.unpriced) == (None, 10)
    ledger = Ledger(tasks())
    ledger.record(0, headers, 1)
    ledger.record(1, replace(headers, cost=2e6, unpriced=0), 2)
    assert ledger.cost_usd == 2.0


@pytest.mark.parametrize("stored", [float("nan"), float("inf"), -1.0, 1e308])
def test_a_record_of_costs_that_cannot_be_is_read(stored: float) -> None:
    record = job_record_pb2.JobRecord(job=job_pb2.Job(plan=tasks()), cost_usd=stored, lost_usd=stored)
    ledger = Ledger.load(record)
    progress = job_pb2.Progress()
    ledger.progress(0.0, progress)
    assert not progress.HasField("cost_usd")
    assert progress.reserved_usd == 0
