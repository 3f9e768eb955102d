"""People's scores and a judge's together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from services.results.statistics import prediction_powered
from services.results.statistics.intervals import score_interval
from services.results.statistics.metric_values import Floats
from services.results.statistics.prediction_powered import (
    combined,
    drawn_labels,
    labelling_order,
    labels_to_halve,
    next_to_label,
)

NONE = float("nan")

PEOPLE = [1, 1, 0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1]
JUDGE = [.9, .8, .2, .7, .4, 1, .6, .9, .1, .8, .5, .3, .9, .7, 1, .2, .6, .8, .9, .4]  # fmt: skip
OTHERS = [
    .8, .1, .9, .6, .7, .3, .2, 1, .5, .9, .8, .4, .7, .6, .95, .15, .85, .75, .65, .35, .9, .8, .45, .55, .25, .7, .9,
    1, .05, .6,
]  # fmt: skip
PPI_PYTHON = {"tuned": 0.6833752726706138, "none": 0.7, "half": 0.6891666666666666, "full": 0.6783333333333332}
PPI_PYTHON_95 = {
    "none": (0.49916345547364066, 0.9008365445263593),
    "half": (0.5242530352108385, 0.8540802981224946),
    "full": (0.5158934008785767, 0.8407732657880898),
}
"""ppi_mean_pointestimate and ppi_mean_ci(alpha=0.05) of ppi_python 0.2.3 for PEOPLE, JUDGE and OTHERS, with `lam` None,
0, 0.5 and 1."""
LAMBDAS = {"none": 0.0, "half": 0.5, "full": 1.0}


def labelled(people: Sequence[float], others: int) -> Floats:
    return np.array([*people, *[NONE] * others], dtype=float)


def world(seed: int = 1, items: int = 300, labels: int = 60) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    people = (rng.random(items) < 0.6).astype(float)
    judge = np.where(rng.random(items) < 0.15, 1 - people, people)
    people[rng.permutation(items)[labels:]] = NONE
    return people, judge


@pytest.mark.parametrize("name", LAMBDAS)
def test_with_a_given_weight_the_estimate_is_ppi_pythons(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, items = len(PEOPLE), len(PEOPLE) + len(OTHERS)
    weight = LAMBDAS[name] / (1 - n / items)
    monkeypatch.setattr(prediction_powered, "_weights", lambda *_: np.full(n, weight))
    found = combined(labelled(PEOPLE, len(OTHERS)), np.array(JUDGE + OTHERS))

    assert found.mean == pytest.approx(PPI_PYTHON[name], abs=1e-12)
    assert found.weight == pytest.approx(LAMBDAS[name])
    # Theirs is the error about the mean of all items there could ever be. About the mean of these, it is smaller by
    # the spread of people's scores over them.
    low, high = PPI_PYTHON_95[name]
    theirs = ((high - low) / 2 / 1.959964) ** 2
    assert found.stderr**2 + np.var(PEOPLE) / items == pytest.approx(theirs, rel=0.06)


def test_the_tuned_estimate_is_close_to_ppi_pythons() -> None:
    """Their weight uses each label for its own correction too, and is at most 1."""
    found = combined(labelled(PEOPLE, len(OTHERS)), np.array(JUDGE + OTHERS))

    assert found.mean == pytest.approx(PPI_PYTHON["tuned"], abs=0.005)
    assert 0.5 < found.weight < 1
    assert found.low < found.mean < found.high


def test_over_all_possible_draws_the_mean_is_exactly_peoples() -> None:
    """With a judge that is too high, often wrong, and fails on some items."""
    people = np.array([0.1, 0.2, 0.15, 0.3, 0.1, 0.25, 0.2, 0.8, 0.9, 0.7, 0.85, 0.75, 0.8])
    judge = np.array([0.5, 0.4, NONE, 0.6, 0.3, 0.5, 0.9, 0.8, 1.0, 0.9, NONE, 0.4, 0.9])
    means, weights = [], []
    for drawn in map(list, combinations(range(13), 10)):
        scores = np.full(13, NONE)
        scores[drawn] = people[drawn]
        found = combined(scores, judge)
        means.append(found.mean)
        weights.append(found.weight)

    assert len(means) == 286
    assert min(weights) > 0
    assert np.mean(means) == pytest.approx(people.mean(), abs=1e-12)


def test_each_weight_is_that_of_the_other_labels() -> None:
    rng = np.random.default_rng(2)
    wanted = np.round(rng.random(12))
    said = 0.5 * wanted + 0.5 * rng.random(12)
    weights = prediction_powered._weights(wanted, said, 0.04)
    for place in range(12):
        others, theirs = np.delete(wanted, place), np.delete(said, place)
        both = ((others - others.mean()) * (theirs - theirs.mean())).sum()
        expected = (both + 0.04) / (len(theirs) * theirs.var() + 0.04)
        assert weights[place] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_added_to_the_judge_changes_nothing(seed: int) -> None:
    people, judge = world(seed)
    before, after = combined(people, 0.5 * judge), combined(people, 0.5 * judge + 0.1)

    assert after.mean == pytest.approx(before.mean, abs=1e-12)
    assert (after.low, after.high) == pytest.approx((before.low, before.high), abs=1e-12)


def test_a_judge_that_says_nothing_leaves_the_labels_alone() -> None:
    people, judge = world()
    n, share = 60, float(np.nanmean(people))
    for useless in (np.full_like(judge, NONE), np.ones_like(judge)):
        found = combined(people, useless)
        assert (found.mean, found.low, found.high) == (found.alone, found.alone_low, found.alone_high)
        assert found.weight == 0
    assert combined(people, np.full_like(judge, NONE)).failed == 300
    # Wilson's, of as many independent scores as 60 out of 300 are worth.
    wilson = score_interval(share, n / (1 - n / 300))
    assert (found.alone_low, found.alone_high) == pytest.approx(wilson, abs=1e-9)


def test_a_judge_that_contradicts_people_is_not_used() -> None:
    people, judge = world()
    found = combined(people, 1 - judge)

    assert found.weight == 0
    assert found.mean == found.alone


def test_few_scores_of_one_kind_are_not_enough_to_trust_a_judge() -> None:
    people = labelled([1] * 19 + [0], 80)
    judge = np.where(np.arange(100) % 5 == 0, 0.0, 1.0)

    assert combined(people, judge).weight == 0


def test_a_judge_that_made_no_mistake_still_leaves_a_width() -> None:
    found = combined(labelled([1, 0] * 10, 980), np.array([1.0, 0.0] * 500))

    assert found.mean == pytest.approx(0.5)
    assert 0.15 < found.high - found.low < found.alone_high - found.alone_low


def test_all_right_without_a_judge_is_wilsons_interval() -> None:
    found = combined(labelled([1] * 20, 10**6 - 20), np.full(10**6, NONE))

    assert found.high == 1
    assert found.low == pytest.approx(score_interval(1, 20)[0], abs=1e-4)


def test_all_items_labelled_leave_nothing_open() -> None:
    people, judge = np.array([1.0, 0, 1, 1]), np.array([1.0, 1, NONE, 0])
    found = combined(people, judge)

    assert found.mean == found.low == found.high == 0.75
    assert found.stderr == 0
    assert labels_to_halve(found) is None


@pytest.mark.parametrize("seed", range(4))
def test_more_labels_halve_the_interval(seed: int) -> None:
    people, judge = world(seed, 4_000, 100)
    found = combined(people, judge)
    more = labels_to_halve(found)

    # Without the end of the items it would be 3 times as many.
    assert more is not None
    assert 200 < more < 320
    low, high = found.spread.ends(100 + more, 4_000)
    assert high - low <= (found.high - found.low) / 2
    low, high = found.spread.ends(100 + more - 1, 4_000)
    assert high - low > (found.high - found.low) / 2


def test_with_few_items_left_all_of_them_are_enough() -> None:
    people, judge = world(1, 30, 29)

    assert labels_to_halve(combined(people, judge)) == 1


def test_an_interval_without_width_cannot_be_halved() -> None:
    people, judge = world()
    found = combined(people, judge)

    assert labels_to_halve(replace(found, spread=replace(found.spread, variance=0.0, up=0.0, down=0.0))) is None


@pytest.mark.parametrize(
    ("people", "judge", "reason"),
    [
        ([1, NONE], [1, 1], "1 labels are fewer than 2"),
        ([1, 0, NONE], [1, 1], "shapes"),
        ([1, 2], [1, 1], "outside"),
        ([1, 0], [-0.1, 1], "outside"),
    ],
)
def test_wrong_scores_are_refused(people: list[float], judge: list[float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        combined(np.array(people, dtype=float), np.array(judge, dtype=float))


def test_the_order_of_labelling_is_a_draw_that_nobody_chose() -> None:
    ids = [f"v1/s-{number:04}" for number in range(200)]
    order = labelling_order(ids, 7)

    assert sorted(order) == list(range(200))
    assert list(order) == list(labelling_order(ids, 7)) != list(labelling_order(ids, 8))
    # Items that come later do not change the order of those there are.
    longer = labelling_order([*ids, "v1/s-0200"], 7)
    assert [place for place in longer if place < 200] == list(order)
    first = [float(np.mean(labelling_order(ids, seed)[:50])) for seed in range(200)]
    assert np.mean(first) == pytest.approx(99.5, abs=2)


def test_next_to_label_are_the_first_without_a_label() -> None:
    order = np.array([3, 0, 2, 1, 4])
    done = np.array([True, False, False, True, True])

    assert list(next_to_label(order, done, 1)) == [2]
    assert list(next_to_label(order, done, 9)) == [2, 1]
    assert list(drawn_labels(order, done)) == [3, 0]
    assert list(drawn_labels(order, np.ones(5, dtype=np.bool_))) == list(order)
    assert list(drawn_labels(order, np.zeros(5, dtype=np.bool_))) == []
