"""Agreement of judges, against scikit-learn and published worked examples."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from services.results.statistics import agreement
from services.results.statistics.agreement import Estimate, Level
from services.results.statistics.intervals import score_interval
from services.results.statistics.metric_values import Floats

NONE = float("nan")
WORLDS = 300


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def of(*rows: str) -> Floats:
    """Ratings (raters, items) of one letter each, "." where there is none."""
    return np.array([[NONE if letter == "." else float(ord(letter)) for letter in row] for row in rows])


TWO_VALUES = of("0100000010", "1110010000")
TWO_OBSERVERS = of("aabbdcccedda", "babbbccceddd")
FOUR_OBSERVERS = of("123321412...", "1233224125.3", ".3332342251.", "12332441251.")
"""The examples A, B and C of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011)."""
THREE_OBSERVERS = of(".....34121133.3", "1.213343.......", "..21344.21133.4")
"""The example that Wikipedia computes in its article Krippendorff's alpha."""


@pytest.mark.parametrize(
    ("ratings", "level", "published"),
    [
        (TWO_VALUES, "nominal", 0.095),
        (TWO_OBSERVERS, "nominal", 0.692),
        (FOUR_OBSERVERS, "nominal", 0.743),
        (FOUR_OBSERVERS, "ordinal", 0.815),
        (FOUR_OBSERVERS, "interval", 0.849),
        (THREE_OBSERVERS, "nominal", 0.691),
        (THREE_OBSERVERS, "interval", 0.811),
    ],
)
def test_alpha_is_as_published(ratings: Floats, level: Level, published: float) -> None:
    found = agreement.krippendorff(ratings, level, rng())

    assert found is not None
    assert found.value == pytest.approx(published, abs=0.0005)
    assert found.low < found.value < found.high
    assert found.n == (np.sum(~np.isnan(ratings), axis=0) >= 2).sum()


def _coincidences(ratings: Floats, level: Level) -> float:
    """By the definition: pairs of ratings of one item, and pairs of all ratings."""
    units = [column[~np.isnan(column)] for column in ratings.T]
    units = [unit for unit in units if len(unit) >= 2]
    pool = np.concatenate(units)

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = ((pool >= low) & (pool <= high)).sum()
        return float((between - ((pool == a).sum() + (pool == b).sum()) / 2) ** 2)

    n = len(pool)
    within = sum(distance(a, b) / (len(unit) - 1) for unit in units for a in unit for b in unit) / n
    return 1 - within / (sum(distance(a, b) for a in pool for b in pool) / (n * (n - 1)))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_follows_its_definition(level: Level) -> None:
    random = rng()
    for _ in range(20):
        ratings = random.integers(1, 6, (4, 9)).astype(float)
        ratings[random.random(ratings.shape) < 0.3] = NONE
        found = agreement.krippendorff(ratings, level, random, 10)
        assert found is not None
        assert found.value == pytest.approx(_coincidences(ratings, level), abs=1e-12)


def test_alpha_without_any_disagreement_still_has_a_width() -> None:
    found = agreement.krippendorff(of("1231231231", "1231231231"), "ordinal", rng())

    assert found is not None
    assert found.value == found.high == 1
    assert 0.6 < found.low < 0.8


@pytest.mark.parametrize("ratings", [of("1111", "1111"), of("12..", "..12"), of("1...", "2..."), of("....", "....")])
def test_alpha_needs_two_items_and_two_values(ratings: Floats) -> None:
    assert agreement.krippendorff(ratings, "nominal", rng()) is None


@pytest.mark.calibration
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alphas_intervals_hold_about_95_percent(level: Level) -> None:
    random = np.random.default_rng(3)

    def rated(items: int) -> Floats:
        truth = random.normal(0, 1, items)
        return np.clip(np.round(2 + truth + random.normal(0, 0.6, (3, items))), 0, 4)

    everything = agreement.krippendorff(rated(100_000), level, random, 1)
    assert everything is not None
    held = 0
    for _ in range(WORLDS):
        found = agreement.krippendorff(rated(50), level, random, 400)
        assert found is not None
        held += found.low <= everything.value <= found.high
    assert 0.91 <= held / WORLDS <= 0.985


def test_alpha_of_many_items_takes_no_time() -> None:
    ratings = rng().integers(0, 11, (3, 5_000)).astype(float)
    start = time.process_time()
    agreement.krippendorff(ratings, "ordinal", rng())

    assert time.process_time() - start < 5


scores = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=60)


@settings(max_examples=60, deadline=None)
@given(scores, st.booleans())
def test_kappa_is_scikit_learns(pairs: list[tuple[int, int]], quadratic: bool) -> None:
    first, second = np.array(pairs, dtype=float).T
    found = agreement.kappa(first, second, quadratic=quadratic)
    if len(set(first) | set(second)) == 1:
        assert found is None
        return
    assert found is not None
    wanted = cohen_kappa_score(
        first, second, labels=[1.0, 2.0, 3.0, 4.0, 5.0], weights="quadratic" if quadratic else None
    )
    assert found.value == pytest.approx(wanted, abs=1e-9)
    assert -1.0001 <= found.low <= found.value <= found.high <= 1


@pytest.mark.calibration
@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("items", [40, 150])
def test_kappas_intervals_hold_about_95_percent(quadratic: bool, items: int) -> None:
    random = np.random.default_rng(4)

    def scored(count: int) -> tuple[Floats, Floats]:
        truth = random.normal(0, 1, count)
        first, second = np.clip(np.round(1.5 + truth + random.normal(0, 0.5, (2, count))), 0, 3)
        return first, second

    everything = agreement.kappa(*scored(200_000), quadratic=quadratic)
    assert everything is not None
    held = 0
    for _ in range(WORLDS):
        found = agreement.kappa(*scored(items), quadratic=quadratic)
        assert found is not None
        held += found.low <= everything.value <= found.high
    assert 0.91 <= held / WORLDS <= 0.985


def test_kappa_of_many_scores_uses_the_pairs_that_occur() -> None:
    first = np.linspace(0, 1, 40)
    found = agreement.kappa(first, np.roll(first, 1), quadratic=True)

    assert found is not None
    wanted = cohen_kappa_score(np.arange(40), np.roll(np.arange(40), 1), weights="quadratic")
    assert found.value == pytest.approx(wanted)


def test_accuracy_and_failures_are_shares_with_wilsons_interval() -> None:
    judge = np.array([1, 0, NONE, 1, 1])
    people = np.array([1, 1, 1, NONE, 1])

    assert agreement.accuracy(judge, people) == Estimate(2 / 3, *score_interval(2 / 3, 3), 3)
    assert agreement.failures(judge) == Estimate(0.2, *score_interval(0.2, 5), 5)
    assert agreement.accuracy(judge, np.full(5, NONE)) is None
    assert agreement.failures(np.array([])) is None


def test_bias_is_the_mean_difference_and_always_has_a_width() -> None:
    people = np.array([1, 0] * 10, dtype=float)
    judge = people.copy()
    judge[[1, 3]] = 1
    found = agreement.bias(judge, people)
    assert found is not None
    assert found.value == pytest.approx(0.1)
    assert found.n == 20

    same = agreement.bias(people, people)
    assert same is not None
    assert same.value == 0
    assert -0.2 < same.low < -0.05
    assert 0.05 < same.high < 0.2
    assert agreement.bias(people[:1], people[:1]) is None

    right = agreement.bias(np.ones(20), np.ones(20))
    assert right is not None
    assert 0.1 < right.high < 0.2


@pytest.mark.calibration
@pytest.mark.parametrize(("wrong", "items"), [(0.2, 40), (0.1, 100), (0.3, 300)])
def test_intervals_of_bias_hold_about_95_percent(wrong: float, items: int) -> None:
    random = np.random.default_rng(5)
    held = 0
    for _ in range(WORLDS):
        people = (random.random(items) < 0.6).astype(float)
        # Too lenient: people's 0 becomes 1 twice as often as their 1 becomes 0.
        judge = np.where(random.random(items) < np.where(people == 0, wrong, wrong / 2), 1 - people, people)
        found = agreement.bias(judge, people)
        assert found is not None
        held += found.low <= 0.4 * wrong - 0.6 * wrong / 2 <= found.high
    assert 0.92 <= held / WORLDS <= 0.99


def test_positions_compare_both_orders() -> None:
    one_way = np.array([1, 1, 0, 0.5, 1, NONE])
    other_way = np.array([0, 1, 1, 0.5, 0.5, 1])
    found = agreement.positions(one_way, other_way)

    assert found.agreement == Estimate(0.6, *score_interval(0.6, 5), 5)
    assert found.first is not None
    assert found.first.value == pytest.approx(5 / 7)
    assert found.first.low < 5 / 7 < found.first.high
    assert found.first.n == 4


def test_positions_without_a_preference_say_nothing_of_the_first() -> None:
    assert agreement.positions(np.array([0.5]), np.array([0.5])).first is None
    assert agreement.positions(np.array([NONE]), np.array([1.0])).agreement is None


def test_a_judge_that_always_prefers_the_first_is_seen() -> None:
    found = agreement.positions(np.ones(30), np.ones(30))

    assert found.agreement is not None
    assert found.first is not None
    assert found.agreement.value == 0
    assert found.first.value == 1
    assert found.first.low > 0.8


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        agreement.accuracy(np.ones(3), np.ones(4))
