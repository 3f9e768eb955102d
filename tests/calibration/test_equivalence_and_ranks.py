"""How often equivalence is claimed where there is none, and how often a place range misses the true place."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from services.results.comparison.rank_ranges import of_tests
from services.results.paired.corrections import adjust_pairs, suite_omnibus
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import TaskRows, binary_rows
from services.results.statistics.metric_values import Floats
from tests.calibration.worlds import by_cluster, cluster_answers, right_and_wrong

pytestmark = pytest.mark.calibration

PAIR = [(0, 1)]


@pytest.mark.parametrize(("n", "discordant", "margin"), [(277, 0.1, 0.08), (872, 0.1, 0.03), (5463, 0.15, 0.015)])
def test_equivalence_is_claimed_in_5_percent_where_the_difference_is_the_margin(
    n: int, discordant: float, margin: float
) -> None:
    rng, trials, claims = default_rng(n), 2_000, {"task": 0, "suite": 0}
    terms = Terms(margin=margin)
    for _ in range(trials):
        task, other = (
            right_and_wrong(rng, n, 0.6, (discordant + margin) / 2, (discordant - margin) / 2, name) for name in "ab"
        )
        one = task_differences([task], PAIR, terms)[0]["accuracy"][0].equivalence_p
        two = suite_differences([[task], [other]], PAIR, terms)[0].equivalence_p
        assert one is not None
        assert two is not None
        claims["task"] += one <= 0.05
        claims["suite"] += two <= 0.05
    shares = {name: count / trials for name, count in claims.items()}
    print(f"\nEquivalence within {margin} at a difference of {margin}, n = {n}: {shares}")
    assert all(0.03 <= share <= 0.067 for share in shares.values())


def test_clustered_equivalence_keeps_5_percent() -> None:
    rng, trials, claims = default_rng(3), 2_000, 0
    for _ in range(trials):
        task = by_cluster(cluster_answers(rng, 60, 8, (0.75, 0.65)))
        p = task_differences([task], PAIR, Terms(margin=0.1))[0]["exact_match"][0].equivalence_p
        assert p is not None
        claims += p <= 0.05
    print(f"\nClustered equivalence: {claims / trials:.3f}")
    assert claims <= 0.067 * trials


def test_place_ranges_hold_all_true_places_in_95_percent_and_narrow_with_more_items() -> None:
    rng, models, trials = default_rng(7), 6, 250
    skills = np.array([0.82, 0.80, 0.74, 0.735, 0.66, 0.5])
    widths = []
    for n in (100, 1000):
        held, width = 0, 0.0
        for _ in range(trials):
            # The true places are those of the names in a shuffled order: nothing may hang on the order of models.
            order = rng.permutation(models)
            ranges = _ranges([[_task(rng, n, skills[order], f"t{i}")] for i in range(3)], models)
            places = np.argsort(np.argsort(-skills[order])) + 1
            held += all(low <= place <= high for (low, high), place in zip(ranges, places, strict=True))
            width += sum(high - low + 1 for low, high in ranges) / models
        widths.append(width / trials)
        print(f"\nPlaces of {models} models, n = 3 × {n}: all held in {held / trials:.3f}, {widths[-1]:.2f} wide")
        assert held >= 0.95 * trials
    assert widths[1] < 0.7 * widths[0]


def test_equal_models_are_told_apart_in_at_most_5_percent() -> None:
    rng, models, trials, wrong = default_rng(12), 5, 500, 0
    for _ in range(trials):
        groups = [[_task(rng, 200, np.full(models, 0.7), f"t{i}")] for i in range(3)]
        wrong += any(places != (1, models) for places in _ranges(groups, models))
    print(f"\nFive equal models: a place is excluded in {wrong / trials:.3f}")
    assert wrong <= 0.05 * trials


def _task(rng: Generator, n: int, skills: Floats, name: str) -> TaskRows:
    ease = rng.normal(0, 1.2, (n, 1))
    wanted = np.log(skills / (1 - skills)) * 1.3
    right = rng.random((n, len(skills))) < 1 / (1 + np.exp(-(wanted + ease)))
    masks, counts = np.unique(right @ (1 << np.arange(len(skills))), return_counts=True)
    rows, metric = binary_rows(masks, counts, len(skills))
    return TaskRows(name, rows, {"accuracy": metric})


def _ranges(groups: list[list[TaskRows]], models: int) -> list[tuple[int, int]]:
    pairs = list(combinations(range(models), 2))
    found = suite_differences(groups, pairs, Terms())
    overall = suite_omnibus(groups, range(models))
    assert overall is not None
    adjusted = adjust_pairs([difference.p for difference in found], overall.p)
    return of_tests(models, pairs, found, adjusted, 0.05)
