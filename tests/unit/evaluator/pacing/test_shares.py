"""How a limited endpoint's calls are spaced and shared, whoever asks for them and wherever."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import pytest

from services.evaluator.pacing.shares import AHEAD_S, EVEN, Flow, Permit, Shares

ADA, BOB, EVE = Flow("ada", "1"), Flow("bob", "2"), Flow("eve", "3")
EVE_TOO = Flow("eve", "4")
LOOK_S = AHEAD_S / 2
Waiting = Callable[[int, float], Mapping[Flow, int]]
"""Calls that wait at an evaluator, by its number and the seconds since the beginning."""


def simulate(waiting: Waiting, *, evaluators: int = 6, per_minute: int = 600, seconds: float = 60) -> list[Permit]:
    """Evaluators that look at irregular times, each through the stored form of the record. All begin at once: what is
    given before somebody comes is not owed to them."""
    chance = random.Random(1)
    record = Shares().encode()
    permits: list[Permit] = []
    looks = {number: 0.01 * chance.random() for number in range(evaluators)}
    while True:
        number, now = min(looks.items(), key=lambda look: look[1])
        if now > seconds:
            return permits
        shares = Shares.decode(record)
        permits += shares.take(waiting(number, now), 8, per_minute, now)
        record = shares.encode()
        looks[number] = now + max(0.02, min(shares.next - now, LOOK_S)) * chance.uniform(0.6, 1)


def counts(permits: Sequence[Permit]) -> Counter[Flow]:
    return Counter(permit.flow for permit in permits)


def everywhere(*flows: Flow) -> Waiting:
    return lambda number, now: dict.fromkeys(flows, 8)


def test_calls_are_spaced_evenly_and_use_the_whole_limit() -> None:
    permits = simulate(everywhere(ADA))
    moments = [permit.at for permit in permits]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert min(gaps) >= 0.0999 / EVEN
    assert len(permits) >= 590


def test_users_get_equal_shares() -> None:
    shares = counts(simulate(everywhere(ADA, BOB, EVE)))
    assert max(shares.values()) - min(shares.values()) <= 2


def test_a_user_with_two_jobs_gets_no_more_and_the_jobs_get_equal_parts() -> None:
    shares = counts(simulate(everywhere(ADA, BOB, EVE, EVE_TOO)))
    assert shares[ADA] == pytest.approx(shares[BOB], abs=2)
    assert shares[EVE] + shares[EVE_TOO] == pytest.approx(shares[ADA], abs=2)
    assert shares[EVE] == pytest.approx(shares[EVE_TOO], abs=2)


def test_shares_do_not_depend_on_how_many_evaluators_a_users_calls_wait_at() -> None:
    shares = counts(simulate(lambda number, now: {[ADA, ADA, ADA, ADA, BOB, EVE][number]: 8}))
    assert sum(shares.values()) >= 590
    assert max(shares.values()) < 1.05 * min(shares.values())


@pytest.mark.parametrize("per_minute", [30, 6000, 60_000])
def test_shares_are_equal_at_any_limit(per_minute: int) -> None:
    seconds = 600 if per_minute < 600 else 10
    permits = simulate(
        lambda number, now: {[ADA, BOB][number % 2]: 64}, per_minute=per_minute, seconds=seconds, evaluators=4
    )
    shares = counts(permits)
    assert max(shares.values()) < 1.05 * min(shares.values())


def test_what_one_user_does_not_use_goes_to_the_others() -> None:
    def bob_wants_little(number: int, now: float) -> Mapping[Flow, int]:
        return {ADA: 8} if number or int(now) % 10 else {ADA: 8, BOB: 1}

    permits = simulate(bob_wants_little)
    assert len(permits) >= 590
    assert counts(permits)[ADA] > 500


def test_a_newcomer_is_not_owed_the_time_before_it_came() -> None:
    permits = simulate(lambda number, now: {ADA: 8} if now < 30 else {ADA: 8, BOB: 8})
    late = counts([permit for permit in permits if permit.at > 31])
    assert late[BOB] == pytest.approx(late[ADA], rel=0.05)


def test_a_user_who_went_away_holds_nobody_back_for_long() -> None:
    permits = simulate(lambda number, now: {ADA: 8, BOB: 8} if now < 30 else {ADA: 8})
    assert len([permit for permit in permits if 32 < permit.at < 42]) >= 97


@pytest.mark.parametrize(("per_minute", "burst"), [(60, 1), (600, 1), (60_000, 100)])
def test_moments_that_passed_unused_make_no_burst_of_more_than_a_tenth_of_a_second(per_minute: int, burst: int) -> None:
    shares = Shares()
    shares.take({ADA: 1}, 1, per_minute, 0)
    late = shares.take({ADA: 10_000}, 10_000, per_minute, 100)
    assert len([permit for permit in late if permit.at <= 100]) <= burst


def test_no_more_is_taken_than_was_asked_for() -> None:
    assert len(Shares().take({ADA: 2, BOB: 2}, 3, 60_000, 0)) == 3
    assert counts(Shares().take({ADA: 2, BOB: 2}, 9, 60_000, 0)) == {ADA: 2, BOB: 2}
