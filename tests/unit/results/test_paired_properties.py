"""What must hold of every paired difference, whatever the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.results.paired.difference import Difference, Terms
from services.results.paired.families import Correction, adjust, adjust_pairs, benjamini_hochberg, holm, task_family
from services.results.paired.ranks import rank_ranges
from services.results.paired.rows import ClusteredTable, Correlation, Cost, Means, Metric, Table, TaskRows
from services.results.paired.suite_difference import suite_differences
from services.results.paired.task_differences import task_differences
from tests.unit.results.paired_rows import KINDS, counted, mixed_task, scored

TERMS = Terms(resamples=200, margin=0.2)
PAIRS = [(0, 1), (0, 2), (1, 2)]
seeds = st.integers(0, 2**32 - 1)
chances = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def shuffled(task: TaskRows, order: np.typing.NDArray[np.int64]) -> TaskRows:
    """The same task with its rows in another order."""

    def moved(metric: Metric) -> Metric:
        if isinstance(metric, Means):
            return Means(metric.sums[order], metric.sizes[order])
        if isinstance(metric, Table):
            return replace(metric, references=metric.references[order], predictions=metric.predictions[order])
        if isinstance(metric, ClusteredTable):
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


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_exchanging_two_models_negates_the_suites_difference_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [[mixed_task(rng, kind)] for kind in KINDS if kind != "cost"]
    there = suite_differences(groups, PAIRS, TERMS)
    assert [-found for found in there] == suite_differences(groups, [(b, a) for a, b in PAIRS], TERMS)


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


def test_a_score_over_items_adds_them_up_and_one_over_tasks_weighs_tasks() -> None:
    small, large = counted(10, 6, 0, 4, "small"), counted(300, 20, 40, 40, "large")
    pooled = suite_differences([[small, large]], [(0, 1)], TERMS, by_items=True)[0]
    assert (pooled.n, pooled.only_a, pooled.only_b) == (420, 26, 40)
    assert pooled.value == pytest.approx(-14 / 420)
    assert pooled.test == "exact McNemar"
    average = suite_differences([[small], [large]], [(0, 1)], TERMS)[0]
    assert average.value == pytest.approx((6 / 20 - 20 / 400) / 2)
    assert average.test == "stratified permutation"
    together = suite_differences([[small, large], [large]], [(0, 1)], TERMS)[0]
    assert together.value == pytest.approx(((6 / 20 - 20 / 400) / 2 - 20 / 400) / 2)


def test_a_suite_of_one_task_says_what_the_task_says() -> None:
    task = counted(50, 9, 2, 10)
    assert suite_differences([[task]], [(0, 1)], TERMS) == task_differences([task], [(0, 1)], TERMS)[0]["accuracy"]


def test_over_items_tasks_with_clusters_weigh_every_item_the_same() -> None:
    rng = np.random.default_rng(8)
    clusters, plain = mixed_task(rng, "clusters"), mixed_task(rng, "right")
    tasks = [
        replace(clusters, metrics={"accuracy": clusters.metrics["em"]}),
        replace(plain, metrics={"accuracy": plain.metrics["score"]}),
    ]
    found = suite_differences([tasks], [(0, 1)], TERMS, by_items=True)[0]
    means = [metric for task in tasks for metric in task.metrics.values() if isinstance(metric, Means)]
    sums = sum(metric.sums.sum(axis=0) for metric in means)
    assert found.value == pytest.approx((sums[0] - sums[1]) / sum(metric.sizes.sum() for metric in means))


def test_the_suites_error_is_that_of_independent_tasks() -> None:
    rng = np.random.default_rng(9)
    tasks = [scored(rng.random((n, 2)), f"t{n}") for n in (50, 200, 800)]
    found = suite_differences([[task] for task in tasks], [(0, 1)], TERMS)[0]
    errors = [task_differences([task], [(0, 1)], TERMS)[0]["score"][0].stderr or 0 for task in tasks]
    assert found.stderr == pytest.approx(np.sqrt(np.sum(np.square(errors))) / 3)


def test_metrics_beside_are_no_part_of_the_score_and_a_named_metric_stands_alone() -> None:
    task = mixed_task(np.random.default_rng(10), "table")
    beside = replace(task, beside=frozenset({"f1", "macro_f1", "matthews_correlation"}))
    only = task_differences([task], PAIRS, TERMS)[0]["accuracy"]
    assert suite_differences([[beside]], PAIRS, TERMS) == only
    assert suite_differences([[task]], PAIRS, TERMS, metric="accuracy") == only


def test_an_undefined_correlation_is_said_by_itself_and_counts_as_zero_in_a_suite() -> None:
    task = mixed_task(np.random.default_rng(11), "correlation", models=2)
    pearson = task.metrics["pearson"]
    assert isinstance(pearson, Correlation)
    flat = replace(pearson.columns[1], values=np.full(len(task.counts), 3.0))
    task = replace(task, metrics={"pearson": Correlation("pearson", (pearson.columns[0], flat))})
    found = task_differences([task], [(0, 1)], TERMS)[0]["pearson"][0]
    assert (found.value, found.p, found.undefined_reason) == (None, None, "all predictions are equal")
    other = counted(20, 4, 4, 20)
    suite = suite_differences([[task], [other]], [(0, 1)], TERMS)[0]
    value = np.corrcoef(pearson.columns[0].values, pearson.columns[0].targets)[0, 1]
    assert suite.value == pytest.approx(value / 2)
    assert suite.undefined_reason == "all predictions are equal"


def test_nothing_in_common_is_undefined_and_one_cluster_tells_nothing_of_the_spread() -> None:
    assert task_differences([counted(0, 0, 0, 0)], [(0, 1)], TERMS)[0]["accuracy"][0].value is None
    assert suite_differences([[counted(0, 0, 0, 0)], [counted(1, 2, 3, 4)]], [(0, 1)], TERMS)[0].value is None
    assert suite_differences([], [(0, 1)], TERMS)[0].undefined_reason == "no items"
    single = TaskRows("t", np.ones(1), {"em": Means(np.array([[5.0, 3.0]]), np.array([8.0]))}, clustered=True)
    found = task_differences([single], [(0, 1)], TERMS)[0]["em"][0]
    assert (found.value, found.stderr, found.low, found.p) == (0.25, None, None, 1.0)


def test_a_task_without_a_metric_that_counts_is_refused() -> None:
    with pytest.raises(ValueError, match="no metric that counts"):
        suite_differences([[mixed_task(np.random.default_rng(0), "cost")], [counted(1, 1, 1, 1)]], [(0, 1)], TERMS)


@given(chances)
@settings(max_examples=100, deadline=None)
def test_adjusted_p_keep_their_order_and_only_grow(p: list[float]) -> None:
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert all(a >= b for a, b in zip(adjusted, p, strict=True))
        assert np.all(np.diff(np.array(adjusted)[np.argsort(p, kind="stable")]) >= 0)
    assert all(a >= b - 1e-12 for a, b in zip(holm(p), benjamini_hochberg(p), strict=True))


def test_what_has_no_p_stays_outside_of_its_family() -> None:
    assert adjust([0.01, None, 0.04], Correction.HOLM) == [0.02, None, 0.04]
    assert adjust([0.01, None, 0.04], Correction.NONE) == [0.01, None, 0.04]
    assert adjust_pairs([0.001, None, 0.04], 0.03) == [0.03, None, 0.04]
    assert adjust_pairs([0.04], None) == [0.04]


def test_more_than_20_tasks_are_explored() -> None:
    assert [task_family(n)[1].value for n in (1, 20, 21, 57)] == ["", "holm", *["benjamini-hochberg"] * 2]
    assert [task_family(n)[0].value for n in (20, 21)] == ["tasks", "exploratory"]


def test_place_ranges_count_who_is_shown_to_be_better_and_worse() -> None:
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = [Difference(value, 100) for value in (0.01, 0.2, 0.1)]
    assert rank_ranges(3, pairs, found, [0.4, 0.001, 0.03], 0.05) == [(1, 2), (1, 2), (3, 3)]
    assert rank_ranges(3, pairs, found, [None, None, None], 0.05) == [(1, 3)] * 3
    assert rank_ranges(2, [(1, 0)], [Difference(-0.1, 9)], [0.01], 0.05) == [(1, 1), (2, 2)]
