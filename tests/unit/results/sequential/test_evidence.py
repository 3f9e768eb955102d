"""What the pairs seen so far say of two models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from services.results.sequential.draws import Pair, Plan, draws_of
from services.results.sequential.evidence import Evidence, evidence, verdict, weigh
from services.results.sequential.verdicts import BETTER, EQUIVALENT, NO_DIFFERENCE, UNDECIDED, WORSE


def drawn(rng: np.random.Generator, only_a: int, only_b: int, both: int) -> list[Pair]:
    """That many items, in random order, that only A, only B and both have right."""
    kinds = np.repeat([0, 1, 2], [only_a, only_b, both])
    pairs = (Pair(1.0, 0.0), Pair(0.0, 1.0), Pair(1.0, 1.0))
    return [pairs[kind] for kind in rng.permutation(kinds)]


def decided(pairs: Sequence[Pair], *, margin: float = 0.0) -> Evidence:
    return evidence(pairs, error=0.05, margin=margin, total=len(pairs))


@pytest.mark.parametrize(
    ("only_a", "only_b", "both", "margin", "verdict"),
    [
        (100, 300, 600, 0.0, BETTER),
        (300, 100, 600, 0.0, WORSE),
        (150, 150, 700, 0.0, NO_DIFFERENCE),
        (20, 20, 960, 0.05, EQUIVALENT),
    ],
)
def test_clear_cases_are_decided_before_the_end(
    only_a: int, only_b: int, both: int, margin: float, verdict: str
) -> None:
    found = decided(drawn(np.random.default_rng(1), only_a, only_b, both), margin=margin)

    assert found.verdict == verdict
    assert found.decided_at is not None
    assert found.decided_at < 800


def test_later_pairs_never_change_a_verdict() -> None:
    pairs = drawn(np.random.default_rng(2), 120, 180, 700)
    verdicts = [evidence(pairs[:seen], error=0.05, margin=0.0, total=1_000) for seen in range(0, 1_001, 50)]
    first = next(place for place, found in enumerate(verdicts) if found.verdict)

    assert all(found.verdict == UNDECIDED and found.decided_at is None for found in verdicts[:first])
    assert len({(found.verdict, found.decided_at) for found in verdicts[first:]}) == 1
    # Nor what is said of it: it is that of the pairs up to there.
    assert len({(found.difference, found.interval) for found in verdicts[first:]}) == 1
    upto = pairs[: verdicts[first].decided_at]
    assert verdicts[-1].difference == pytest.approx(sum(pair.b - pair.a for pair in upto) / len(upto))


def test_exchanging_the_models_turns_the_verdict() -> None:
    pairs = drawn(np.random.default_rng(3), 100, 200, 700)
    one, other = decided(pairs), decided([Pair(pair.b, pair.a) for pair in pairs])

    assert (one.verdict, other.verdict) == (BETTER, WORSE)
    assert one.decided_at == other.decided_at
    assert one.interval == pytest.approx((-other.interval[1], -other.interval[0]), abs=1e-3)


def test_without_pairs_nothing_is_known() -> None:
    found = evidence([], error=0.05, margin=0.02, total=100)

    assert (found.verdict, found.decided_at, found.difference, found.path) == (UNDECIDED, None, None, ())
    assert found.interval == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("pairs", "total", "message"),
    [
        ([Pair(0.0, 1.0)] * 3, 2, "more than the total"),
        ([Pair(0.0, 1.5)], 2, "between 0 and 1"),
        ([Pair(0.0, 1.0, cluster=name) for name in "aba"], 3, "do not follow each other"),
        ([Pair(0.0, 1.0, cluster=name) for name in "aab"], 4, "more than the largest"),
    ],
)
def test_pairs_must_fit_the_plan(pairs: list[Pair], total: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evidence(pairs, error=0.05, margin=0.0, total=total)


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_a_look_that_shows_nothing_finds_the_same(margin: float) -> None:
    rng = np.random.default_rng(8)
    for only_a, only_b in ((60, 140), (100, 100), (5, 6), (140, 60)):
        pairs = drawn(rng, only_a, only_b, 300)
        for seen in (1, 40, 150, len(pairs)):
            some = draws_of(pairs[:seen], Plan(len(pairs), {}, {}, {}))
            asked = {"error": 0.05, "margin": margin, "total": len(pairs), "ended": seen == len(pairs)}
            shown = weigh(some, seen, **asked)  # type: ignore[arg-type]
            assert verdict(some, seen, **asked) == (shown.verdict, shown.decided_at)  # type: ignore[arg-type]


def test_the_path_has_the_interval_of_each_look() -> None:
    pairs = drawn(np.random.default_rng(9), 90, 110, 300)
    found = evidence(pairs[:450], error=0.05, margin=0.0, total=5000)

    assert (found.verdict, found.path[-1].items) == (UNDECIDED, 450)
    assert found.path[-1].difference == pytest.approx(found.difference)
    assert found.path[-1].interval == pytest.approx(found.interval)
    for look in found.path[::40]:
        then = evidence(pairs[: look.items], error=0.05, margin=0.0, total=5000)
        assert look.difference == pytest.approx(then.difference)
        width = then.interval[1] - then.interval[0]
        # What is added to the looks at the end is not among those of the path.
        assert look.interval == pytest.approx(then.interval, abs=width / 10)


def test_the_path_goes_on_after_the_verdict() -> None:
    pairs = drawn(np.random.default_rng(9), 60, 140, 300)
    found = evidence(pairs[:450], error=0.05, margin=0.0, total=500)
    (decided,) = (look for look in found.path if look.items == found.decided_at)

    assert decided.interval == pytest.approx(found.interval, abs=0.01)
    assert found.path[-1].items == 450
    for one, other in pairwise(found.path):
        assert one.interval[0] - 1e-9 <= other.interval[0] <= other.interval[1] <= one.interval[1] + 1e-9


def test_the_path_of_several_tasks_has_the_mean_over_tasks() -> None:
    pairs = [Pair(0.0, float(place % 3 == 0), "one" if place % 4 else "two") for place in range(200)]
    found = evidence(pairs, error=0.05, margin=0.0, total=400, strata={"one": 300, "two": 100})

    for look in found.path[:: len(found.path) // 5]:
        scores: dict[str, list[float]] = {}
        for pair in pairs[: look.items]:
            scores.setdefault(pair.stratum, []).append(pair.b)
        assert look.difference == pytest.approx(np.mean([np.mean(some) for some in scores.values()]))


def test_one_group_for_all_items_shows_nothing() -> None:
    pairs = [Pair(1.0 - (place < 30), 1.0 - (place < 28), cluster="p") for place in range(60)]
    found = evidence(pairs, error=0.05, margin=0.1, total=60, clusters={"": 1}, largest={"": 60})

    # How another group would differ is not known, however close the models are in this one.
    assert found.verdict == NO_DIFFERENCE
    assert found.interval[0] < -0.5 < 0.5 < found.interval[1]
    assert found.interval == pytest.approx((found.path[-1].interval), abs=1e-9)


def test_a_task_with_one_item_widens_the_interval_by_what_it_may_hide() -> None:
    rng = np.random.default_rng(8)
    of_task = {"a": [Pair(1.0, 1.0, "a")] * 400, "b": [Pair(1.0, 1.0, "b")]}
    pairs = [of_task["ab"[int(place)]].pop() for place in rng.permutation([0] * 400 + [1])]
    found = evidence(pairs, error=0.05, margin=0.3, total=401, strata={"a": 400, "b": 1}, ended=True)

    assert found.verdict == NO_DIFFERENCE
    assert found.interval[0] <= -0.45
    assert found.interval[1] >= 0.45


def test_scores_that_are_all_alike_show_nothing_after_a_few_items() -> None:
    # If one in a hundred were -0.99, the models would be equal, and most samples of 20 would have none of these.
    found = decided([Pair(0.5, 0.51)] * 20)
    assert found.verdict == NO_DIFFERENCE
    assert found.interval[0] < 0 < found.interval[1]
    few = evidence([Pair(0.5, 0.51)] * 20, error=0.05, margin=0.1, total=20)
    assert few.verdict == NO_DIFFERENCE
    many = evidence([Pair(0.5, 0.51)] * 2_000, error=0.05, margin=0.0, total=2_000)
    assert many.verdict == BETTER


def test_a_few_large_passages_decide_nothing_by_their_number() -> None:
    """27 single items are all better, three passages of ten items are worse: a few more of these, and the mean is 0."""
    small = [Pair(0.0, 1.0)] * 14 + [Pair(1.0, 1.0)] * 13
    large = [Pair(1.0, 1.0, cluster=str(number)) for number in range(3) for _ in range(10)]
    found = evidence([*small, *large], error=0.05, margin=0.0, total=57, clusters={"": 30}, largest={"": 10})
    assert found.verdict == NO_DIFFERENCE
    assert found.interval[0] < 0
