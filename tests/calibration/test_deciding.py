"""What decisions on the way cost and save, on published answers and on drawn ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from services.results.sequential.draws import Pair
from services.results.sequential.evidence import evidence
from services.results.sequential.verdicts import BETTER, EQUIVALENT, WORSE
from tests.calibration.deciding import (
    ABSENT,
    FOLDER,
    RULES,
    TASKS,
    Decision,
    bets,
    differences,
    equal,
    opposite,
    servings,
    whole,
)

pytestmark = pytest.mark.calibration

ORDERS = 5
published = pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)


@published
@pytest.mark.parametrize("task", TASKS)
def test_a_quarter_of_the_items_finds_what_all_would(task: str) -> None:
    rng = default_rng(17)
    known: dict[str, list[tuple[Decision, Decision]]] = {name: [] for name in RULES}
    for difference in differences(task):
        truth = whole(difference)
        for _ in range(ORDERS):
            order = rng.permutation(difference)
            for name, rule in RULES.items():
                known[name].append((rule(order), truth))
    print(f"\n{task}: {len(known['all items']):,} decisions")
    for name, decisions in known.items():
        parts, agree, wrong = _summary(decisions)
        print(f"  {name:26} {parts:6.1%} of the items, agrees in {agree:6.2%}, wrong direction {wrong:.2%}")
    parts, agree, wrong = _summary(known["touchstone decide"])
    # The pipeline asks up to 2 % more than is needed, as its test with published answers checks, and 30 % are promised.
    assert parts <= 0.28
    assert agree >= 0.95
    assert wrong <= 0.001


def _summary(decisions: list[tuple[Decision, Decision]]) -> tuple[float, float, float]:
    return (
        float(np.mean([found.part for found, _ in decisions])),
        float(np.mean([found.verdict == truth.verdict for found, truth in decisions])),
        float(np.mean([opposite(found.verdict, truth.verdict) for found, truth in decisions])),
    )


@published
def test_equal_models_are_told_apart_in_at_most_5_percent_of_published_sizes() -> None:
    rng = default_rng(18)
    counts = {name: Counter[bool]() for name in RULES}
    for task in TASKS:
        for difference in differences(task):
            for _ in range(ORDERS):
                drawn = equal(rng, rng.permutation(difference))
                for name, rule in RULES.items():
                    counts[name][rule(drawn).verdict in (BETTER, WORSE)] += 1
    print("\nEqual models, with as many differences as the published ones:")
    for name, found in counts.items():
        print(f"  {name:26} finds a difference in {found[True] / found.total():6.2%} of {found.total():,}")
    assert counts["touchstone decide"].total() >= 4_000
    assert counts["touchstone decide"][True] <= 0.05 * counts["touchstone decide"].total()


@published
@pytest.mark.parametrize(("task", "count"), [("gsm8k", 3), ("math_l5", 2), ("crux", 3)])
def test_servings_of_one_model_are_rarely_different(task: str, count: int) -> None:
    known, rng, orders = servings(task), default_rng(19), 200
    assert len(known) == count
    for a, b in combinations(known, 2):
        found = Counter(bets(rng.permutation(b - a)).verdict for _ in range(orders))
        print(f"\n{task}, {np.mean(a != b):.1%} of the items flip: {dict(found)}")
        assert found[BETTER] + found[WORSE] <= 0.05 * orders


@pytest.mark.parametrize(("discordant", "margin"), [(0.05, 0.03), (0.2, 0.05), (0.2, 0.08)])
def test_equivalence_is_found_where_it_is_true_and_rarely_where_it_is_not(discordant: float, margin: float) -> None:
    rng, trials, total = default_rng(20), 500, 1_500
    for true, most in ((0.0, None), (margin, 0.05)):
        chances = [(discordant - true) / 2, 1 - discordant, (discordant + true) / 2]
        found = [bets(rng.choice([-1, 0, 1], total, p=chances), margin) for _ in range(trials)]
        share = float(np.mean([each.verdict == EQUIVALENT for each in found]))
        parts = float(np.mean([each.part for each in found]))
        print(f"\nDifference {true}, margin {margin}, {discordant:.0%} differ: equivalent in {share:.1%}, {parts:.0%}")
        assert share >= 0.9 if most is None else share <= most


def _accuracy(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    found = rng.choice(3, 600, p=[0.13, 0.7, 0.17])
    return [Pair(float(each < 2), float(each > 0)) for each in found.tolist()], 0.04, {}


def _scores(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    """Overlaps of words: often 0 or 1, else anything between."""
    ability = rng.beta(0.6, 0.5, 400)
    a = np.where(rng.random(400) < 0.5, np.round(ability), ability)
    b = np.where(rng.random(400) < 0.2, rng.beta(0.6, 0.5, 400), a)
    return [Pair(*each) for each in np.stack([a, b], axis=1).tolist()], 0.0, {}


def _clusters(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    """Passages with 1 to 8 questions, and chances that the questions of a passage share."""
    pairs = []
    for name in range(120):
        size = int(rng.integers(1, 9))
        a, b = rng.beta(2, 1, 2)
        pairs += [Pair(float(x < a), float(y < b), cluster=str(name)) for x, y in rng.random((size, 2)).tolist()]
    return pairs, 0.0, {"largest": {"": 8}}


def _strata(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    """Tasks of several sizes, where B is better in one and worse in another."""
    tasks = {"small": (80, 0.1), "middle": (160, -0.1), "large": (320, 0.06)}
    pairs = []
    for name, (items, gain) in tasks.items():
        kinds = rng.choice(3, items, p=[0.15 - gain / 2, 0.7, 0.15 + gain / 2]).tolist()
        pairs += [Pair(float(kind < 2), float(kind > 0), name) for kind in kinds]
    return (
        [pairs[place] for place in rng.permutation(len(pairs))],
        0.02,
        {"strata": {name: items for name, (items, _) in tasks.items()}},
    )


def _clustered_strata(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    groups, strata, clusters = [], Counter[str](), {"plain": 150, "passages": 60}
    for stratum, count in clusters.items():
        for name in range(count):
            a, b = rng.beta(2, 1, 2)
            size = 1 if stratum == "plain" else int(rng.integers(2, 7))
            strata[stratum] += size
            group = [Pair(float(x < a), float(y < b), stratum, str(name)) for x, y in rng.random((size, 2)).tolist()]
            groups.append(group)
    order = rng.permutation(len(groups))
    return [pair for place in order for pair in groups[place]], 0.0, {
        "strata": strata, "clusters": clusters, "largest": {"passages": 6}
    }  # fmt: skip


def _alike(rng: Generator) -> tuple[list[Pair], float, dict[str, object]]:
    """Scores of which one in a hundred falls a lot, and all others rise a little."""
    falls = rng.random(100) < 0.01
    return [Pair(0.99, 0.0) if fall else Pair(0.5, 0.51) for fall in falls.tolist()], 0.0, {}


@pytest.mark.parametrize("world", [_accuracy, _scores, _clusters, _strata, _clustered_strata, _alike])
def test_intervals_hold_the_truth_at_all_times_in_95_percent(
    world: Callable[[Generator], tuple[list[Pair], float, dict[str, object]]],
) -> None:
    rng, trials, held, wrong, width = default_rng(21), 1_000, 0, 0, 0.0
    for _ in range(trials):
        pairs, truth, plan = world(rng)
        # The interval is that of all looks together. At the end it includes the comparison of all items.
        found = evidence(pairs, error=0.05, margin=0.0, total=len(pairs), **plan)  # type: ignore[arg-type]
        low, high = found.interval
        held += low <= truth <= high
        wrong += found.verdict in ({BETTER, WORSE} if not truth else {WORSE})
        width += high - low
    known = f"held in {held / trials:.1%}, wrong verdicts {wrong / trials:.1%}, width {width / trials:.3f}"
    print(f"\n{world.__name__}: {known}")
    assert held >= 0.95 * trials
    assert wrong <= 0.05 * trials
