"""Datasets where only some rows have a reference, or none: what is counted, what ranks, what compares."""

from __future__ import annotations

import json
import math
import random

import pytest
from scipy import stats

from services.results.boards.leaderboard import leaderboard
from services.results.boards.overview import list_trends, overview
from services.results.comparison.compare import compare
from services.results.export.exports import export
from services.results.items import reads
from services.results.runs import job_reads
from services.results.runs.job_reads import list_jobs
from services.results.storage.database import Connection
from tests.recompute import Answers
from tests.unit.results.builders import ANSWERED, CUT, ERROR, START, UNPARSED
from tests.unit.results.dataset_runs import DATASET, EXACT, TOKEN_F1, completed, row, stored
from tests.unit.results.exported import exported_item
from touchstone.v1 import comparison_pb2, metric_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.suite_pb2 import MetricSpec

NOW = START.replace(tzinfo=None)


def measured(connection: Connection, job_id: str) -> metric_pb2.JobResult:
    return job_reads.get_job_result(connection, job_id)


def board(connection: Connection) -> pb.GetLeaderboardResponse:
    return leaderboard(connection, pb.GetLeaderboardRequest(suite=DATASET))


def test_metrics_are_over_the_rows_with_a_reference_and_completeness_over_all(connection: Connection) -> None:
    rows = [row(0, 1), row(1, 0), row(2, 1), row(3, 1), *(row(i) for i in range(4, 30))]
    completed(connection, "j", rows, EXACT)
    result = measured(connection, "j")
    (task,) = result.tasks
    (metric,) = task.metrics
    interval = stats.binomtest(3, 4).proportion_ci(0.95, method="wilson")
    assert (metric.metric, metric.mean, metric.n) == ("exact_match", 0.75, 4)
    assert metric.ci95_low == pytest.approx(interval.low)
    assert metric.ci95_high == pytest.approx(interval.high)
    assert (metric.bound_low, metric.bound_high) == (0.75, 0.75)
    assert (task.items, task.items_planned, task.outcomes.answered, task.correct) == (30, 30, 30, 3)
    assert task.majority_share == 1.0
    assert (result.suite_score.mean, result.suite_score.n, result.not_ranked_reason) == (0.75, 4, "")
    (entry,) = board(connection).entries
    assert (entry.rank, entry.score.n) == (1, 4)


def test_unread_answers_to_rows_without_a_reference_call_for_no_caution(connection: Connection) -> None:
    completed(connection, "a", [row(i, 1) for i in range(4)] + [row(i, outcome=UNPARSED) for i in range(4, 9)], EXACT)
    assert measured(connection, "a").caution == ""
    few = [row(0, 0, outcome=UNPARSED), row(1, 1), *(row(i) for i in range(2, 100))]
    completed(connection, "b", few, EXACT, minute=1)
    assert measured(connection, "b").caution == "50.0% of the answers could not be read"


def test_what_is_lost_widens_the_bounds_by_itself_alone(connection: Connection) -> None:
    rows = [row(0, 1), row(1, 0), row(2, 1, outcome=ERROR), row(3, outcome=ERROR), *(row(i) for i in range(4, 50))]
    completed(connection, "j", rows, EXACT, planned=51)
    (metric,) = measured(connection, "j").tasks[0].metrics
    # Of the rows without an answer one has a reference, one has none, and of the one that never came nobody knows.
    assert (metric.mean, metric.n) == (0.5, 2)
    assert (metric.bound_low, metric.bound_high) == (0.25, 0.75)
    assert measured(connection, "j").not_ranked_reason == "3 items have no answer"


@pytest.mark.parametrize("with_errors", [False, True])
def test_every_metric_can_be_computed_again_from_the_exported_items(connection: Connection, with_errors: bool) -> None:
    chance = random.Random(5)
    match = MetricSpec(metric="json_match", rule=MetricSpec.RULE_MEAN, statistic="json_match")
    exact = MetricSpec(metric="json_exact", rule=MetricSpec.RULE_MEAN, statistic="correct", beside=True)
    rows = []
    for item in range(60):
        score = chance.choice([None, 0.0, 0.25, 1 / 3, 1.0])
        made = row(item, score, match, outcome=UNPARSED if score == 0 and item % 2 else ANSWERED)
        if score is not None:
            made.statistics["correct"] = float(score == 1)
        rows.append(made)
    if with_errors:
        rows += [row(60, 1.0, outcome=ERROR), row(61, outcome=ERROR)]
    completed(connection, "j", rows, match, exact)
    request = pb.ExportRequest(kind=pb.ExportRequest.KIND_ITEMS, format=pb.ExportRequest.FORMAT_JSONL)
    request.items.job_id, request.items.filter = "j", pb.ListItemsRequest.FILTER_FINAL
    lines = b"".join(piece.data for piece in export(connection, request)).decode().split("\n")
    found = [json.loads(line) for line in lines if line]
    answers = Answers([exported_item(one) for one in found])
    result = measured(connection, "j").tasks[0]
    assert answers.unscored == sum(one["score"] is None for one in found) > 5
    for spec, metric in zip((match, exact), result.metrics, strict=True):
        assert metric.mean == pytest.approx(answers.of(spec), abs=1e-12)
        assert metric.n == len(found) - answers.unscored
    low, high = answers.student(match)
    assert result.metrics[0].ci95_low == pytest.approx(low)
    assert result.metrics[0].ci95_high == pytest.approx(high)
    scores = [one["score"] for one in found if one["score"] is not None]
    assert result.metrics[0].mean == pytest.approx(sum(scores) / len(scores))
    assert [one["score"] for one in found] == [(one["statistics"] or {}).get("json_match") for one in found]


def test_graded_scores_have_students_interval(connection: Connection) -> None:
    scores = [0.1, 0.5, 0.9, 0.25, 1.0]
    completed(connection, "j", [*(row(i, s, TOKEN_F1) for i, s in enumerate(scores)), row(9)], TOKEN_F1)
    (metric,) = measured(connection, "j").tasks[0].metrics
    spread = stats.tstd(scores) / math.sqrt(5)
    assert metric.mean == pytest.approx(0.55)
    assert (metric.n, metric.method) == (5, "t")
    assert metric.stderr == pytest.approx(spread)
    assert metric.ci95_high == pytest.approx(min(1.0, 0.55 + stats.t.ppf(0.975, 4) * spread))


@pytest.mark.parametrize("metrics", [(), (EXACT,)])
def test_without_any_reference_a_run_seals_and_is_read_and_never_ranks(
    connection: Connection, metrics: tuple[object, ...]
) -> None:
    completed(connection, "j", [row(i, metadata={"name": f"n{i}"}) for i in range(6)], *metrics)  # type: ignore[arg-type]
    result = measured(connection, "j")
    assert (result.sealed, result.not_ranked_reason) == (True, "no row has a reference")
    assert not result.HasField("suite_score")
    assert all(m.undefined_reason == "no row has a reference" for m in result.tasks[0].metrics)
    assert not any(metric.HasField("mean") for metric in result.tasks[0].metrics)
    assert not result.tasks[0].HasField("majority_share")
    found = board(connection)
    (entry,) = found.entries
    assert (entry.rank, entry.not_ranked_reason) == (0, "no row has a reference")
    assert not entry.score.HasField("mean")
    assert (found.items, found.total_models) == (6, 0)
    page = reads.list_items(connection, pb.ListItemsRequest(job_id="j"))
    assert (page.count_all, page.count_failures) == (6, 0)
    assert not any(stored.HasField("score") for stored in page.items)
    assert list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True)).total_size == 1
    assert not list_trends(connection, pb.ListTrendsRequest(suite=DATASET), NOW).trends
    assert overview(connection, pb.GetOverviewRequest(suite=DATASET), NOW).completed_jobs == 1


def test_a_running_job_without_references_says_only_that_it_runs(connection: Connection) -> None:
    stored(connection, "j", [row(0), row(1)], planned=5)
    result = measured(connection, "j")
    assert (result.not_ranked_reason, result.tasks[0].items, result.score_rule) == ("the job is not finished", 2, "")


def test_lists_say_that_a_run_without_references_has_no_score(connection: Connection) -> None:
    completed(connection, "j", [row(0), row(1)])
    (scores,) = list_jobs(connection, pb.ResultsServiceListJobsRequest(with_scores=True)).scores
    (average,) = scores.averages
    assert (average.metric, average.HasField("mean")) == ("score", False)
    assert average.undefined_reason == scores.not_ranked_reason == "no row has a reference"


@pytest.mark.parametrize("metric", [EXACT, TOKEN_F1])
def test_a_running_jobs_score_is_the_mean_of_its_metric_so_far(connection: Connection, metric: MetricSpec) -> None:
    stored(connection, "j", [row(0, 1, metric), row(1, 0, metric), row(2, 1, metric), row(3)], metric, planned=9)
    result = measured(connection, "j")
    assert not result.sealed
    assert result.suite_score.mean == pytest.approx(2 / 3)
    assert result.suite_score.mean == result.tasks[0].metrics[0].mean
    assert result.tasks[0].metrics[0].metric == metric.metric


def test_comparing_runs_without_references_says_so(connection: Connection) -> None:
    for minute, name in enumerate("ab"):
        completed(connection, name, [row(i) for i in range(6)], minute=minute, model=f"model {name}")
    answer = compare(connection, comparison_pb2.CompareRequest(subjects=["a", "b"]))
    (difference,) = answer.differences
    assert difference.verdict == comparison_pb2.VERDICT_NOT_COMPARABLE
    assert difference.words.endswith("cannot be compared: no row has a reference.")
    assert answer.items == 6
    assert any("side by side" in said for said in answer.recommendations)


def test_runs_compare_on_the_rows_with_a_reference(connection: Connection) -> None:
    rest = [row(i) for i in range(20, 40)]
    completed(connection, "a", [*(row(i, float(i < 15)) for i in range(20)), *rest], EXACT, model="a")
    completed(connection, "b", [*(row(i, float(i < 5)) for i in range(20)), *rest], EXACT, model="b", minute=1)
    answer = compare(connection, comparison_pb2.CompareRequest(subjects=["a", "b"]))
    suite, task = answer.differences
    assert (suite.n, suite.only_a, suite.only_b, suite.test) == (20, 10, 0, "exact McNemar")
    assert suite.p_value == pytest.approx(2 * 0.5**10)
    assert (task.metric, task.difference) == ("exact_match", 0.5)
    assert "20 of the 40 rows have a reference; the figures use only those." in answer.notes


def test_graded_scores_are_compared_by_exchanging_models_within_rows(connection: Connection) -> None:
    a, b = [0.9, 0.8, 0.7, 0.9, 0.6, 0.8], [0.5, 0.7, 0.2, 0.8, 0.1, 0.3]
    for minute, (name, scores) in enumerate((("a", a), ("b", b))):
        rows = [*(row(i, s, TOKEN_F1) for i, s in enumerate(scores)), row(8)]
        completed(connection, name, rows, TOKEN_F1, model=name, minute=minute)
    answer = compare(connection, comparison_pb2.CompareRequest(subjects=["a", "b"], metrics=["token_f1"]))
    found = answer.differences[0]
    assert (found.test, found.n) == ("permutation", 6)
    assert found.difference == pytest.approx(sum(a) / 6 - sum(b) / 6)
    assert found.p_value == pytest.approx(2 / 2**6)


def test_runs_that_are_scored_differently_never_meet(connection: Connection) -> None:
    completed(connection, "a", [row(i, 1.0) for i in range(8)], EXACT, model="a")
    completed(connection, "b", [row(i, 1.0) for i in range(8)], EXACT, model="b", minute=1, scorer="contains")
    found = board(connection)
    assert {one.scoring for one in found.item_sets} == {"exact match", "presence of the reference"}
    assert len(found.entries) == 1
    answer = compare(connection, comparison_pb2.CompareRequest(subjects=["a", "b"]))
    assert "scored differently (exact match, and presence of the reference)" in answer.differences[0].words


def test_a_cut_answer_to_a_row_without_a_reference_is_counted_and_not_scored(connection: Connection) -> None:
    completed(connection, "j", [*(row(i, 1.0) for i in range(3)), row(3, outcome=CUT)], EXACT)
    result = measured(connection, "j")
    assert (result.outcomes.output_truncated, result.not_ranked_reason) == (1, "")
