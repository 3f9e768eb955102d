"""Scores from people and a judge together: intervals of differences hold, and equal rows are seldom told apart."""

from __future__ import annotations

import numpy as np

from services.results.experiments.answers import Asked, Said
from services.results.experiments.scores import by_row, of_both
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


def test_with_repeats_a_scenario_is_rated_once_all_its_answers_are() -> None:
    scores = np.array([[0.0, 1.0, 0.5, 0.5, 1.0, np.nan]])
    assert by_row(scores, (1, 3, 2)).tolist() == [[0.5, 0.5, 1.0]]
    shape = 1, 6
    nothing = np.full(shape, np.nan)
    asked = Asked(
        np.ones(shape, dtype=bool),
        np.zeros(shape, dtype=bool),
        np.ones(shape, dtype=np.int64),
        nothing,
        nothing,
        nothing,
    )
    order = np.array([[0, 1, 2, 3, 4, 5]])
    found = of_both(_said(scores), _said(nothing), asked, order, (1, 3, 2))
    (mean,) = found.means[0]
    assert mean is not None
    # The third scenario lacks a rating, so that two of three are a draw.
    assert (mean.value, mean.n) == (0.5, 3)
