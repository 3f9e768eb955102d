"""What makes up a suite's score, which further averages there are, and how it is said."""

from __future__ import annotations

import pytest

from services.results import duckdb_store, job_result, weighting
from services.results.database import Connection
from services.results.suite_score import score_rule
from services.results.weighting import ITEMS, TASKS
from tests.unit.results.builders import ANSWERED, UNPARSED, answer, batch, job, known, plan, run
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.suite_pb2 import MetricSpec, Weighting


def planned(
    task: str, items: int = 4, *metrics: str, category: str = "", beside: bool = False, title: str = "", group: str = ""
) -> job_pb2.TaskPlan:
    made = plan(task, items, *metrics, group=group)
    made.category, made.beside, made.title = category, beside, title or task
    return made


def measured(connection: Connection, right: dict[str, int], *plans: job_pb2.TaskPlan) -> metric_pb2.JobResult:
    """Each task's first items are right, the others wrong."""
    known(connection, *plans)
    for task in plans:
        results = [answer(i, "yes" if i < right[task.task] else "no") for i in range(task.items)]
        duckdb_store.store_items(connection, [batch("j", task.task, results)])
    return job_result.compute(connection, job("j", *plans), seal=True).result


def figures(result: metric_pb2.JobResult) -> dict[tuple[str, str, str], tuple[float, int]]:
    return {(a.category, a.metric.metric, a.rule): (round(a.metric.mean, 9), a.tasks) for a in result.averages}


def test_categories_are_averaged_over_tasks_and_over_items(connection: Connection) -> None:
    plans = [
        planned("algebra", 4, category="STEM"),
        planned("physics", 16, category="STEM"),
        planned("law", 10, category="humanities"),
    ]
    result = measured(connection, {"algebra": 1, "physics": 12, "law": 5}, *plans)
    assert figures(result) == {
        ("STEM", "score", "macro"): (0.5, 2),
        ("STEM", "score", "micro"): (0.65, 2),
        ("humanities", "score", "macro"): (0.5, 1),
        ("humanities", "score", "micro"): (0.5, 1),
        ("", "score", "macro"): (0.5, 3),
        ("", "score", "micro"): (0.6, 3),
    }
    assert [(a.metric.method, a.metric.n) for a in result.averages if not a.category] == [("stratified", 30)] * 2
    assert result.suite_score.mean == pytest.approx((0.25 + 0.75 + 0.5) / 3)
    assert [task.category for task in result.tasks] == ["STEM", "STEM", "humanities"]


@pytest.mark.parametrize(("right", "items"), [(5, 5), (19, 20), (1, 5)])
def test_the_interval_of_an_average_over_many_tasks_lies_around_it(
    connection: Connection, right: int, items: int
) -> None:
    plans = [planned(f"t{number}", items) for number in range(40)]
    score = measured(connection, {task.task: right for task in plans}, *plans).suite_score
    middle = (score.ci95_low + score.ci95_high) / 2
    assert score.mean == pytest.approx(right / items)
    assert score.ci95_low < score.mean or right == 0
    if right < items:
        assert middle == pytest.approx(score.mean, abs=0.15 * (score.ci95_high - score.ci95_low))


@pytest.mark.parametrize("metrics", [("accuracy",), ("f1",)])
def test_the_score_of_a_single_task_is_the_tasks_own_with_its_interval(
    connection: Connection, metrics: tuple[str, ...]
) -> None:
    plans = [planned("rows", 4, *metrics), planned("ax", 4, beside=True)]
    known(connection, *plans)
    for task in plans:
        stored = [answer(i) for i in range(4)]
        duckdb_store.store_items(connection, [batch("j", task.task, stored)])
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


def test_several_metrics_of_a_single_task_are_averaged(connection: Connection) -> None:
    result = measured(connection, {"a": 3}, planned("a", 4, "f1", "accuracy"))
    assert result.suite_score.method == "stratified"
    assert result.suite_score.mean == pytest.approx(sum(m.mean for m in result.tasks[0].metrics) / 2)


def test_it_is_measured_how_much_hangs_on_the_last_answer(connection: Connection) -> None:
    known(connection, planned("a", 4), planned("b", 4))
    results = [answer(i) for i in range(4)]
    results[0].statistics["correct_first"] = 0
    results[1].statistics["correct_first"] = 0
    results[2] = answer(2, "no")
    results[2].statistics["correct_first"] = 1
    duckdb_store.store_items(connection, [batch("j", "a", results), batch("j", "b", [answer(i) for i in range(4)])])
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


@pytest.mark.parametrize(("suite", "rule"), [("mmlu", ITEMS), ("mmlu_pro", ITEMS), ("glue", TASKS)])
def test_a_plan_from_before_rules_were_said_gets_the_rule_of_its_suite(suite: str, rule: Weighting) -> None:
    old = job("j", planned("a"), planned("b"), suite=suite)
    assert weighting.of_plans(weighting.complete(old).plan) == rule
    assert not old.plan[0].weighting


def test_kinds_of_one_problem_of_bbh_count_once_in_older_plans_too() -> None:
    tasks = ("logical_deduction_three_objects", "logical_deduction_five_objects", "navigate")
    made = weighting.complete(job("j", *map(planned, tasks), suite="bbh"))
    assert [plan.score_group for plan in made.plan] == ["logical_deduction", "logical_deduction", ""]


def test_the_accuracy_so_far_is_clustered_where_a_task_is(connection: Connection) -> None:
    plans = [planned("a", 40), planned("b", 40)]
    known(connection, *plans)
    for task, group in (("a", ""), ("b", "p")):
        results = [answer(i, "yes" if i % 8 < 4 else "no", group=group and f"{group}{i // 4}") for i in range(40)]
        duckdb_store.store_items(connection, [batch("j", task, results)])
    result = job_result.compute(connection, job("j", *plans), seal=True).result
    so_far = result.accuracy_so_far
    # Passages of four equal answers: 10 observations, not 40.
    expected = (0.25 * 0.25 / 40 + 0.25 * 0.25 / 10) ** 0.5
    assert (so_far.method, so_far.mean) == ("clustered", 0.5)
    assert so_far.stderr == pytest.approx(expected)


def test_metrics_and_tasks_beside_are_no_part_of_the_score(connection: Connection) -> None:
    first = planned("hellaswag", 10)
    first.metrics.append(MetricSpec(metric="norm", rule=MetricSpec.RULE_MEAN, statistic="correct", beside=True))
    diagnostic = planned("axg", 10, "accuracy", beside=True)
    diagnostic.metrics.append(MetricSpec(metric="parity", rule=MetricSpec.RULE_MEAN, statistic="correct", beside=False))
    other = planned("copa", 10)
    result = measured(connection, {"hellaswag": 8, "copa": 6, "axg": 1}, first, other, diagnostic)
    assert result.suite_score.mean == pytest.approx(0.7)
    assert [m.beside for m in result.tasks[0].metrics] == [False, True]
    assert [task.beside for task in result.tasks] == [False, False, True]
    averages = job_result.compute(connection, job("j", first, other, diagnostic), seal=True).averages
    own = [(m, tasks) for m, tasks in averages if " over " not in m.metric]
    assert {m.metric: (round(m.mean, 9), tasks) for m, tasks in own} == {
        "score": (0.7, 2),
        "accuracy": (0.7, 2),
        "norm": (0.8, 1),
        # Only a task beside has it: it stands for itself.
        "parity": (0.1, 1),
    }


def test_averages_wait_until_every_task_of_theirs_has_items(connection: Connection) -> None:
    plans = [planned("a", 2, category="x"), planned("b", 2, category="x"), planned("c", 2, category="y")]
    known(connection, *plans)
    duckdb_store.store_items(connection, [batch("j", "a", [answer(0)]), batch("j", "c", [answer(0), answer(1)])])
    result = job_result.compute(connection, job("j", *plans), seal=False).result
    assert ("y", "score", "macro") in figures(result)
    assert ("x", "score", "macro") not in figures(result)
    assert not result.HasField("suite_score")


def test_a_failed_job_has_no_averages(connection: Connection) -> None:
    plans = [planned("a", 2, category="x"), planned("b", 3, category="x")]
    known(connection, *plans)
    duckdb_store.store_items(connection, [batch("j", t, [answer(0), answer(1)]) for t in "ab"])
    failed = job("j", *plans, state=job_pb2.Job.STATE_FAILED)
    assert not job_result.compute(connection, failed, seal=False).result.averages


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
            "Mean over 2 tasks of the mean of each task's metrics; MNLI matched and mismatched count once.",
        ),
        (
            [
                planned("a"),
                planned("b"),
                planned("x", title="AX-b", beside=True),
                planned("y", title="AX-g", beside=True),
            ],
            "Mean accuracy over 2 tasks; AX-b and AX-g are shown beside it.",
        ),
        ([planned("a"), planned("x", title="AX-b", beside=True)], "The accuracy; AX-b is shown beside it."),
    ],
)
def test_the_rule_of_a_score_is_one_sentence(plans: list[job_pb2.TaskPlan], rule: str) -> None:
    assert score_rule(plans) == rule


def test_a_sealed_job_keeps_its_rule_and_averages(connection: Connection) -> None:
    plans = [planned("a", 10, category="x"), planned("b", 10, category="x")]
    sealed = run(connection, job("j", *plans), right=7, wrong=3).result
    assert sealed.score_rule == "Mean accuracy over 2 tasks."
    assert [average.metric.mean for average in sealed.averages] == pytest.approx([0.7] * 4)


def test_several_answers_per_item_are_planned_counted_and_missed_as_answers(connection: Connection) -> None:
    several = planned("t", 5)
    several.repeats = 4
    results = [
        answer(p // 4, repeat=p % 4, position=p, outcome=UNPARSED if p == 3 else ANSWERED) for p in range(18) if p != 7
    ]
    duckdb_store.store_items(connection, [batch("j", "t", results)])
    computed = job_result.compute(connection, job("j", several), seal=True)
    (task,) = computed.result.tasks
    assert (computed.missing, computed.errors) == (3, 0)
    assert (task.items, task.items_planned, task.correct) == (17, 20, 16)
    assert (task.outcomes.answered, task.outcomes.unparsed) == (16, 1)
    assert computed.result.not_ranked_reason == "3 answers are missing"
    (accuracy,) = task.metrics
    assert (accuracy.n, round(accuracy.mean, 9)) == (5, 0.95)
    assert (round(accuracy.bound_low, 9), accuracy.bound_high) == (0.8, 1.0)
