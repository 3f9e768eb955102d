"""Bets on the mean of draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from services.results.sequential import capital
from services.results.sequential.capital import Bets
from services.results.sequential.draws import Draws, Pair, Plan, draws_of

THRESHOLD = math.log(80)


def of(differences: list[float]) -> Draws:
    return draws_of([Pair(max(-d, 0.0), max(d, 0.0)) for d in differences], Plan(10_000, {}, {}, {}))


def every(draws: Draws) -> Bets:
    return Bets(draws, np.arange(1, len(draws.ends) + 1))


def test_the_capital_is_the_mean_of_the_gamblers() -> None:
    found = every(of([1.0, -0.5])).log_capital(0.0, above=True)
    stakes, shares = capital._STAKES, capital._SHARES

    assert shares.sum() == pytest.approx(1)
    assert np.exp(found) == pytest.approx([shares @ (1 + stakes), shares @ ((1 + stakes) * (1 - stakes / 2))])


@pytest.mark.parametrize("claim", [-0.3, 0.0, 0.2])
def test_the_next_draw_changes_the_capital_by_nothing_on_average_if_the_claim_is_true(claim: float) -> None:
    start = [1.0, 0.0, -1.0, 1.0, 1.0]
    up, down, same = (math.exp(every(of([*start, d])).log_capital(claim, above=True)[-1]) for d in (1.0, -1.0, 0.0))
    now = math.exp(every(of(start)).log_capital(claim, above=True)[-1])
    chance = (0.5 + claim) / 2, (0.5 - claim) / 2

    assert chance[0] * up + chance[1] * down + 0.5 * same == pytest.approx(now)


def test_few_and_many_kinds_of_draws_are_summed_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = of(np.random.default_rng(4).choice([-1.0, -0.5, 0.0, 1.0], 200).tolist())
    looks = np.array([1, 7, 50, 200])
    counted = Bets(draws, looks).log_capital(0.1, above=False)
    monkeypatch.setattr(capital, "_FEW", 0)

    assert Bets(draws, looks).log_capital(0.1, above=False) == pytest.approx(counted)
    assert every(draws).log_capital(0.1, above=False)[looks - 1] == pytest.approx(counted)


def test_the_interval_holds_what_neither_side_refutes() -> None:
    draws = of(np.random.default_rng(5).choice([-1.0, 0.0, 1.0], 500, p=[0.1, 0.7, 0.2]).tolist())
    bets = every(draws)
    low, high = bets.unrefuted(THRESHOLD, 0.1, 0.05)

    assert 0 < low < 0.1 < high < 0.25
    assert bets.log_capital(low - 1e-3, above=True).max() >= THRESHOLD > bets.log_capital(low + 1e-3, above=True).max()
    assert bets.log_capital(high + 1e-3, above=False).max() >= THRESHOLD
    assert bets.log_capital(high - 1e-3, above=False).max() < THRESHOLD


@pytest.mark.parametrize("guess", [-0.9, 0.0, 0.1, 1.0])
def test_the_interval_does_not_depend_on_where_it_is_searched(guess: float) -> None:
    bets = every(of([1.0, 1.0, 0.0, -1.0, 1.0] * 30))

    assert bets.unrefuted(THRESHOLD, guess, 0.3) == pytest.approx(bets.unrefuted(THRESHOLD, 0.4, 0.01), abs=2e-4)


def test_no_draws_refute_nothing() -> None:
    assert every(of([])).unrefuted(THRESHOLD, 0.0, 1.0) == (-1.0, 1.0)


@pytest.mark.parametrize("kinds", [(-1.0, 0.0, 1.0), (-1.0, -0.5, 0.0, 1.0)])
@pytest.mark.parametrize("above", [True, False])
def test_the_first_look_at_a_threshold_is_that_of_the_capital(kinds: tuple[float, ...], above: bool) -> None:
    rng = np.random.default_rng(6)
    for shift in (-0.2, 0.0, 0.2):
        draws = of(np.clip(rng.choice(kinds, 300) + (rng.random(300) < abs(shift)) * np.sign(shift), -1, 1).tolist())
        bets = every(draws)
        for threshold in (0.5, 2.0, THRESHOLD):
            reached = bets.log_capital(0.05, above=above) >= threshold
            expected = int(reached.argmax()) if reached.any() else None
            assert bets.first_at(threshold, 0.05, above=above) == expected


def test_the_intervals_over_looks_are_those_of_each_look() -> None:
    draws = of(np.random.default_rng(7).choice([-1.0, 0.0, 1.0], 800, p=[0.1, 0.7, 0.2]).tolist())
    looks = np.arange(1, 801, 5)
    low, high = Bets(draws, looks).unrefuted(THRESHOLD, 0.1, 0.05)
    lows, highs = Bets(draws, looks).courses(THRESHOLD, low, high)

    assert (np.diff(lows) >= 0).all()
    assert (np.diff(highs) <= 0).all()
    assert (lows[-1], highs[-1]) == (low, high)
    for look in (0, 9, 39, 119):
        one = Bets(draws, looks[: look + 1]).unrefuted(THRESHOLD, 0.1, 0.3)
        width = one[1] - one[0]
        assert (lows[look], highs[look]) == (
            pytest.approx(one[0], abs=width / 30),
            pytest.approx(one[1], abs=width / 30),
        )


@pytest.mark.parametrize("kinds", [1, 3, 32, 33, 500])
@pytest.mark.parametrize("late", [False, True])
def test_few_kinds_of_draws_are_found_as_by_sorting(kinds: int, late: bool) -> None:
    rng = np.random.default_rng(kinds)
    for count in (1, 255, 257, 3_000):
        known = rng.random(kinds) * (1 + 1j)
        values = rng.choice(known, count)
        if late:
            # A kind that the first values do not have.
            values[-1] = -1.0
        found, places = capital._kinds(values)
        expected, among = np.unique(values, return_inverse=True)
        assert found.tobytes() == expected.tobytes()
        assert places.tolist() == among.tolist()


def test_without_draws_there_are_no_kinds() -> None:
    found, places = capital._kinds(np.zeros(0))
    assert (len(found), len(places)) == (0, 0)
