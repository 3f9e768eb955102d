"""What makes up a suite's score, which further averages there are, and how it is said."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.scores import job_result
from services.results.scores.suite_score import score_rule
from services.results.storage.database import Connection
from services.words.suites import ITEMS, TASKS
from tests.unit.results.builders import answer, batch, job, known
from tests.unit.results.scores.planned import figures, measured, planned
from touchstone.v1 import job_pb2
from touchstone.v1.suite_pb2 import Weighting


@pytest.mark.parametrize("metrics", [("accuracy",), ("f1",)])
def test_the_score_of_a_single_task_is_the_tasks_own_with_its_interval(
    connection: Connection, metrics: tuple[str, ...]
) -> None:
    plans = [planned("rows", 4, *metrics), planned("ax", 4, beside=True)]
    known(connection, *plans)
    for task in plans:
        stored = [answer(i) for i in range(4)]
        writes.store_items(connection, [batch("j", task.task, stored)])
    computed = job_result.compute(connection, job("j", *plans), seal=True)
    (own,) = computed.result.tasks[0].metrics
    for average, tasks in computed.averages[:2]:
        for field in ("mean", "n", "stderr", "ci95_low", "ci95_high", "bound_low", "bound_high", "method"):
            assert getattr(average, field) == getattr(own, field), (average.metric, field)
        assert tasks == 1
    assert [average.metric for average, _ in computed.averages] == list(dict.fromkeys(("score", *metrics, "accuracy")))
    if metrics == ("accuracy",):
        assert own.ci95_low == pytest.approx(0.5101, abs=1e-4)
        assert computed.result.suite_score.ci95_low == own.ci95_low


def test_it_is_measured_how_much_hangs_on_the_last_answer(connection: Connection) -> None:
    known(connection, planned("a", 4), planned("b", 4))
    results = [answer(i) for i in range(4)]
    results[0].statistics["correct_first"] = 0
    results[1].statistics["correct_first"] = 0
    results[2] = answer(2, "no")
    results[2].statistics["correct_first"] = 1
    writes.store_items(connection, [batch("j", "a", results), batch("j", "b", [answer(i) for i in range(4)])])
    tasks = job_result.compute(connection, job("j", planned("a", 4), planned("b", 4)), seal=True).result.tasks
    assert [task.first_answer_gap for task in tasks] == [-0.25, 0]


@pytest.mark.parametrize(("rule", "score"), [(ITEMS, (1 + 3 + 8) / 16), (TASKS, (1 / 4 + 3 / 4 + 8 / 8) / 3)])
def test_a_score_follows_the_rule_of_its_suite_and_the_other_one_stands_beside(
    connection: Connection, rule: Weighting, score: float
) -> None:
    plans = [planned("a", 4), planned("b", 4), planned("c", 8)]
    for each in plans:
        each.weighting = rule
    result = measured(connection, {"a": 1, "b": 3, "c": 8}, *plans)
    assert result.suite_score.mean == pytest.approx(score)
    assert result.weighting == rule
    assert figures(result) == {("", "score", "micro"): (0.75, 3), ("", "score", "macro"): (0.666666667, 3)}
    assert next(a.metric for a in result.averages if a.weighting == rule) == result.suite_score
    words = {ITEMS: "Mean accuracy over the items of 3 tasks.", TASKS: "Mean accuracy over 3 tasks."}
    assert result.score_rule == words[rule]


def test_over_items_a_task_of_several_metrics_counts_by_its_items_and_groups_do_not_matter(
    connection: Connection,
) -> None:
    plans = [planned("m", 2, group="mnli"), planned("mm", 6, group="mnli"), planned("mrpc", 8, "f1", "accuracy")]
    result = measured(connection, {"m": 1, "mm": 6, "mrpc": 2}, *plans)
    mrpc = (2 * 2 / (2 + 8) + 2 / 8) / 2
    items, tasks = (1 + 6 + 8 * mrpc) / 16, ((1 / 2 + 1) / 2 + mrpc) / 2
    assert figures(result) == {
        ("", "score", "micro"): (round(items, 9), 3),
        ("", "score", "macro"): (round(tasks, 9), 2),
    }


def test_the_accuracy_so_far_is_clustered_where_a_task_is(connection: Connection) -> None:
    plans = [planned("a", 40), planned("b", 40)]
    known(connection, *plans)
    for task, group in (("a", ""), ("b", "p")):
        results = [answer(i, "yes" if i % 8 < 4 else "no", group=group and f"{group}{i // 4}") for i in range(40)]
        writes.store_items(connection, [batch("j", task, results)])
    result = job_result.compute(connection, job("j", *plans), seal=True).result
    so_far = result.accuracy_so_far
    # Passages of four equal answers: 10 observations, not 40.
    expected = (0.25 * 0.25 / 40 + 0.25 * 0.25 / 10) ** 0.5
    assert (so_far.method, so_far.mean) == ("clustered", 0.5)
    assert so_far.stderr == pytest.approx(expected)


@pytest.mark.parametrize(
    ("plans", "rule"),
    [
        ([], ""),
        ([planned("sst2")], "The accuracy."),
        ([planned("mrpc", 4, "f1", "accuracy")], "Mean of the task's metrics."),
        ([planned("a"), planned("b")], "Mean accuracy over 2 tasks."),
        ([planned("a"), planned("b", 4, "f1")], "Mean over 2 tasks of each task's metric."),
        (
            [
                planned("cola", 4, "matthews_correlation", "accuracy"),
                planned("m", title="MNLI matched", group="mnli"),
                planned("mm", title="MNLI mismatched", group="mnli"),
            ],
            "Mean over 2 tasks of the mean of each task's metrics; MNLI matched and mismatched count as one task.",
        ),
        (
            [
                planned("a"),
                planned("b"),
                planned("x", title="AX-b", beside=True),
                planned("y", title="AX-g", beside=True),
            ],
            "Mean accuracy over 2 tasks; AX-b and AX-g are reported, not scored.",
        ),
        ([planned("a"), planned("x", title="AX-b", beside=True)], "The accuracy; AX-b is reported, not scored."),
    ],
)
def test_the_rule_of_a_score_is_one_sentence(plans: list[job_pb2.TaskPlan], rule: str) -> None:
    assert score_rule(plans) == rule
