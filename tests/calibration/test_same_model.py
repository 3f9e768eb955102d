"""A model compared with itself: how often a difference is claimed."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from services.results.paired.corrections import Correction, adjust
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.paired.pairs.rows import is_binary
from tests.calibration.worlds import (
    NO_YES,
    THREE,
    ClassTask,
    Unlike,
    alike,
    by_cluster,
    by_item,
    cluster_answers,
    passages,
    ratings,
    right_and_wrong,
)

pytestmark = pytest.mark.calibration

RUNS = 2_000
TERMS = Terms(resamples=200)
PAIR = [(0, 1)]

EASY, FAIR, HARD = alike((0.99, 0.97, 0.6)), alike((0.97, 0.85, 0.5)), alike((0.8, 0.6, 0.35))
CLASS_TASKS = (
    ClassTask("cola", 1043, NO_YES, (0.31, 0.69), FAIR, ("matthews_correlation", "accuracy")),
    ClassTask("sst2", 872, NO_YES, (0.49, 0.51), EASY),
    ClassTask("mrpc", 408, NO_YES, (0.32, 0.68), FAIR, ("f1", "accuracy")),
    ClassTask("qqp", 40_430, NO_YES, (0.63, 0.37), FAIR, ("f1", "accuracy")),
    ClassTask("mnli", 9815, THREE, (0.33, 0.35, 0.32), FAIR),
    ClassTask("mnli_mismatched", 9832, THREE, (0.33, 0.35, 0.32), FAIR),
    ClassTask("qnli", 5463, NO_YES, (0.5, 0.5), EASY),
    ClassTask("rte", 277, NO_YES, (0.53, 0.47), FAIR),
    ClassTask("wnli", 71, NO_YES, (0.56, 0.44), HARD),
    ClassTask("cb", 56, THREE, (0.5, 0.41, 0.09), FAIR, ("accuracy", "macro_f1")),
    ClassTask("copa", 100, NO_YES, (0.5, 0.5), EASY),
)


def test_one_model_over_14_tasks_differs_from_itself_in_at_most_5_percent_of_comparisons() -> None:
    rng = np.random.default_rng(2026)
    rejected: dict[str, int] = defaultdict(int)
    sizes: dict[str, int] = defaultdict(int)
    for _ in range(RUNS):
        tasks = [task.draw(rng) for task in CLASS_TASKS]
        tasks += [
            ratings(rng, 1500),
            passages(rng, 83, 12, 5),
            by_cluster(cluster_answers(rng, 300, 4, (0.8, 0.8), binary=False)),
        ]
        found = task_differences(tasks, PAIR, TERMS)
        primary = {task.task: next(iter(f.values()))[0] for task, f in zip(tasks, found, strict=True)}
        every = {f"{t.task} {name}": f[name][0] for t, f in zip(tasks, found, strict=True) for name in t.metrics}
        together = [tasks[4], tasks[5]]
        groups = [[task] for task in tasks if task not in together] + [together]
        suite = suite_differences(groups, PAIR, TERMS)[0]
        families = _claims(primary), _claims(every), _p(suite) <= TERMS.alpha
        for name, claimed in zip(("primary metrics", "all metrics", "suite"), families, strict=True):
            rejected[name] += claimed
        rejected["suite or a primary metric"] += families[0] or families[2]
        for name, difference in every.items():
            sizes[name] += _p(difference) <= TERMS.alpha
    exact = [f"{t.task} {name}" for t in tasks for name, metric in t.metrics.items() if is_binary(metric)]
    print("\nA model with itself, 14 tasks, share of comparisons with a claim:")
    for name, count in rejected.items():
        print(f"  {name:28} {count / RUNS:.3f}")
    print("Single tests at 5 %, uncorrected:")
    for name, count in sizes.items():
        print(f"  {name:28} {count / RUNS:.3f}{'  exact' if name in exact else ''}")
    print(f"  mean of the exact tests      {np.mean([sizes[name] for name in exact]) / RUNS:.3f}")
    assert rejected["primary metrics"] <= 0.05 * RUNS
    assert rejected["all metrics"] <= 0.05 * RUNS
    assert rejected["suite"] <= _at_most(0.05)
    assert max(sizes.values()) <= _at_most(0.05)


def _p(difference: Difference) -> float:
    assert difference.p is not None
    return difference.p


def _claims(family: dict[str, Difference]) -> bool:
    adjusted = adjust([difference.p for difference in family.values()], Correction.HOLM)
    return any(p is not None and p <= TERMS.alpha for p in adjusted)


def _at_most(share: float, runs: int = RUNS) -> float:
    """What a test of this size passes in all but one of 2,000 simulations."""
    return float(runs * share + 3.3 * np.sqrt(runs * share * (1 - share)))


@pytest.mark.parametrize(("clusters", "size", "runs"), [(40, 8, 2000), (10, 8, 2000), (10, 40, 1500)])
def test_the_clustered_test_keeps_5_percent_where_a_naive_one_rejects_four_times_as_often(
    clusters: int, size: int, runs: int
) -> None:
    rng = np.random.default_rng(40)
    clustered = naive = 0
    for _ in range(runs):
        scores = cluster_answers(rng, clusters, size, (0.7, 0.7), icc=0.4)
        found = [task_differences([task], PAIR, TERMS)[0] for task in (by_cluster(scores), by_item(scores))]
        clustered += _p(found[0]["exact_match"][0]) <= TERMS.alpha
        naive += _p(found[1]["exact_match"][0]) <= TERMS.alpha
    print(f"\n{clusters} clusters of {size}: clustered {clustered / runs:.3f}, naive {naive / runs:.3f}")
    assert 0.03 * runs <= clustered <= _at_most(0.05, runs)
    assert naive > 3 * clustered


@pytest.mark.parametrize("metric", ["matthews_correlation", "macro_f1"])
def test_models_of_unlike_labels_keep_5_percent_where_it_is_drawn_which_is_which(metric: str) -> None:
    """One says the same of nearly all items, the other of half of them."""
    rng, runs = np.random.default_rng(995), 500
    for world in (Unlike(400, (0.5, 0.64), (0.995, 0.995)), Unlike(277, (0.9, 0.3), (0.995, 0.98))):
        tasks = (world.draw(rng, metric, exchanged=True) for _ in range(runs))
        claims = sum(_p(task_differences([task], PAIR, TERMS)[0][metric][0]) <= 0.05 for task in tasks)
        print(f"\nUnlike labels, {metric}, n = {world.n}: rejects {claims / runs:.3f} of true nulls")
        assert 0.02 * runs <= claims <= _at_most(0.05, runs)


@pytest.mark.parametrize(
    "sizes", [(56, 100), (100, 100, 277), (56, 71, 100, 104, 277, 638)], ids=lambda sizes: f"{len(sizes)}"
)
def test_the_suites_test_keeps_5_percent_with_few_small_tasks(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(56)
    runs, shares = 500, []
    for only in (0.02, 0.06, 0.15):
        # The last: one model is better on one half of the suite and worse on the other.
        for apart in (0.0, only / 2):
            claims = 0
            for _ in range(runs):
                groups = [[right_and_wrong(rng, n, 0.7, only, only, f"t{i}")] for i, n in enumerate(sizes)]
                if apart:
                    groups = [
                        [right_and_wrong(rng, n, 0.7, only + side, only - side, f"t{i}")]
                        for i, (n, side) in enumerate(zip(sizes, _balanced(sizes, apart), strict=True))
                    ]
                claims += _p(suite_differences(groups, PAIR, TERMS)[0]) <= 0.05
            shares.append(claims / runs)
    print(f"\nSuite of {sizes}: rejects {', '.join(f'{share:.3f}' for share in shares)} of true nulls")
    assert max(shares) <= _at_most(0.05, runs) / runs
    assert np.mean(shares) >= 0.02


def _balanced(sizes: tuple[int, ...], apart: float) -> list[float]:
    """Differences of tasks that add up to 0."""
    signs = [apart * (-1) ** i for i in range(len(sizes))]
    if len(sizes) % 2:
        signs[-1] = 0.0
    return signs
