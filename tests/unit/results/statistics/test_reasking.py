"""How much scores change when the same items are asked again."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from services.results.statistics import reasking
from services.results.statistics.metric_values import Floats, Ints
from services.results.statistics.reasking import (
    Shift,
    differences,
    excess,
    flips_of_reasking,
    flips_of_servings,
    floor,
    shift,
    variance_parts,
    widened,
)

NAMES = ("items", "reasking", "runs", "servings", "interaction")


def even(items: int) -> Floats:
    return np.full(items, 1 / items)


def alone(items: int) -> Ints:
    """Items that share nothing."""
    return np.arange(items)


def runs(scores: Floats) -> list[Floats]:
    """One per row, of one asking each."""
    return [row[None] for row in scores]


def test_flips_are_the_share_of_items_that_change() -> None:
    scores = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]])

    for serving in ([scores], runs(scores)):
        found = flips_of_reasking([serving], alone(4))
        assert found is not None
        assert found.share == 0.5
        assert found.low < 0.5 < found.high
    assert flips_of_servings([runs(scores)], alone(4)) is None
    assert flips_of_reasking([runs(scores[:1])], alone(4)) is None


def test_flips_are_the_mean_over_all_pairs_of_askings() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random((4, 30)), rng.random((3, 30))
    own = flips_of_reasking([runs(first), [second]], alone(30))
    between = flips_of_servings([[first], runs(second)], alone(30))
    pairs = [
        np.mean([np.abs(scores[a] - scores[b]).mean() for a, b in combinations(range(len(scores)), 2)])
        for scores in (first, second)
    ]

    assert own is not None
    assert own.share == pytest.approx(np.mean(pairs))
    assert between is not None
    assert between.share == pytest.approx(np.mean([np.abs(a - b).mean() for a in first for b in second]))


def test_the_interval_of_flips_holds_the_truth_in_95_percent() -> None:
    rng, trials, held = np.random.default_rng(5), 500, 0
    for _ in range(trials):
        chances = rng.choice([0.02, 0.5, 0.98], 300, p=[0.3, 0.1, 0.6])
        found = flips_of_reasking([[(rng.random((3, 300)) < chances).astype(float)]], alone(300))
        assert found is not None
        held += found.low <= 0.1 * 0.5 + 0.9 * 2 * 0.02 * 0.98 <= found.high

    assert held >= 0.93 * trials


@pytest.mark.parametrize("weighted", [False, True])
def test_variance_is_divided_by_its_sources(weighted: bool) -> None:
    rng, items = np.random.default_rng(6), 300
    found: list[list[float]] = []
    weights = rng.choice([1.0, 3.0], items) if weighted else np.ones(items)
    weights /= weights.sum()
    for _ in range(80):
        hard, servings = rng.normal(0, 0.30, items), []
        for askings in (4, 6, 5):
            own = rng.normal(0, 0.05) + rng.normal(0, 0.10, items)
            of_runs = rng.normal(0, 0.03, (askings, 1))
            servings.append(runs(hard + own + of_runs + rng.normal(0, 0.20, (askings, items))))
        parts = variance_parts(servings, weights)
        assert parts is not None
        found.append([float(getattr(parts, name)) for name in NAMES])

    mean = np.mean(found, axis=0)
    assert mean[[0, 1, 2, 4]] == pytest.approx([0.09, 0.04, 0.0009, 0.01], rel=0.1)
    # Of three servings little is known.
    assert mean[3] == pytest.approx(0.0025, rel=0.4)


def test_what_was_not_varied_has_no_part() -> None:
    scores = np.random.default_rng(7).random((3, 40))
    of_runs, of_repeats = variance_parts([runs(scores)], even(40)), variance_parts([[scores]], even(40))
    of_servings = variance_parts([runs(scores[:1]), runs(scores[1:2])], even(40))

    assert of_runs is not None
    assert (of_runs.servings, of_runs.interaction) == (None, None)
    assert of_runs.reasking is not None
    assert of_repeats is not None
    assert of_repeats.runs is None
    assert of_repeats.reasking == pytest.approx(scores.var(axis=0, ddof=1).mean())
    assert of_servings is not None
    assert (of_servings.reasking, of_servings.runs) == (None, None)
    assert of_servings.interaction is not None
    assert variance_parts([runs(scores[:, :1])], even(1)) is None


def test_a_shift_is_what_single_items_do_not_explain() -> None:
    rng, items = np.random.default_rng(8), 2_000
    still = (rng.random((5, items)) < 0.5).astype(float)
    moved = np.stack([rng.random(items) < chance for chance in (0.40, 0.45, 0.5, 0.55, 0.6)]).astype(float)
    none, some = shift(runs(still), even(items)), shift(runs(moved), even(items))

    assert none is not None
    assert none.chance == pytest.approx(0.25 / items, rel=0.05)
    assert none.variance < 0.0002
    assert some is not None
    assert some.variance == pytest.approx(0.00625, rel=0.3)
    assert some.of_run == some.variance + some.chance
    assert some.degrees == 4
    assert shift(runs(still[:1]), even(items)) is None


def test_an_interval_without_a_shift_stays() -> None:
    assert widened(0.02, [Shift(0.0, 0.001, 2), Shift(0.0, 0.001, 2)], 1e-4, 500, 0.05) == 0.02


def test_a_shift_widens_an_interval_the_more_the_less_it_is_known() -> None:
    few, many = (widened(0.02, [Shift(1e-4, 1e-5, degrees)], 1e-4, 500, 0.05) for degrees in (2, 50))

    assert 0.02 < many < few
    assert many == pytest.approx(math.hypot(0.02, 1.96 * 0.01), rel=0.05)


def test_the_floor_holds_the_difference_of_two_runs_in_95_percent() -> None:
    rng, items, trials, held = np.random.default_rng(9), 400, 400, 0
    chances = rng.choice([0.03, 0.5, 0.97], items, p=[0.3, 0.2, 0.5])
    for _ in range(trials):
        made = rng.random((6, items)) < np.clip(chances + rng.normal(0, 0.015, (6, 1)), 0, 1)
        known = floor([runs(made[:4].astype(float))], even(items))
        assert known is not None
        held += abs(made[4].mean() - made[5].mean()) <= known

    assert 0.92 * trials <= held <= 0.99 * trials


def test_repeats_of_one_run_give_a_floor_and_a_single_asking_none() -> None:
    scores = (np.random.default_rng(10).random((3, 500)) < 0.5).astype(float)
    known = floor([[scores]], even(500))

    assert known == pytest.approx(1.96 * math.sqrt(2 * 0.25 / 3 / 500), rel=0.1)
    assert floor([runs(scores[:1])], even(500)) is None


def test_a_single_item_has_no_interval_but_the_whole_range() -> None:
    found = reasking.flips(np.array([1.0]), alone(1))
    assert (found.share, found.low, found.high) == (1.0, 0.0, 1.0)


def test_items_that_share_a_passage_count_as_one() -> None:
    rng, trials, items, held, naive = np.random.default_rng(11), 500, 300, 0, 0
    clusters = np.arange(items) // 6
    for _ in range(trials):
        # A passage flips as a whole, or not.
        of_passages = (rng.random(50) < 0.2).astype(float)
        found, as_if = (reasking.flips(of_passages[clusters], some) for some in (clusters, alone(items)))
        assert found.share == as_if.share
        held += found.low <= 0.2 <= found.high
        naive += as_if.low <= 0.2 <= as_if.high

    assert held >= 0.93 * trials
    assert naive < 0.75 * trials


def test_of_one_passage_nothing_is_known_of_others() -> None:
    shares, clusters = np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4, dtype=np.int64)
    found = reasking.flips(shares, clusters)
    excess = reasking.excess(shares, [runs(np.zeros((2, 4)))], clusters)

    assert (found.share, found.low, found.high) == (0.25, 0.0, 1.0)
    assert excess == (0.25, -1.0, 1.0)


def chances(rng: np.random.Generator, items: int, share: float) -> Floats:
    """Of a right answer, by item: this share of them is asked with an uncertain answer."""
    return np.where(rng.random(items) < share, rng.uniform(0.1, 0.9, items), rng.integers(0, 2, items))


def asked(rng: np.random.Generator, right: Floats) -> Floats:
    return (rng.random((1, len(right))) < right).astype(float)


def test_one_item_that_never_flipped_before_is_not_more_than_noise() -> None:
    before = [np.zeros((1, 100)), np.zeros((1, 100))]
    now = np.zeros((1, 100))
    now[0, 7] = 1.0
    found = excess(differences(before[:1], [now]), [before], alone(100))
    assert found is not None
    mean, low, high = found
    assert mean == pytest.approx(0.01)
    assert low < 0 < mean < high < 0.1


def test_many_items_that_never_flipped_before_are_more_than_noise() -> None:
    before = [np.zeros((1, 100)), np.zeros((1, 100))]
    now = np.zeros((1, 100))
    now[0, :6] = 1.0
    found = excess(differences(before[:1], [now]), [before], alone(100))
    assert found is not None
    assert found[1] > 0


@pytest.mark.parametrize("items", [3, 10, 100, 300])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("before", [2, 4])
def test_an_unchanged_model_rarely_flips_more_than_noise(items: int, share: float, before: int) -> None:
    """The interval promises 2.5 % on this side."""
    rng, trials, claims = np.random.default_rng(5), 400, 0
    for _ in range(trials):
        right = chances(rng, items, share)
        old = [asked(rng, right) for _ in range(before)]
        found = excess(differences(old[:1], [asked(rng, right)]), [old], alone(items))
        assert found is not None
        claims += found[1] > 0
    assert claims <= 0.045 * trials


@pytest.mark.parametrize("items", [2, 3, 5, 10])
def test_intervals_of_flips_hold_for_few_items(items: int) -> None:
    """Five askings of each: the shares of few items may be close together by chance."""
    rng, trials, held = np.random.default_rng(6), 400, 0
    truth = float(np.mean([2 * p * (1 - p) for p in np.linspace(0.1, 0.9, 1001)]))
    for _ in range(trials):
        right = chances(rng, items, 1.0)
        found = flips_of_reasking([[asked(rng, right) for _ in range(5)]], alone(items))
        assert found is not None
        held += found.low <= truth <= found.high
    assert held >= 0.9 * trials


def test_runs_without_a_flip_do_not_show_that_there_is_none() -> None:
    same = [np.ones((1, 20)), np.ones((1, 20))]
    found = floor([same], even(20))
    assert found is not None
    assert 1 / 20 < found < 3 / 20


@pytest.mark.parametrize("items", [10, 30, 100])
@pytest.mark.parametrize("share", [0.05, 0.3])
@pytest.mark.parametrize("count", [2, 3])
def test_two_runs_differ_by_at_most_the_floor(items: int, share: float, count: int) -> None:
    rng, trials, held = np.random.default_rng(7), 400, 0
    for _ in range(trials):
        right = chances(rng, items, share)
        found = floor([[asked(rng, right) for _ in range(count)]], even(items))
        assert found is not None
        held += abs(asked(rng, right).mean() - asked(rng, right).mean()) <= found + 1e-12
    assert held >= 0.93 * trials


@pytest.mark.parametrize("moves", [0.01, 0.03])
def test_the_floor_of_runs_that_move_as_a_whole_is_wider(moves: float) -> None:
    """Of three runs, as they are usual. Sometimes they are close by chance, so it is not quite 95 %."""
    rng, trials, held = np.random.default_rng(8), 500, 0
    right = chances(rng, 600, 0.1) * 0.8 + 0.1
    for _ in range(trials):
        *some, a, b = (asked(rng, np.clip(right + rng.normal(0, moves), 0, 1)) for _ in range(5))
        found = floor([some], even(600))
        assert found is not None
        held += abs(a.mean() - b.mean()) <= found
    assert held >= 0.915 * trials
