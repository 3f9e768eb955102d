"""Pairs of scores as independent draws."""

from __future__ import annotations

import numpy as np
import pytest

from services.results.sequential.draws import Draws, Pair, Plan, draws_of


def plain(total: int, largest: int = 1) -> Plan:
    return Plan(total, {}, {}, {"": largest})


def means(draws: Draws) -> list[float]:
    return [float(value) for value in draws.values]


def test_an_item_is_a_draw() -> None:
    found = draws_of([Pair(0.25, 1.0), Pair(1.0, 0.0)], plain(5))

    assert means(found) == [0.75, -1.0]
    assert found.ends.tolist() == [1, 2]
    assert found.units.tolist() == [1.0, 1.0]
    assert found.mean() == pytest.approx(-0.125)


def test_a_cluster_is_a_draw_once_it_is_complete() -> None:
    pairs = [Pair(0, 1, cluster="x"), Pair(0, 1, cluster="x"), Pair(1, 0), Pair(1, 0, cluster="y")]
    open_, closed = draws_of(pairs, plain(9, largest=4)), draws_of(pairs, plain(4, largest=4))

    assert open_.ends.tolist() == [2, 3]
    assert means(open_) == [0.5, -0.25]
    assert open_.units.tolist() == [0.5, 0.25]
    assert closed.ends.tolist() == [2, 3, 4]


def test_clusters_of_two_strata_may_have_the_same_name() -> None:
    pairs = [Pair(0, 1, stratum, "x") for stratum in ("s", "s", "t", "t")]
    found = draws_of(pairs, Plan(4, {"s": 2, "t": 2}, {"s": 1, "t": 1}, {"s": 2, "t": 2}))

    assert found.sizes.tolist() == [2, 2]


def test_the_mean_is_that_of_strata() -> None:
    pairs = [Pair(0, 1, "s"), Pair(0, 0, "t"), Pair(0, 0, "t"), Pair(0, 1, "t"), Pair(0, 1, "t")]

    assert draws_of(pairs, Plan(5, {"s": 1, "t": 4}, {}, {})).mean() == pytest.approx(0.75)


def test_in_any_order_draws_of_strata_are_worth_the_mean_over_strata_on_average() -> None:
    """Over all ways to draw the next item, as long as each stratum has something left."""
    plan = Plan(6, {"s": 2, "t": 4}, {}, {})
    before = [Pair(0.5, 0.5, "s"), Pair(0.5, 0.5, "t"), Pair(0.5, 0.5, "t")]
    # One item of s is left, and two of t; B leads by 1 in s and is behind by a half in t.
    draws = [draws_of([*before, pair], plan) for pair in (Pair(0, 1, "s"), Pair(0.5, 0, "t"), Pair(0.5, 0, "t"))]
    values = np.mean([draw.values[-1] for draw in draws])
    units = np.mean([draw.units[-1] for draw in draws])

    assert values / units == pytest.approx((1.0 - 0.5) / 2)


def test_nothing_is_bet_once_a_stratum_has_nothing_left() -> None:
    pairs = [Pair(0, 1, "s"), Pair(0, 1, "t"), Pair(0, 1, "t")]
    found = draws_of(pairs, Plan(3, {"s": 1, "t": 2}, {}, {}))

    assert means(found)[0] > 0
    assert means(found)[1:] == [0.0, 0.0]


def test_a_stratum_must_be_in_the_plan() -> None:
    with pytest.raises(ValueError, match="no stratum 'u'"):
        draws_of([Pair(0, 1, "u")], Plan(2, {"s": 1, "t": 1}, {}, {}))
