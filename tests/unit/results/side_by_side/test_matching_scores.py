"""Scores of jobs side by side."""

from __future__ import annotations

import random

import pytest

from services.results.comparison.compare import compare
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.statistics.intervals import score_interval
from services.results.storage.database import Connection
from tests.unit.results.builders import event
from tests.unit.results.dataset_runs import EXACT, TOKEN_F1, completed, row
from tests.unit.results.finished import finished, right_or_wrong, said, task
from tests.unit.results.side_by_side.rows import ask
from touchstone.v1 import item_result_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.comparison_pb2 import CompareRequest
from touchstone.v1.scoring_pb2 import Scoring
from touchstone.v1.suite_pb2 import MetricSpec


def of_the_run(connection: Connection, job_id: str) -> tuple[float, float, float]:
    """The first metric of the job's only task, as its own result has it, with its interval."""
    metric = job_reads.get_job_result(connection, job_id).tasks[0].metrics[0]
    return metric.mean, metric.ci95_low, metric.ci95_high


def beside(run: pb.SideBySideRun) -> tuple[float, float, float]:
    return run.mean_score, run.score_ci95_low, run.score_ci95_high


def test_on_all_rows_of_a_run_its_score_has_the_runs_own_interval(connection: Connection) -> None:
    graded = [row(number, number % 4 / 3, TOKEN_F1) for number in range(20)]
    completed(connection, "a", graded, TOKEN_F1)
    completed(connection, "b", [row(number, float(number % 3 > 0)) for number in range(20)], EXACT)
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        assert beside(run) == pytest.approx(of_the_run(connection, job_id), abs=1e-12)
    assert beside(ask(connection).runs[1])[1:] == score_interval(13 / 20, 20)
    some = ask(connection, query="question 1").runs[1]
    assert some.rows == 11
    assert beside(some)[1:] == pytest.approx(score_interval(8 / 11, 11))


def test_metrics_of_further_scorers_are_those_of_the_common_rows(connection: Connection) -> None:
    further = MetricSpec(metric="contains.contains", rule=MetricSpec.RULE_MEAN, statistic="contains.correct")
    further.beside = True
    for job_id in "ab":
        rows = [row(number, float(number % 3 > 0)) for number in range(20)]
        for number, one in enumerate(rows):
            one.statistics["contains.correct"] = float(number % 2)
        made = completed(connection, job_id, rows, EXACT, further)
        made.spec.dataset.further.append(Scoring(scorer="contains"))
        writes.store_events(connection, [event(f"9-{job_id}", made, "completed")])
    run, _ = ask(connection).runs
    (found,) = run.further_metrics
    (kept,) = [one for one in job_reads.get_job_result(connection, "a").tasks[0].metrics if one.beside]
    assert found == kept
    assert (found.metric, found.mean, run.mean_score) == ("contains.contains", 0.5, 13 / 20)
    (some,) = ask(connection, query="question 1").runs[0].further_metrics
    assert (some.n, some.mean) == (11, 6 / 11)


@pytest.mark.parametrize("repeats", [1, 3])
def test_items_of_one_passage_and_answers_to_one_item_hang_together(connection: Connection, repeats: int) -> None:
    for job_id in "ab":
        chance = random.Random(f"{job_id} {repeats}")
        answers = [
            said(item, chance.choice(["yes", "no"]), repeat=repeat, group="" if repeats > 1 else f"passage {item // 3}")
            for item in range(30)
            for repeat in range(repeats)
        ]
        finished(connection, job_id, task("t", answers, repeats=repeats))
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        assert beside(run) == pytest.approx(of_the_run(connection, job_id), abs=1e-12)


def test_the_score_over_several_tasks_is_the_jobs_own(connection: Connection) -> None:
    """Over tasks, whose items differ in number, as boards have it; and with the metrics that no single answer has."""
    for job_id, step in (("a", 1), ("b", 7)):
        numbers = [
            said(item, "1", statistics={"value": float(item * step % 5 + item % 2), "target": float(item % 5)})
            for item in range(20)
        ]
        finished(
            connection,
            job_id,
            task("t", right_or_wrong("1101")),
            task("u", right_or_wrong("0010111001"), "matthews_correlation"),
            task("v", numbers, "pearson", "spearman"),
            task("w", right_or_wrong("11"), beside=True),
        )
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        whole = job_reads.get_job_result(connection, job_id).suite_score
        assert whole.n == 34
        assert beside(run) == (whole.mean, whole.ci95_low, whole.ci95_high)


@pytest.mark.parametrize("name", ["t", "u", "w"])
def test_the_score_of_one_task_is_that_of_its_metric(connection: Connection, name: str) -> None:
    patterns = ("1101", "0010111001", "10")
    for job_id in "ab":
        finished(
            connection,
            job_id,
            task("t", right_or_wrong(patterns[0])),
            task("u", right_or_wrong(patterns[1]), "f1"),
            task("w", right_or_wrong(patterns[2]), beside=True),
        )
    (sealed,) = (one for one in job_reads.get_job_result(connection, "a").tasks if one.task == name)
    metric = sealed.metrics[0]
    expected = pytest.approx((metric.mean, metric.ci95_low, metric.ci95_high), abs=1e-12)
    assert beside(ask(connection, task=name).runs[0]) == expected


def test_on_common_rows_the_score_is_that_of_a_comparison(connection: Connection) -> None:
    for job_id, first, second in (("a", "110110", "0101"), ("b", "101", "010100")):
        finished(connection, job_id, task("t", right_or_wrong(first)), task("u", right_or_wrong(second), "f1"))
    with connection.cursor() as cursor:
        compared = compare(cursor, CompareRequest(subjects=["a", "b"]))
    scores = {run.job_id: run.scores[0] for run in compared.runs}
    for job_id, run in zip("ab", ask(connection).runs, strict=True):
        score = scores[job_id]
        assert beside(run) == (score.mean, score.ci95_low, score.ci95_high)


def test_one_graded_row_tells_nothing_of_the_spread(connection: Connection) -> None:
    for job_id in "ab":
        completed(connection, job_id, [row(0, 0.5, TOKEN_F1)], TOKEN_F1)
    run = ask(connection).runs[0]
    assert (run.mean_score, run.HasField("score_ci95_low"), run.HasField("score_ci95_high")) == (0.5, False, False)


def took(
    result: item_result_pb2.ItemResult, latency_ms: float, cost_usd: float | None = None
) -> item_result_pb2.ItemResult:
    result.latency_ms = latency_ms
    if cost_usd is not None:
        result.cost_usd = cost_usd
    return result


def test_figures_add_up_what_the_common_rows_took(connection: Connection) -> None:
    completed(connection, "a", [took(row(number, 1.0), 100, 0.5) for number in range(2)], EXACT)
    others = [took(row(0, 1.0), 200, 0.25), took(row(1, 1.0), 400), took(row(2, 1.0), 9000)]
    others[1].input_untold = True
    completed(connection, "b", others, EXACT)
    here, there = ask(connection).runs
    assert (here.mean_latency_ms, here.input_tokens, here.output_tokens, here.cost_usd) == (100, 40, 6, 1.0)
    assert (there.mean_latency_ms, there.job.job_id, there.HasField("cost_usd")) == (300, "b", False)
    assert (here.input_untold, there.input_untold, there.input_tokens, there.output_untold) == (0, 1, 20, 0)
