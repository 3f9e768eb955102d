"""What must hold of every paired difference, whatever the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Difference, Terms
from services.results.paired.pairs.rows import ClusteredConfusion, Confusion, Correlation, Cost, Means, Metric, TaskRows
from tests.unit.results.paired_rows import KINDS, PAIRS, TERMS, counted, mixed_task, seeds


def shuffled(task: TaskRows, order: np.typing.NDArray[np.int64]) -> TaskRows:
    """The same task with its rows in another order."""

    def moved(metric: Metric) -> Metric:
        if isinstance(metric, Means):
            return Means(metric.sums[order], metric.sizes[order])
        if isinstance(metric, Confusion):
            return replace(metric, references=metric.references[order], predictions=metric.predictions[order])
        if isinstance(metric, ClusteredConfusion):
            return replace(metric, shares=metric.shares[:, order])
        if isinstance(metric, Cost):
            return replace(metric, values=metric.values[order])
        columns = [replace(c, rows=np.argsort(order)[c.rows]) for c in metric.columns]
        return Correlation(metric.name, tuple(columns))

    return replace(task, counts=task.counts[order], metrics={n: moved(m) for n, m in task.metrics.items()})


def near(found: Difference, expected: Difference) -> None:
    for name in ("value", "stderr", "low", "high", "p", "smallest", "equivalence_p"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one is other is None or one == pytest.approx(other, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
@settings(max_examples=12, deadline=None)
def test_exchanging_two_models_negates_the_difference_and_keeps_p_to_the_last_digit(kind: str, seed: int) -> None:
    task = mixed_task(np.random.default_rng(seed), kind)
    there = task_differences([task], PAIRS, TERMS)[0]
    back = task_differences([task], [(b, a) for a, b in PAIRS], TERMS)[0]
    for name in task.metrics:
        assert [-found for found in there[name]] == back[name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_difference_does_not_hang_on_the_other_models_nor_on_the_order_of_anything(kind: str) -> None:
    rng = np.random.default_rng(4)
    task = mixed_task(rng, kind, models=4)
    alone = task_differences([task], [(2, 0)], Terms(resamples=200))[0]
    every = task_differences(
        [task, mixed_task(rng, "right", models=4)], [(1, 3), (2, 0), (0, 1)], Terms(resamples=200)
    )[0]
    # The bootstrap of costs draws items by their places.
    moved = task if kind == "cost" else shuffled(task, rng.permutation(len(task.counts)))
    again = task_differences([moved], [(2, 0)], Terms(resamples=200))[0]
    for name in task.metrics:
        near(every[name][1], alone[name][0])
        near(again[name][0], alone[name][0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_numbers(kind: str) -> None:
    task = mixed_task(np.random.default_rng(5), kind)
    assert task_differences([task], PAIRS, TERMS) == task_differences([task], PAIRS, TERMS)


def test_another_seed_moves_only_what_is_drawn() -> None:
    task = mixed_task(np.random.default_rng(6), "table")
    one, two = (task_differences([task], PAIRS, replace(TERMS, seed=seed))[0]["f1"][0] for seed in (1, 2))
    assert one.stderr != two.stderr
    assert (one.value, one.p) == (two.value, two.p)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_against_itself_shows_nothing(kind: str) -> None:
    for found in task_differences([mixed_task(np.random.default_rng(7), kind)], [(1, 1)], TERMS)[0].values():
        assert (found[0].value, found[0].p) == (0.0, 1.0)
        assert found[0].low is not None
        assert found[0].high is not None
        if kind != "cost":
            assert found[0].low < 0 < found[0].high


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
@settings(max_examples=12, deadline=None)
def test_an_interval_holds_its_difference_and_a_wider_level_is_wider(kind: str, seed: int) -> None:
    task = mixed_task(np.random.default_rng(seed), kind)
    narrow = task_differences([task], PAIRS, replace(TERMS, alpha=0.2))[0]
    for name, wide in task_differences([task], PAIRS, replace(TERMS, alpha=0.02))[0].items():
        for outer, inner in zip(wide, narrow[name], strict=True):
            if outer.value is None:
                continue
            bounds = (outer.low, inner.low, inner.value, inner.high, outer.high)
            assert None not in bounds
            assert list(bounds) == sorted(bounds)  # type: ignore[type-var]
            assert 0 < (inner.p or 0) <= 1


def test_nothing_in_common_is_undefined_and_one_cluster_tells_nothing_of_the_spread() -> None:
    assert task_differences([counted(0, 0, 0, 0)], [(0, 1)], TERMS)[0]["accuracy"][0].value is None
    assert suite_differences([[counted(0, 0, 0, 0)], [counted(1, 2, 3, 4)]], [(0, 1)], TERMS)[0].value is None
    assert suite_differences([], [(0, 1)], TERMS)[0].undefined_reason == "no items"
    single = TaskRows("t", np.ones(1), {"em": Means(np.array([[5.0, 3.0]]), np.array([8.0]))}, clustered=True)
    found = task_differences([single], [(0, 1)], TERMS)[0]["em"][0]
    assert (found.value, found.stderr, found.low, found.p) == (0.25, None, None, 1.0)
