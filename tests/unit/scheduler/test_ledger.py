from __future__ import annotations

import pytest

from services.bus import KIND_ITEMS, ResultHeaders
from services.scheduler.ledger import Ledger
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


def test_units_are_released_in_plan_order_and_a_lost_one_comes_back() -> None:
    ledger = Ledger(tasks())
    assert ledger.unreleased(2) == [(0, 10), (1, 10)]
    ledger.released |= {0, 1}
    assert ledger.unreleased(9) == [(2, 5), (3, 10)]
    ledger.take_back(0)
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
