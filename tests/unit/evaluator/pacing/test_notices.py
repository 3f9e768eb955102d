"""Few lines for many events."""

from __future__ import annotations

from services.evaluator.pacing.notices import Firsts, Seldom


def test_one_of_many_is_let_through_with_their_number() -> None:
    seldom = Seldom(every_s=30)
    assert [seldom.due(now) for now in (0.0, 1.0, 29.9, 30.0, 31.0, 90.0)] == [1, 0, 0, 3, 0, 2]


def test_a_task_comes_first_once_for_each_attempt() -> None:
    firsts = Firsts()
    assert firsts.is_first(("j", 1), "sst2")
    assert not firsts.is_first(("j", 1), "sst2")
    assert firsts.is_first(("j", 1), "cola")
    assert firsts.is_first(("j", 2), "sst2")


def test_old_jobs_are_forgotten() -> None:
    firsts = Firsts()
    for number in range(1000):
        firsts.is_first((str(number), 1), "a")
    assert firsts.is_first(("0", 1), "a")
    assert not firsts.is_first(("999", 1), "a")
