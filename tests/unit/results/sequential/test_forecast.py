"""The chance that all items would show a difference."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.paired.binary import equivalence_p, mcnemar
from services.results.sequential.draws import Pair, Plan, draws_of
from services.results.sequential.forecast import chances
from services.results.statistics.metric_values import Floats

TOTAL = 800
KINDS = (Pair(1.0, 0.0), Pair(1.0, 1.0), Pair(0.0, 1.0))


def forecast(kinds: list[int], margin: float = 0.0) -> Floats:
    return chances(draws_of([KINDS[kind] for kind in kinds], Plan(TOTAL, {}, {}, {})), TOTAL, 0.05, margin)


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_it_is_right_about_as_often_as_it_says(margin: float) -> None:
    """Over differences of all sizes, which is what it assumes."""
    rng = np.random.default_rng(6)
    said, came = [], []
    for _ in range(300):
        true = rng.uniform(-0.1, 0.1)
        kinds = rng.choice(3, TOTAL, p=[0.1 - true / 2, 0.8, 0.1 + true / 2])
        said.append(forecast(kinds[: TOTAL // 2].tolist(), margin)[-1])
        n, a, b = (np.array([float(each)]) for each in (TOTAL, np.sum(kinds == 0), np.sum(kinds == 2)))
        came.append(mcnemar(a, b)[0] <= 0.05 or (margin > 0 and equivalence_p(n, a, b, margin)[0] <= 0.05))
    low, high = np.array(said) < 0.2, np.array(said) > 0.8

    assert abs(np.mean(said) - np.mean(came)) < 0.06
    assert np.mean(np.array(came)[low]) < 0.15
    assert np.mean(np.array(came)[high]) > 0.85


def test_it_does_not_depend_on_what_comes_later() -> None:
    kinds = np.random.default_rng(7).choice(3, 400).tolist()

    assert forecast(kinds)[:200] == pytest.approx(forecast(kinds[:200]))


def test_models_that_never_differ_are_given_up_late() -> None:
    found = forecast([1] * 700)

    assert found[TOTAL // 5] > 0.1
    assert found[-1] < 0.1


def test_too_few_items_predict_nothing() -> None:
    assert forecast([1] * 50).tolist() == [1.0] * 50
    assert forecast([]).tolist() == []
