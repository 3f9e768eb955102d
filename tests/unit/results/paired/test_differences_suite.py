"""The difference of two suites' scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.rows import Correlation, Means
from tests.unit.results.paired_rows import KINDS, PAIRS, TERMS, counted, mixed_task, scored, seeds


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_exchanging_two_models_negates_the_suites_difference_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [[mixed_task(rng, kind)] for kind in KINDS if kind != "cost"]
    there = suite_differences(groups, PAIRS, TERMS)
    assert [-found for found in there] == suite_differences(groups, [(b, a) for a, b in PAIRS], TERMS)


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


def test_a_task_without_a_metric_that_counts_is_refused() -> None:
    with pytest.raises(ValueError, match="no metric that counts"):
        suite_differences([[mixed_task(np.random.default_rng(0), "cost")], [counted(1, 1, 1, 1)]], [(0, 1)], TERMS)
