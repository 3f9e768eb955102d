"""Scores from people and a judge together: intervals of differences hold, and equal rows are seldom told apart."""

from __future__ import annotations

import numpy as np

from services.results.experiments.answers import Asked, Said
from services.results.experiments.scores import LEAST_RATED, by_row, of_both
from services.results.statistics.metric_values import Floats

SCENARIOS, RATED, DRAWS = 60, 25, 300


def _said(shares: Floats) -> Said:
    return Said(shares[None], np.zeros(shares.shape, dtype=bool))


def _asked(rows: int) -> Asked:
    shape = rows, SCENARIOS
    nothing = np.full(shape, np.nan)
    attempt = np.ones(shape, dtype=np.int64)
    return Asked(np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool), attempt, nothing, nothing, nothing)


def test_intervals_and_tests_hold_with_a_judge_that_is_off_by_ten_points() -> None:
    chance = np.random.default_rng(7)
    covered = shown = 0
    for _ in range(DRAWS):
        people = chance.integers(0, 5, (2, SCENARIOS)) / 4
        # The same scores in another order: equal means over these scenarios.
        people[1] = chance.permutation(people[0])
        judge = np.clip(people + 0.1 + chance.normal(0, 0.15, people.shape), 0, 1)
        judge[chance.random(judge.shape) < 0.1] = np.nan
        order = np.argsort(chance.random(people.shape), axis=1).argsort(axis=1)
        labels = np.where(order < RATED, people, np.nan)
        found = of_both(_said(labels), _said(judge), _asked(2), order, (1, SCENARIOS, 1))
        covered += found.to_first.low[1] <= 0 <= found.to_first.high[1]
        shown += found.differences.adjusted[0] <= 0.05
    assert covered / DRAWS >= 0.92
    assert shown == DRAWS - covered


def test_a_row_that_is_better_by_more_than_the_interval_is_shown() -> None:
    chance = np.random.default_rng(8)
    people = np.stack([chance.integers(0, 3, SCENARIOS), chance.integers(2, 5, SCENARIOS)]) / 4
    order = np.argsort(chance.random(people.shape), axis=1).argsort(axis=1)
    labels = np.where(order < RATED, people, np.nan)
    judge = np.clip(people + chance.normal(0, 0.15, people.shape), 0, 1)
    found = of_both(_said(labels), _said(judge), _asked(2), order, (1, SCENARIOS, 1))
    assert found.ranked.tolist() == [1, 0]
    assert found.differences.adjusted[0] < 0.001
    assert found.to_first.high[1] < 0


def test_equal_models_that_people_rated_are_seldom_told_apart_without_a_judge() -> None:
    chance = np.random.default_rng(9)
    weights, nothing = np.array([0.4, 0.4, 0.2]), np.full((2, SCENARIOS), np.nan)
    covered = shown = 0
    for _ in range(DRAWS):
        # Each scenario is a draw, and so are those that are rated, or all.
        people = chance.integers(0, 5, (2, SCENARIOS, 3)) / 4 @ weights
        order = np.argsort(chance.random(people.shape), axis=1).argsort(axis=1)
        labels = np.where(order < chance.choice([LEAST_RATED, SCENARIOS]), people, np.nan)
        found = of_both(_said(labels), _said(nothing), _asked(2), order, (1, SCENARIOS, 1))
        mean = found.means[0][0]
        assert mean is not None
        covered += mean.low <= 0.5 <= mean.high
        shown += found.differences.adjusted[0] <= 0.05
    assert covered / DRAWS >= 0.91
    assert shown / DRAWS <= 0.09


def test_few_ratings_give_no_estimate() -> None:
    people = np.linspace(0, 1, 2 * SCENARIOS).reshape(2, SCENARIOS)
    order = np.tile(np.arange(SCENARIOS), (2, 1))
    for rated, known in ((LEAST_RATED - 1, 0), (LEAST_RATED, 2)):
        labels = np.where(order < rated, people, np.nan)
        found = of_both(_said(labels), _said(people), _asked(2), order, (1, SCENARIOS, 1))
        assert len(found.ranked) == known


def test_with_repeats_a_scenario_is_rated_once_all_its_answers_are() -> None:
    scenarios = LEAST_RATED + 1
    scores = np.tile([0.0, 1.0], scenarios)[None]
    # The last scenario lacks a rating, so that the others are a draw.
    scores[0, -1] = np.nan
    assert by_row(scores, (1, scenarios, 2)).tolist() == [[0.5] * LEAST_RATED + [0.0]]
    shape = scores.shape
    nothing = np.full(shape, np.nan)
    attempt = np.ones(shape, dtype=np.int64)
    asked = Asked(np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool), attempt, nothing, nothing, nothing)
    order = np.arange(2 * scenarios)[None]
    found = of_both(_said(scores), _said(nothing), asked, order, (1, scenarios, 2))
    (mean,) = found.means[0]
    assert mean is not None
    assert (mean.value, mean.n) == (0.5, scenarios)
