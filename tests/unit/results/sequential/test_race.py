"""Races between several models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from numpy.random import default_rng

from services.results.sequential.draws import Pair
from services.results.sequential.evidence import evidence
from services.results.sequential.race import BEST, Beaten, Found, Runner, Standing, pair_error, race
from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, UNDECIDED, WORSE
from services.results.statistics.metric_values import Floats

ITEMS = 100
NONE: dict[tuple[int, int], Found] = {}


def stand(
    pairs: dict[tuple[int, int], Found], *reaches: int, ended: tuple[int, ...] = (), earlier: int = 0
) -> Standing:
    runners = [Runner(reach, place in ended) for place, reach in enumerate(reaches)]
    return race(runners, ITEMS, lambda one, other: pairs.get((one, other), Found(UNDECIDED)), earlier)


def test_the_error_is_divided_by_the_number_of_pairs() -> None:
    assert pair_error(0.05, 2) == 0.05
    assert pair_error(0.05, 20) == pytest.approx(0.05 / 190)


def test_the_last_one_left_is_the_best() -> None:
    pairs = {(0, 1): Found(BETTER, 40), (0, 2): Found(UNDECIDED), (1, 2): Found(WORSE, 60)}
    found = stand(pairs, 100, 100, 100)
    assert (found.verdict, found.decided_at, found.left) == (BEST, 60, (1,))
    assert found.beaten == {0: Beaten(40, 1), 2: Beaten(60, 1)}


def test_nothing_is_known_beyond_what_all_in_the_race_have_answered() -> None:
    pairs = {(0, 1): Found(BETTER, 40)}
    assert stand(pairs, 100, 100, 39).left == (0, 1, 2)
    found = stand(pairs, 41, 100, 50)
    assert (found.left, found.items, found.verdict) == ((1, 2), 50, UNDECIDED)


def test_a_model_that_is_out_beats_nobody_afterwards() -> None:
    pairs = {(0, 1): Found(BETTER, 40), (0, 2): Found(WORSE, 60)}
    found = stand(pairs, 100, 100, 100)
    assert (found.left, found.beaten) == ((1, 2), {0: Beaten(40, 1)})


def test_models_that_are_not_told_apart_end_the_race_together() -> None:
    pairs = {(0, 1): Found(BETTER, 40), (1, 2): Found(EQUIVALENT, 30)}
    found = stand(pairs, 100, 100, 100)
    assert (found.verdict, found.decided_at, found.left) == (EQUIVALENT, 40, (1, 2))
    pairs |= {(1, 3): Found(NO_DIFFERENCE, 70), (2, 3): Found(EQUIVALENT, 80), (0, 3): Found(UNDECIDED)}
    found = stand(pairs, 100, 100, 100, 100)
    assert (found.verdict, found.decided_at, found.left) == (NO_DIFFERENCE, 80, (1, 2, 3))
    assert not stand(pairs, 100, 100, 100, 79).verdict


def test_one_that_ended_goes_on_until_its_last_answer_has_counted() -> None:
    pairs = {(0, 1): Found(BETTER, 40), (1, 2): Found(BETTER, 60)}
    found = stand(pairs, 100, 45, 100, ended=(1,))
    assert (found.beaten, found.withdrawn, found.left) == ({0: Beaten(40, 1)}, frozenset({1}), (2,))
    # Until then, the one that ended could still have been the best.
    assert (found.verdict, found.decided_at) == (BEST, 45)
    pairs = {(0, 1): Found(EQUIVALENT, 30)}
    for reach, decided_at in ((20, 30), (45, 45)):
        found = stand(pairs, 100, 100, reach, ended=(2,))
        assert (found.verdict, found.decided_at, found.left) == (EQUIVALENT, decided_at, (0, 1))
    found = stand(NONE, 100, 45, 0, ended=(1, 2))
    assert (found.verdict, found.left, found.withdrawn) == (UNDECIDED, (0,), frozenset({1, 2}))
    assert stand(NONE, 10, 20, ended=(0, 1)).verdict == UNDECIDED


def test_a_job_that_ends_after_the_race_does_not_change_how_that_ended() -> None:
    pairs = {(0, 1): Found(BETTER, 40), (1, 2): Found(WORSE, 60)}
    for ended in ((), (1,), (0, 1, 2)):
        found = stand(pairs, 100, 70, 100, ended=ended)
        assert (found.verdict, found.decided_at, found.left, found.withdrawn) == (BEST, 60, (1,), frozenset())
        found = stand({(0, 1): Found(NO_DIFFERENCE, 30)}, 50, 40, ended=ended)
        assert (found.verdict, found.decided_at, found.left) == (NO_DIFFERENCE, 30, (0, 1))


def test_the_last_item_withdraws_nobody() -> None:
    found = stand({(0, 1): Found(NO_DIFFERENCE, 100)}, 100, 100, ended=(0,))
    assert (found.verdict, found.left) == (NO_DIFFERENCE, (0, 1))


def test_those_beaten_before_need_not_run() -> None:
    assert stand(NONE, 30, earlier=2).verdict == BEST
    assert stand(NONE, 30).verdict == UNDECIDED


def test_somebody_is_left_whatever_the_answers() -> None:
    # Items that a model has not answered are left out of its pairs: so each may be worse than the next.
    pairs = {(0, 1): Found(BETTER, 40), (1, 2): Found(BETTER, 40), (0, 2): Found(WORSE, 40)}
    found = stand(pairs, 100, 100, 100)
    assert len(found.left) == 1
    assert len(found.beaten) == 2


def looked_at(right: Floats, reaches: Sequence[int]) -> Standing:
    def found(one: int, other: int) -> Found:
        pairs = [Pair(a, b) for a, b in right[: min(reaches[one], reaches[other]), [one, other]].tolist()]
        seen = evidence(pairs, error=pair_error(0.3, len(reaches)), margin=0.1, total=len(right))
        return Found(seen.verdict, seen.decided_at or 0)

    return race([Runner(reach, False) for reach in reaches], len(right), found)


def test_neither_speed_nor_the_times_of_looks_change_the_end() -> None:
    rng = default_rng(4)
    for _ in range(20):
        right = (rng.random((400, 5)) < rng.uniform(0.4, 0.8, 5)).astype(float)
        whole = looked_at(right, [400] * 5)
        reaches = [0] * 5
        standing = looked_at(right, reaches)
        while not standing.verdict:
            for place in standing.left:
                # A model that is out stops, after some more items.
                reaches[place] = min(400, reaches[place] + int(rng.integers(0, 60)))
            before, standing = standing, looked_at(right, reaches)
            assert before.beaten.items() <= standing.beaten.items()
        assert replace(standing, items=400) == whole


def test_two_models_race_as_they_decide() -> None:
    rng = default_rng(5)
    for share in (0.5, 0.6, 0.75):
        right = (rng.random((300, 2)) < (0.5, share)).astype(float)
        alone = evidence([Pair(a, b) for a, b in right.tolist()], error=0.05, margin=0.0, total=300)
        pair = Found(alone.verdict, alone.decided_at or 0)
        found = race([Runner(300, False)] * 2, 300, lambda *_, pair=pair: pair)
        assert found.decided_at == alone.decided_at
        assert found.verdict == {BETTER: BEST, WORSE: BEST, NO_DIFFERENCE: NO_DIFFERENCE}[alone.verdict]
        assert len(found.left) == (2 if alone.verdict == NO_DIFFERENCE else 1)
