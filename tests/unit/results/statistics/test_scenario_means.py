"""Means over scenarios and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from services.results.statistics.intervals import clustered_interval
from services.results.statistics.scenario_means import Mean, mean_of_means, means

NAN = float("nan")


def test_a_mean_is_over_the_scenarios_that_have_a_score() -> None:
    found, none, one = means(np.array([[0.0, 1.0, NAN, 0.5], [NAN] * 4, [NAN, 0.25, NAN, NAN]]))
    assert found is not None
    assert (found.value, found.n) == (0.5, 3)
    assert (found.low, found.high) == pytest.approx(clustered_interval(0.5, 0.5 / 3**0.5, 3, (0.0, 1.0)))
    assert none is None
    assert one == Mean(0.25, 0.0, 1.0, 1)


def test_equal_scores_leave_an_interval() -> None:
    (found,) = means(np.ones((1, 20)))
    assert found is not None
    assert found.value == found.high == 1.0
    assert 0.7 < found.low < 0.9


def test_the_mean_of_means_is_that_of_the_scenarios_means_where_all_are_scored() -> None:
    scores = np.random.default_rng(1).random((3, 12))
    (expected,) = means(scores.mean(axis=0, keepdims=True))
    found = mean_of_means(scores)
    assert found is not None
    assert expected is not None
    assert (found.value, found.low, found.high, found.n) == pytest.approx(
        (expected.value, expected.low, expected.high, 12)
    )
    assert mean_of_means(np.array([[0.5, 1.0], [NAN, NAN]])) is None


def test_intervals_hold_the_true_mean_about_as_often_as_they_say() -> None:
    drawn = np.random.default_rng(2).beta(4, 1, (4_000, 20))
    found = [mean for mean in means(drawn) if mean is not None]
    assert 0.93 <= sum(mean.low <= 0.8 <= mean.high for mean in found) / len(found) <= 0.97


@given(arrays.arrays(float, (4, 6), elements=st.one_of(st.floats(0, 1), st.just(NAN))))
def test_intervals_are_within_the_scale_and_hold_the_mean(scores: np.ndarray) -> None:
    for found in (*means(scores), mean_of_means(scores)):
        assert found is None or 0 <= found.low <= found.value <= found.high <= 1
