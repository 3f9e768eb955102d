"""How often something happens."""

from __future__ import annotations

from services.evaluator.pacing.rate import Rate


def test_the_rate_is_that_of_the_last_half_second() -> None:
    rate = Rate()
    for event in range(200):
        rate.count(event / 100)
    assert 95 <= rate.per_second <= 105
    for event in range(20):
        rate.count(2 + event / 10)
    assert 9 <= rate.per_second <= 12


def test_nothing_is_known_at_the_beginning_and_after_a_pause() -> None:
    rate = Rate()
    rate.count(100)
    assert rate.per_second == 0
    for event in range(200):
        rate.count(100 + event / 100)
    assert rate.per_second > 0
    rate.count(200)
    assert rate.per_second == 0
