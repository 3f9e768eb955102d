"""Comparisons against plain counting over the same items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import pytest

from services.errors import InvalidRequestError
from services.results.storage.database import Connection
from tests.recompute import Answers
from tests.unit.results.comparison.compared import answers, score_of
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, share_right, task
from touchstone.v1 import item_result_pb2, results_service_pb2
from touchstone.v1.suite_pb2 import MetricSpec

RULES = [
    MetricSpec(metric="exact_match", rule=MetricSpec.RULE_MEAN, statistic="correct"),
    MetricSpec(metric="overlap", rule=MetricSpec.RULE_MEAN, statistic="overlap"),
    MetricSpec(metric="em", rule=MetricSpec.RULE_ALL, statistic="correct", over="question"),
    MetricSpec(metric="parity", rule=MetricSpec.RULE_EQUAL, over="question"),
    MetricSpec(metric="pass@k", rule=MetricSpec.RULE_ANY, statistic="correct"),
    MetricSpec(metric="maj@k", rule=MetricSpec.RULE_MAJORITY, statistic="correct"),
]
TABLES = [
    MetricSpec(metric=name, positive_label="yes") for name in ("accuracy", "f1", "macro_f1", "matthews_correlation")
]
CORRELATIONS = [MetricSpec(metric="pearson"), MetricSpec(metric="spearman")]
SHAPES = [(1, False), (1, True), (3, False), (2, True)]
"""Answers per item, and whether items share passages."""


def recomputed(results: Sequence[item_result_pb2.ItemResult], spec: MetricSpec) -> float:
    of_items: float = Answers([results_service_pb2.StoredItem(result=one) for one in results], "yes").of(spec)
    return of_items


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact test by its definition."""
    n = only_a + only_b
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(only_a, only_b) + 1)) / 2.0**n)


def holm(p: Sequence[float]) -> list[float]:
    adjusted, largest = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = largest
    return adjusted


@pytest.mark.parametrize(("repeats", "grouped"), SHAPES)
@pytest.mark.parametrize("specs", [[*TABLES, *RULES], CORRELATIONS], ids=["means and tables", "correlations"])
def test_every_difference_is_that_of_the_metrics_recomputed_from_the_items(
    connection: Connection, repeats: int, grouped: bool, specs: list[MetricSpec]
) -> None:
    made = {job_id: answers(seed, 45, repeats, grouped) for seed, job_id in enumerate("abc", 1)}
    for job_id, results in made.items():
        planned, _ = task("t", results, repeats=repeats)
        del planned.metrics[:]
        planned.metrics.extend(specs)
        finished(connection, job_id, (planned, results), model=f"m-{job_id}")
    response = compared(connection, *made, metrics=[spec.metric for spec in specs])
    for spec in specs:
        values = {job_id: recomputed(results, spec) for job_id, results in made.items()}
        for pair in combinations("abc", 2):
            found = difference(response, "t", spec.metric, pair)
            assert found.difference == pytest.approx(values[found.a] - values[found.b], abs=1e-9), spec.metric
            assert found.n == (15 if spec.metric in ("em", "parity") else 45)
            assert found.low <= found.difference <= found.high
            assert 0 <= found.p_value <= 1
            of_suite = difference(response, "", spec.metric, pair)
            assert abs(of_suite.difference) == pytest.approx(abs(found.difference), abs=1e-9)


def test_items_right_in_one_run_only_and_the_exact_test_are_counted_from_the_items(connection: Connection) -> None:
    patterns = {
        job_id: share_right(share, 120, seed) for seed, (job_id, share) in enumerate({"a": 0.8, "b": 0.6}.items())
    }
    for job_id, pattern in patterns.items():
        finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=job_id)
    found = difference(compared(connection, "a", "b"), "sst2")
    only_a = sum(x > y for x, y in zip(patterns["a"], patterns["b"], strict=True))
    only_b = sum(x < y for x, y in zip(patterns["a"], patterns["b"], strict=True))
    assert (found.a, found.only_a, found.only_b, found.n) == ("a", only_a, only_b, 120)
    assert found.p_value == pytest.approx(mcnemar(only_a, only_b))
    assert found.test == "exact McNemar"


def test_a_suites_difference_is_that_of_the_scores(connection: Connection) -> None:
    for seed, job_id in enumerate("ab"):
        results = answers(seed, 60, 1, False)
        tasks = [
            task("cola", results, "matthews_correlation", "accuracy"),
            task("mrpc", results, "f1", "accuracy"),
            task("m", results, "accuracy", score_group="mnli"),
            task("mm", results, "accuracy", score_group="mnli"),
            task("axb", results, "matthews_correlation", beside=True),
        ]
        finished(connection, job_id, *tasks, model=job_id)
    response = compared(connection, "a", "b", metrics=["score", "accuracy"])
    for metric in ("score", "accuracy"):
        found = difference(response, "", metric)
        expected = score_of(response, found.a, metric).mean - score_of(response, found.b, metric).mean
        assert found.difference == pytest.approx(expected)
    assert {(one.task, one.metric) for one in response.differences if one.task} == {
        ("cola", "matthews_correlation"), ("cola", "accuracy"), ("mrpc", "f1"), ("mrpc", "accuracy"),
        ("m", "accuracy"), ("mm", "accuracy"), ("axb", "matthews_correlation"),
    }  # fmt: skip
    assert difference(response, "", "score").family == "primary"
    assert difference(response, "", "accuracy").family == "exploratory"


def test_the_order_of_the_subjects_changes_nothing(connection: Connection) -> None:
    for seed, job_id in enumerate("abcd"):
        tasks = [task(name, answers(seed * 7 + place, 40, 1, False), "f1") for place, name in enumerate(("x", "y"))]
        finished(connection, job_id, *tasks, model=f"m{job_id}")
    names = ["ma", "mb", "c", "md@local"]
    first = compared(connection, *names, seed=5)
    assert compared(connection, *reversed(names), seed=5) == first
    assert [run.scores[0].mean for run in first.runs] == sorted((r.scores[0].mean for r in first.runs), reverse=True)


def test_pairs_of_the_suite_go_through_holm_and_baselines_stay_outside(connection: Connection) -> None:
    for seed, (job_id, share) in enumerate({"a": 0.9, "b": 0.7, "c": 0.66, "floor": 0.4}.items()):
        pattern = share_right(share, 150, seed)
        finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=job_id, baseline=job_id == "floor")
    response = compared(connection, "a", "b", "c", "floor")
    inside = [one for one in response.differences if not one.task and not one.baseline]
    outside = [one for one in response.differences if not one.task and one.baseline]
    assert (len(inside), len(outside)) == (3, 3)
    (overall,) = [one for one in response.omnibus if not one.task]
    expected = [max(p, overall.p_value) for p in holm([one.p_value for one in inside])]
    assert [one.p_adjusted for one in inside] == pytest.approx(expected)
    assert {one.correction for one in inside} == {"holm"}
    assert not any(one.HasField("p_adjusted") for one in outside)
    assert [run.job_id for run in response.runs] == ["a", "b", "c", "floor"]
    assert (response.runs[3].baseline, response.runs[3].rank_low) == (True, 0)
    assert any("floor is a bundled baseline" in note for note in response.notes)


def test_a_single_hypothesis_is_not_corrected(connection: Connection) -> None:
    for job_id, pattern in {"a": "1" * 30, "b": "10" * 15}.items():
        finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=job_id)
    response = compared(connection, "a", "b")
    assert not any(one.HasField("p_adjusted") or one.correction for one in response.differences)
    assert not response.omnibus


def test_tasks_are_one_family_and_many_of_them_are_exploratory(connection: Connection) -> None:
    few, many = [f"t{n}" for n in range(3)], [f"s{n}" for n in range(24)]
    for suite, names in (("glue", few), ("mmlu", many)):
        for place, job_id in enumerate(("a", "b")):
            tasks = [
                task(name, right_or_wrong(share_right(0.5 + place * 0.3, 60, n + place)))
                for n, name in enumerate(names)
            ]
            finished(connection, f"{suite}-{job_id}", *tasks, model=job_id, suite=suite)
    response = compared(connection, "a", "b")
    found = [one for one in response.differences if one.task]
    assert [one.p_adjusted for one in found] == pytest.approx(holm([one.p_value for one in found]))
    assert {(one.family, one.correction) for one in found} == {("tasks", "holm")}
    response = compared(connection, "a", "b", suite="mmlu")
    found = [one for one in response.differences if one.task]
    assert {(one.family, one.correction) for one in found} == {("exploratory", "benjamini-hochberg")}
    assert any("24 tasks are exploratory" in note for note in response.notes)


def test_places_follow_from_what_is_separated(connection: Connection) -> None:
    for job_id, pattern in {"best": "1" * 60, "second": "10" * 30, "twin": "01" * 30, "last": "0" * 60}.items():
        finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=job_id)
    response = compared(connection, "best", "second", "twin", "last")
    assert {run.job_id: (run.rank_low, run.rank_high) for run in response.runs} == {
        "best": (1, 1), "second": (2, 3), "twin": (2, 3), "last": (4, 4),
    }  # fmt: skip
    against = compared(connection, "best", "second", "twin", "last", baseline="twin")
    assert {run.job_id: run.rank_high for run in against.runs} == {"best": 1, "second": 3, "twin": 3, "last": 4}
    assert {frozenset((one.a, one.b)) for one in against.differences} == {
        frozenset(("twin", other)) for other in ("best", "second", "last")
    }


def test_metrics_restrict_what_is_compared(connection: Connection) -> None:
    for seed, job_id in enumerate("ab"):
        results = answers(seed, 40, 1, False)
        finished(connection, job_id, task("x", results, "f1", "accuracy"), task("y", results, "accuracy"), model=job_id)
    response = compared(connection, "a", "b", metrics=["f1"])
    assert {(one.task, one.metric) for one in response.differences} == {("", "f1"), ("x", "f1")}
    assert [score.metric for score in response.runs[0].scores] == ["f1"]
    with pytest.raises(InvalidRequestError, match="score, f1, accuracy"):
        compared(connection, "a", "b", metrics=["bleu"])


@pytest.mark.parametrize("field", [{"alpha": 0.9}, {"margin": -0.1}, {"margin": float("nan")}, {"alpha": float("inf")}])
def test_terms_beyond_their_bounds_are_refused(connection: Connection, field: dict[str, float]) -> None:
    with pytest.raises(InvalidRequestError, match="must be") as raised:
        compared(connection, "a", "b", **field)  # type: ignore[arg-type]
    assert raised.value.field in field
