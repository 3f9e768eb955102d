"""When calls are tried again, when items and jobs are given up."""

from __future__ import annotations

import random

import pytest

from services.evaluator.pacing.retry import (
    FREE_RETRIES,
    MOST_REFUSALS,
    MOST_TRIES,
    Budget,
    Outage,
    Tries,
    Troubles,
    backoff_s,
    delay_s,
)
from services.evaluator.providers.protocol.provider import ProviderError

FAILED = ProviderError("500", retryable=True)
AWAY = ProviderError("refused", retryable=True, unreachable=True)
LIMITED = ProviderError("429", retryable=True, rate_limited=True)
REFUSED = ProviderError("400")


def ceiling(low: float, high: float) -> float:
    """Always draws the most."""
    return high


@pytest.mark.parametrize(("tries", "most"), [(1, 0.5), (2, 1), (3, 2), (7, 32), (8, 60), (50, 60)])
def test_backoff_doubles_from_half_a_second_to_a_minute(tries: int, most: float) -> None:
    assert backoff_s(tries, ceiling) == most


def test_backoff_is_spread_over_its_whole_range() -> None:
    uniform = random.Random(1).uniform
    waits = [backoff_s(3, uniform) for _ in range(1000)]
    assert min(waits) < 0.1
    assert max(waits) > 1.9


def test_the_providers_own_wish_is_honoured_up_to_a_cap() -> None:
    asked = ProviderError("429", retryable=True, rate_limited=True, retry_after_s=26)
    assert delay_s(asked, 1, random.Random(1).uniform) >= 26
    asked.retry_after_s = 86400
    assert delay_s(asked, 1, ceiling) <= 121


def test_an_endpoint_that_is_away_is_looked_for_every_five_seconds() -> None:
    assert delay_s(AWAY, 9, ceiling) == 5
    assert delay_s(FAILED, 9, ceiling) == 60


@pytest.mark.parametrize("error", [FAILED, AWAY])
def test_before_the_first_success_an_outage_lasts_40_seconds(error: ProviderError) -> None:
    outage = Outage(40, 300)
    assert not outage.failure(error, 0, 1)
    assert not outage.failure(error, 30, 39)
    assert outage.failure(error, 39, 41)


def test_after_a_success_an_outage_lasts_five_minutes() -> None:
    outage = Outage(40, 300)
    outage.success(10)
    assert not outage.failure(AWAY, 20, 25)
    assert not outage.failure(AWAY, 300, 315)
    assert outage.failure(AWAY, 318, 321)


def test_a_success_ends_an_outage() -> None:
    outage = Outage(40, 300)
    outage.failure(FAILED, 0, 30)
    outage.success(35)
    assert not outage.failure(FAILED, 36, 200)


def test_a_failure_beside_successes_is_no_outage() -> None:
    outage = Outage(40, 300)
    outage.success(500)
    assert not outage.failure(FAILED, 0, 600)
    assert outage.down_since is None


def test_a_rate_limit_before_the_first_success_has_the_long_patience() -> None:
    outage = Outage(40, 300)
    assert not outage.failure(LIMITED, 0, 100)
    assert outage.failure(LIMITED, 250, 301)


def test_calls_refused_for_good_fail_the_job_unless_one_worked() -> None:
    outage = Outage(40, 300)
    given_up = [outage.failure(REFUSED, 0, 0) for _ in range(MOST_REFUSALS)]
    assert given_up == [False] * (MOST_REFUSALS - 1) + [True]
    worked = Outage(40, 300)
    worked.success(0)
    assert not any(worked.failure(REFUSED, 1, 1) for _ in range(100))


def test_an_item_is_given_up_after_six_tries_while_others_work() -> None:
    outage, tries = Outage(40, 300), Tries()
    outage.success(5)
    results = []
    for now in range(10, 16):
        results.append(tries.failed(FAILED, outage, Budget(), now))
        outage.success(now + 0.5)
    assert results == [False] * (MOST_TRIES - 1) + [True]


def test_an_item_is_not_given_up_while_nothing_works() -> None:
    outage, tries = Outage(40, 300), Tries()
    outage.success(5)
    assert not any(tries.failed(FAILED, outage, Budget(), 10 + second) for second in range(59))
    assert tries.failed(FAILED, outage, Budget(), 71)


def test_neither_rate_limits_nor_outages_use_up_tries() -> None:
    outage, tries, budget = Outage(40, 300), Tries(), Budget()
    outage.success(5)
    for second in range(200):
        assert not tries.failed(LIMITED if second % 2 else AWAY, outage, budget, 10 + second)
        outage.success(10.5 + second)
    assert budget.spent == 0


def test_a_refusal_gives_the_item_up_at_once() -> None:
    assert Tries().failed(REFUSED, Outage(40, 300), Budget(), 0)


def test_a_job_that_has_used_up_its_retries_gives_items_up_at_once_and_says_so() -> None:
    outage, budget = Outage(40, 300), Budget()
    outage.success(10)
    first = [Tries().failed(FAILED, outage, budget, 9) for _ in range(FREE_RETRIES)]
    last = Tries()
    assert not any(first)
    assert last.failed(FAILED, outage, budget, 9)
    assert last.note == "The call was not retried: the job has used up its 100 retries in this evaluator."


def test_every_five_answers_allow_one_more_retry() -> None:
    outage, budget = Outage(40, 300), Budget(answered=1000)
    outage.success(10)
    given_up = [Tries().failed(FAILED, outage, budget, 9) for _ in range(FREE_RETRIES + 201)]
    assert given_up == [False] * (FREE_RETRIES + 200) + [True]


def test_while_nothing_works_waiting_costs_no_retries() -> None:
    outage, budget = Outage(40, 300), Budget()
    outage.success(5)
    for _ in range(10 * FREE_RETRIES):
        outage.failure(FAILED, 10, 11)
        assert not Tries().failed(FAILED, outage, budget, 11)
    assert budget.spent == 0


def test_each_attempt_of_a_job_has_troubles_of_its_own() -> None:
    troubles = Troubles(40.0, 300.0)
    first = troubles.of(("job", 1))
    assert troubles.of(("job", 1)) is first
    assert troubles.of(("job", 2)) is not first
    assert (first.outage.first_outage_s, first.outage.outage_s) == (40.0, 300.0)


def test_jobs_that_were_not_asked_about_for_long_are_forgotten() -> None:
    troubles = Troubles(40.0, 300.0)
    kept, forgotten = troubles.of(("kept", 1)), troubles.of(("forgotten", 1))
    for number in range(255):
        troubles.of(("kept", 1))
        troubles.of((f"job {number}", 1))
    assert troubles.of(("kept", 1)) is kept
    assert troubles.of(("forgotten", 1)) is not forgotten
