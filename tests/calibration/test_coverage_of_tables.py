"""How often intervals of F1, macro F1 and Matthews correlation hold the truth where tables are far from even: answers
that are nearly all the same, labels that hardly occur, many labels, nearly everything right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.random import default_rng

from services.results.scores import aggregation
from services.results.scores.aggregation import TaskData
from services.results.scores.suite_score import average
from services.results.statistics.metric_values import Cell
from tests.calibration.worlds import OneTable, within
from tests.parts import NIGHTLY
from touchstone.v1.suite_pb2 import MetricSpec

pytestmark = pytest.mark.calibration

TRIALS = 600 if NIGHTLY else 80
LEAST, MOST = 0.93, 0.97
RARE = (0.41, 0.51, 0.08)
"""CB's labels."""
FALLING = 1 / np.arange(1, 17)
ACCURACIES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99)


def near_constant(positives: float) -> list[OneTable]:
    """Says no to nearly everything: by chance, or a little more often where that is right."""
    base = (1 - positives, positives)
    found = [OneTable.guessing(base, (1 - said, said)) for said in (0.005, 0.01, 0.02, 0.03)]
    for said, wrongly in ((0.02, 0.005), (0.05, 0.01), (0.08, 0.01)):
        found.append(OneTable(base, np.array([[1 - wrongly, wrongly], [1 - said, said]])))
    return found


def accurate(base: Iterable[float]) -> list[OneTable]:
    return [OneTable.accurate(tuple(base), accuracy) for accuracy in ACCURACIES]


def leaning(base: Iterable[float]) -> list[OneTable]:
    """Leans towards the most frequent label, which the rare ones are taken for."""
    found = []
    for world in accurate(base):
        answers = world.answers / 2
        answers[:, int(np.argmax(world.base))] += 0.5
        found.append(OneTable(world.base, answers))
    return found


CORNERS = {
    "Matthews correlation, nearly all the same": (
        "matthews_correlation",
        (*near_constant(0.31), *near_constant(0.5)),
        (277, 400, 1000),
    ),
    "Matthews correlation, rare label": ("matthews_correlation", accurate((0.95, 0.05)), (100, 277, 400, 1000)),
    "Matthews correlation, even": ("matthews_correlation", accurate((0.5, 0.5)), (25, 56, 100, 400)),
    "Matthews correlation, 16 labels": ("matthews_correlation", accurate(FALLING), (100, 400, 1000)),
    "F1, rare label": ("f1", accurate((0.95, 0.05)), (100, 277, 400, 1000)),
    "F1, very rare label": ("f1", accurate((0.99, 0.01)), (400, 1000, 5000)),
    "F1, nearly all the same": ("f1", (*near_constant(0.31), *near_constant(0.5)), (277, 400, 1000)),
    "macro F1, rare label": ("macro_f1", (*accurate(RARE), *leaning(RARE)), (56, 100, 277, 400)),
    "macro F1, even": ("macro_f1", accurate((0.5, 0.5)), (25, 56, 100, 400)),
    "macro F1, 16 labels": ("macro_f1", accurate(np.ones(16)), (400, 1000)),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_intervals_of_uneven_tables_cover_93_to_97_percent(corner: str) -> None:
    metric, worlds, sizes = CORNERS[corner]
    rng, held, widths = default_rng(400), {}, {}
    for n in sizes:
        found = [
            (within(low, world.truth(metric), high), high - low)
            for world in worlds
            for _ in range(TRIALS)
            for low, high in [interval(world, metric, rng, n)]
        ]
        held[n], widths[n] = np.mean(found, axis=0)
    print(f"\n{corner}:", ", ".join(f"n = {n}: {held[n]:.3f} (width {widths[n]:.3f})" for n in sizes))
    assert LEAST <= np.mean(list(held.values())) <= MOST
    assert all(LEAST - 0.01 <= share <= MOST + 0.01 for share in held.values())


def interval(world: OneTable, metric: str, rng: np.random.Generator, n: int) -> tuple[float, float]:
    found = measured(world.draw(rng, n), [metric], world, "t").estimates[metric]
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high
    assert found.low <= found.value <= found.high
    return found.low, found.high


AVERAGES = {
    "CB's accuracy and macro F1": (("accuracy", "macro_f1"), (*accurate(RARE), *leaning(RARE)), 1, (56, 100, 400)),
    "accuracy and F1 of a rare label": (("accuracy", "f1"), accurate((0.95, 0.05)), 1, (100, 400)),
    "four tasks of nearly constant answers": (("matthews_correlation",), near_constant(0.31), 4, (400,)),
    "three tasks like CB": (("macro_f1",), accurate(RARE), 3, (56,)),
}


@pytest.mark.parametrize("of", AVERAGES)
def test_intervals_of_averages_over_uneven_tables_cover_90_to_97_percent(of: str) -> None:
    """Their draws know less of empty cells than the interval of a single metric does."""
    metrics, worlds, tasks, sizes = AVERAGES[of]
    rng, held = default_rng(57), {}
    for n in sizes:
        hits = []
        for world, _ in product(worlds, range(TRIALS)):
            groups = [[measured(world.draw(rng, n), metrics, world, f"t{task}")] for task in range(tasks)]
            found = average(groups)
            assert found is not None
            hits.append(within(found.low, float(np.mean([world.truth(metric) for metric in metrics])), found.high))
        held[n] = float(np.mean(hits))
    print(f"\nMean of {of}:", ", ".join(f"n = {n}: {share:.3f}" for n, share in held.items()))
    assert all(0.90 <= share <= MOST for share in held.values())


def measured(cells: Sequence[Cell], metrics: Sequence[str], world: OneTable, task: str) -> aggregation.Measured:
    specs = [MetricSpec(metric=metric, positive_label=world.positive) for metric in metrics]
    return aggregation.measure(TaskData(task, cells), specs, 300)


GRID = list(product((0.5, 0.2, 0.05, 0.01), (25, 56, 100, 277, 400, 1000, 5000)))


@pytest.mark.skipif(not NIGHTLY, reason="the corners are part of it")
@pytest.mark.parametrize("metric", ["matthews_correlation", "f1"])
@pytest.mark.parametrize(("positives", "n"), GRID)
def test_intervals_of_two_labels_cover_93_percent_or_more_over_the_whole_grid(
    metric: str, positives: float, n: int
) -> None:
    """Where a label is expected less than a few times nothing can be told, and intervals hold nearly everything. Of
    nearly constant answers this holds of the Matthews correlation up to 100 items."""
    worlds = [*accurate((1 - positives, positives)), *near_constant(positives)]
    rng = default_rng(28)
    hits = []
    for world in worlds:
        truth = world.truth(metric)
        hits += [within(low, truth, high) for low, high in (interval(world, metric, rng, n) for _ in range(TRIALS))]
    print(f"\n{metric}, {positives:g} positive, n = {n}: {np.mean(hits):.3f}")
    assert np.mean(hits) >= LEAST
    told = positives * n >= 20 and (metric == "f1" or n > 100)
    assert not told or np.mean(hits) <= MOST
