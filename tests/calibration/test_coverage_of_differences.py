"""How often intervals of differences hold the truth, on average over a grid of truths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng

from services.results.paired import binary
from services.results.paired.confusion_differences import difference_ranges
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Terms
from services.results.paired.pairs.rows import Confusion, Correlation
from services.results.statistics.intervals import Z95
from services.results.statistics.metric_values import pearson, spearman
from tests.calibration.worlds import (
    NO_YES,
    THREE,
    ClassTask,
    Unlike,
    by_cluster,
    cluster_answers,
    ratings,
    right_and_wrong,
    within,
)
from tests.parts import NIGHTLY

pytestmark = pytest.mark.calibration

LEAST, MOST = 0.94, 0.96
TERMS = Terms(resamples=400)
TRIALS = 3_000 if NIGHTLY else 300
PAIR = [(0, 1)]


def test_differences_of_accuracy_are_covered_in_94_to_96_percent() -> None:
    rng, found, trials = default_rng(9), {}, 3_000
    for n in (56, 100, 277, 872):
        shares = []
        for accuracy, gap, together in product((0.3, 0.5, 0.7, 0.85, 0.92), (0.0, 0.03, 0.08), (0.0, 0.4, 0.7)):
            a, b = accuracy, accuracy - gap
            both = together * b + (1 - together) * a * b
            counts = rng.multinomial(n, [both, a - both, b - both, 1 - a - b + both], trials).astype(float)
            low, high = binary.score_interval(np.full(trials, float(n)), counts[:, 1], counts[:, 2], 0.05)
            shares.append(np.mean((low <= gap + 1e-12) & (gap - 1e-12 <= high)))
        found[n] = float(np.mean(shares))
    print("\nAccuracy, A − B:", ", ".join(f"n = {n}: {share:.3f}" for n, share in found.items()))
    assert all(LEAST <= share <= MOST for share in found.values())


def test_differences_of_f1_and_matthews_are_covered_in_94_to_96_percent() -> None:
    rng, found = default_rng(68), {}
    for metric, labels, base in (
        ("f1", NO_YES, (0.32, 0.68)),
        ("matthews_correlation", NO_YES, (0.32, 0.68)),
        ("macro_f1", THREE, (0.5, 0.41, 0.09)),
    ):
        for n in (56, 100, 277, 1043):
            hits = []
            for accuracy, gap, lean in product((0.6, 0.8, 0.93), (0.0, 0.05), (0.0, 0.06)):
                rates = np.array([[accuracy + 0.04, accuracy - 0.04], [accuracy + 0.04 - gap, accuracy - 0.04 - gap]])
                task = ClassTask("t", n, labels, base, rates, (metric,), (lean, -lean))
                truth = task.truth(metric)
                for _ in range(70):
                    difference = task_differences([task.draw(rng)], PAIR, TERMS)[0][metric][0]
                    hits.append(within(difference.low, truth, difference.high))
            found[f"{metric}, n = {n}"] = float(np.mean(hits))
    print("\nTables, A − B:", *(f"  {name}: {share:.3f}" for name, share in found.items()), sep="\n")
    print(f"  on average: {np.mean(list(found.values())):.3f}")
    assert LEAST <= np.mean(list(found.values())) <= MOST


def test_differences_of_unlike_tables_are_covered_in_93_to_97_percent() -> None:
    """One model says the same of nearly all items."""
    rng, hits = default_rng(99), []
    for n, metric in product((277, 600), ("matthews_correlation", "macro_f1")):
        for a, b in (((0.5, 0.64), (0.995, 0.995)), ((0.7, 0.82), (0.99, 0.99)), ((0.95, 0.4), (0.995, 0.97))):
            world = Unlike(n, a, b)
            truth = world.truth(metric)
            for _ in range(80):
                difference = task_differences([world.draw(rng, metric)], PAIR, TERMS)[0][metric][0]
                hits.append(within(difference.low, truth, difference.high))
    print(f"\nUnlike tables, A − B: {np.mean(hits):.3f}")
    assert 0.93 <= np.mean(hits) <= 0.97


CONSTANT = (((0.98, 0.98), (0.995, 0.995)), ((0.97, 0.995), (0.99, 0.99)), ((0.95, 0.98), (0.99, 0.995)))
"""How often two models say yes where that is right, and where it is wrong."""


def rare(metric: str, labels: tuple[str, ...], base: Sequence[float], n: int) -> list[ClassTask]:
    return [
        ClassTask("t", n, labels, base, np.array([[p + 0.04, p - 0.04], [p + 0.04 - gap, p - 0.04 - gap]]), (metric,))
        for p, gap in ((0.6, 0.0), (0.8, 0.05), (0.93, 0.05))
    ]


CORNERS: dict[str, tuple[str, Callable[[int], Sequence[ClassTask | Unlike]], Sequence[int], Sequence[int]]] = {
    "both nearly constant": (
        "matthews_correlation",
        lambda n: [Unlike(n, a, b) for a, b in CONSTANT],
        (100,),
        (277, 400),
    ),
    "nearly constant, and itself": (
        "matthews_correlation",
        lambda n: [Unlike(n, a, a) for a, _ in CONSTANT],
        (100, 277, 400),
        (1000, 3000),
    ),
    "both nearly constant on the same items": (
        "matthews_correlation",
        lambda n: [Unlike(n, a, b, together=0.8) for a, b in CONSTANT],
        (100,),
        (277, 400),
    ),
    "F1 of a rare label, nearly the same answers": (
        "f1",
        lambda n: [Unlike(n, (0.6, 0.03), (0.5, 0.01), base=0.1, together=0.6)],
        (100,),
        (400, 1000),
    ),
    "F1 of a rare label": ("f1", lambda n: rare("f1", NO_YES, (0.95, 0.05), n), (100,), (277, 400)),
    "Matthews correlation of a rare label": (
        "matthews_correlation",
        lambda n: rare("matthews_correlation", NO_YES, (0.95, 0.05), n),
        (100,),
        (277, 400),
    ),
    "CB's macro F1": ("macro_f1", lambda n: rare("macro_f1", THREE, (0.51, 0.41, 0.08), n), (56,), (100, 277)),
}
"""The metric, the worlds, and numbers of items at which a few items decide and at which they do not."""


@pytest.mark.parametrize("corner", CORNERS)
def test_differences_of_uneven_tables_are_covered_in_93_to_97_percent(corner: str) -> None:
    """Where a handful of items decides, intervals hold nearly everything, as Tango's do."""
    metric, worlds, few, many = CORNERS[corner]
    rng, held, widths = default_rng(83), {}, {}
    for n in (*few, *many):
        found = []
        for world in worlds(n):
            truth = world.truth(metric)
            for _ in range(TRIALS // len(worlds(n))):
                rows = world.draw(rng) if isinstance(world, ClassTask) else world.draw(rng, metric)
                table = rows.metrics[metric]
                assert isinstance(table, Confusion)
                ((low, high),) = difference_ranges(table, rows.counts, PAIR, Z95)
                found.append((within(low, truth, high), high - low))
        held[n], widths[n] = np.mean(found, axis=0)
    print(f"\n{corner}, A − B:", ", ".join(f"n = {n}: {held[n]:.3f} (width {widths[n]:.3f})" for n in held))
    assert all(held[n] >= 0.93 for n in few)
    assert 0.93 <= np.mean([held[n] for n in many]) <= 0.97
    assert all(0.92 <= held[n] <= 0.98 for n in many)


def test_a_nearly_constant_model_is_rarely_told_apart_from_itself() -> None:
    rng, shown = default_rng(83), []
    for a, _ in CONSTANT:
        world = Unlike(400, a, a)
        for _ in range(100):
            difference = task_differences([world.draw(rng, "matthews_correlation")], PAIR, TERMS)[0]
            p = difference["matthews_correlation"][0].p
            assert p is not None
            shown.append(p <= 0.05)
    print(f"\nShown of itself: {np.mean(shown):.3f}")
    assert np.mean(shown) <= 0.07


def test_differences_of_correlations_are_covered_in_94_to_96_percent() -> None:
    rng, found = default_rng(15), {}
    for n, trials in ((60, 250), (200, 250), (1500, 120)):
        hits = []
        for reliability in ((0.9, 0.9), (0.9, 0.84), (0.7, 0.7), (0.95, 0.7)):
            whole = ratings(default_rng(1), 300_000, reliability)
            truth = {}
            for name, metric in whole.metrics.items():
                assert isinstance(metric, Correlation)
                function = pearson if name == "pearson" else spearman
                a, b = (function(column.values, column.targets) for column in metric.columns)
                truth[name] = a - b if reliability[0] != reliability[1] else 0.0
            for _ in range(trials):
                by_metric = task_differences([ratings(rng, n, reliability)], PAIR, TERMS)[0]
                hits += [within(d.low, truth[name], d.high) for name, (d,) in by_metric.items()]
        found[n] = float(np.mean(hits))
    print("\nCorrelations, A − B:", ", ".join(f"n = {n}: {share:.3f}" for n, share in found.items()))
    assert LEAST <= np.mean(list(found.values())) <= MOST


def test_clustered_differences_are_covered_in_94_to_96_percent() -> None:
    rng, found = default_rng(10), {}
    for clusters, size in ((10, 8), (40, 8), (83, 12), (300, 3)):
        hits = []
        for p in ((0.5, 0.5), (0.8, 0.7), (0.9, 0.9), (0.6, 0.4)):
            for _ in range(250):
                task = by_cluster(cluster_answers(rng, clusters, size, p))
                difference = task_differences([task], PAIR, TERMS)[0]["exact_match"][0]
                hits.append(within(difference.low, p[0] - p[1], difference.high))
        found[clusters, size] = float(np.mean(hits))
    print("\nClustered, A − B:", ", ".join(f"{c} of {s}: {share:.3f}" for (c, s), share in found.items()))
    assert LEAST <= np.mean(list(found.values())) <= MOST


@pytest.mark.parametrize(
    "sizes", [(56, 100), (56, 71, 100, 277), (100, 104, 277, 638, 1043, 3270)], ids=lambda sizes: f"{len(sizes)}"
)
def test_differences_of_the_suite_are_covered_in_94_to_96_percent(sizes: tuple[int, ...]) -> None:
    rng, hits = default_rng(14), []
    for only_a, only_b in ((0.05, 0.05), (0.1, 0.06), (0.12, 0.12), (0.2, 0.15)):
        for _ in range(500):
            groups = [[right_and_wrong(rng, n, 0.6, only_a, only_b, f"t{i}")] for i, n in enumerate(sizes)]
            difference = suite_differences(groups, PAIR, TERMS)[0]
            hits.append(within(difference.low, only_a - only_b, difference.high))
    print(f"\nSuite of {sizes}, A − B: {np.mean(hits):.3f}")
    assert LEAST <= np.mean(hits) <= MOST


@pytest.mark.parametrize("sizes", [(56, 277), (100,) * 12 + (600, 1534)], ids=len)
def test_differences_over_the_items_of_tasks_that_differ_are_covered_in_94_to_96_percent(
    sizes: tuple[int, ...],
) -> None:
    """One model is ahead in some tasks and behind in others."""
    rng, hits = default_rng(223), []
    for only_a, only_b in ((0.08, 0.05), (0.12, 0.12), (0.2, 0.15)):
        for _ in range(600):
            sides = rng.uniform(-0.03, 0.03, len(sizes))
            groups = [
                [right_and_wrong(rng, n, 0.6, only_a + side, only_b - side, f"t{i}")]
                for i, (n, side) in enumerate(zip(sizes, sides, strict=True))
            ]
            truth = only_a - only_b + 2 * float(np.average(sides, weights=sizes))
            difference = suite_differences(groups, PAIR, TERMS, by_items=True)[0]
            hits.append(within(difference.low, truth, difference.high))
    print(f"\nItems of {len(sizes)} tasks, A − B: {np.mean(hits):.3f}")
    assert LEAST <= np.mean(hits) <= MOST
