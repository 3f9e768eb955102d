"""Who stands for a configuration, who ranks, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.results.database import Connection
from services.results.leaderboard import UnknownSuiteError, leaderboard
from services.results.ranking import redrawn_reason
from services.results.unread import add_offer, caution, unread
from tests.unit.results.builders import CUT, ERROR, UNPARSED, endpoint_suite, job, plan, run
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, results_service_pb2, scoring_pb2, suite_pb2


def board(
    connection: Connection,
    suite: str = "glue",
    metric: str = "score",
    announced: list[suite_pb2.Suite] | None = None,
    **filters: object,
) -> results_service_pb2.GetLeaderboardResponse:
    request = results_service_pb2.GetLeaderboardRequest(suite=suite, metric=metric, **filters)  # type: ignore[arg-type]
    return leaderboard(connection, request, announced)


def ranks(response: results_service_pb2.GetLeaderboardResponse) -> list[tuple[int, str]]:
    return [(entry.rank, entry.job_id) for entry in response.entries]


def test_a_configuration_is_represented_by_its_latest_complete_run_not_by_its_best(connection: Connection) -> None:
    run(connection, job("best", plan("t", 10)), right=10, minute=1)
    run(connection, job("latest", plan("t", 10)), right=6, wrong=4, minute=2)
    run(connection, job("incomplete", plan("t", 11)), right=10, minute=3)
    response = board(connection)
    assert ranks(response) == [(1, "latest"), (0, "incomplete")]
    assert response.entries[0].score.mean == pytest.approx(0.6)
    assert response.entries[0].run_count == 2


def test_ranks_follow_the_score_and_ties_go_to_the_newer_run(connection: Connection) -> None:
    run(connection, job("a", plan("t", 10), model="a"), right=7, wrong=3, minute=1)
    run(connection, job("b", plan("t", 10), model="b"), right=9, wrong=1, minute=2)
    run(connection, job("c", plan("t", 10), model="c"), right=7, wrong=3, minute=3)
    response = board(connection)
    assert ranks(response) == [(1, "b"), (2, "c"), (3, "a")]
    assert response.total_models == 3
    assert response.last_updated == response.entries[1].completed_at


def test_total_models_counts_ranked_configurations_before_the_limit(connection: Connection) -> None:
    for n in range(4):
        run(connection, job(f"j{n}", plan("t", 10), model=f"m{n}"), right=n, wrong=10 - n, minute=n)
    run(connection, job("floor", plan("t", 10), model="majority", baseline=True), right=5, wrong=5, minute=9)
    response = board(connection, limit=2)
    assert ranks(response) == [(1, "j3"), (2, "j2"), (0, "floor")]
    assert response.total_models == 4


def test_baselines_come_last_without_a_rank_and_rank_only_when_alone(connection: Connection) -> None:
    run(connection, job("bow", plan("t", 10), model="bow", baseline=True), right=8, wrong=2, minute=1)
    run(connection, job("majority", plan("t", 10), model="majority", baseline=True), right=6, wrong=4, minute=2)
    alone = board(connection)
    assert ranks(alone) == [(1, "bow"), (2, "majority")]
    assert alone.total_models == 2
    run(connection, job("model", plan("t", 10), model="model"), right=5, wrong=5, minute=3)
    assert ranks(board(connection)) == [(1, "model"), (0, "bow"), (0, "majority")]
    assert board(connection).total_models == 1


@pytest.mark.parametrize(
    ("cut", "unparsed", "caution"),
    [
        (2, 0, "2.0% of the answers were cut at a token limit"),
        (0, 6, "6.0% of the answers could not be read"),
        (1, 5, ""),
    ],
)
def test_cut_and_unreadable_answers_count_as_wrong_and_too_many_are_told_of(
    connection: Connection, cut: int, unparsed: int, caution: str
) -> None:
    right = 50
    wrong = 100 - right - cut - unparsed
    run(connection, job("j", plan("t", 100)), right=right, wrong=wrong, cut=cut, unparsed=unparsed, minute=1)
    run(connection, job("other", plan("t", 100), model="other"), right=10, wrong=90, minute=2)
    response = board(connection)
    assert ranks(response) == [(1, "j"), (2, "other")]
    entry = response.entries[0]
    assert (entry.caution, entry.not_ranked_reason) == (caution, "")
    assert [(one.task, one.unparsed, one.cut) for one in entry.unread] == (
        [("t", unparsed / 100, cut / 100)] if caution else []
    )
    assert [entry.score.mean, entry.score.bound_low] == pytest.approx([right / 100] * 2)
    assert entry.score.bound_high == pytest.approx((right + cut + unparsed) / 100)
    assert entry.score.answered_mean == pytest.approx(right / (right + wrong))
    assert not response.entries[1].score.HasField("answered_mean")


def test_runs_of_another_item_set_mode_or_suite_are_never_beside(connection: Connection) -> None:
    run(connection, job("whole", plan("t", 10), model="a"), right=5, wrong=5, minute=1)
    run(connection, job("subset", plan("t", 4), model="b", item_set="cut", subset=True), right=4, minute=5)
    run(connection, job("other", plan("t", 4), model="c", suite="demo"), right=4, minute=6)
    likelihood = job("ll", plan("t", 10), model="d")
    likelihood.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    run(connection, likelihood, right=10, minute=7)
    assert ranks(board(connection)) == [(1, "whole")]
    assert not board(connection).subset
    subset = board(connection, item_set="cut")
    assert ranks(subset) == [(1, "subset")]
    assert (subset.subset, subset.items) == (True, 4)
    assert ranks(board(connection, mode=suite_pb2.MODE_LOGLIKELIHOOD)) == [(1, "ll")]
    assert ranks(board(connection, suite="demo")) == [(1, "other")]


def test_without_whole_runs_the_item_set_with_the_newest_run_is_shown(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), item_set="x", subset=True), right=4, minute=1)
    run(connection, job("b", plan("t", 4), item_set="y", subset=True), right=4, minute=2)
    assert board(connection).item_set == "y"


def test_a_trial_on_few_items_does_not_take_the_board_from_a_larger_set(connection: Connection) -> None:
    run(connection, job("large", plan("t", 40), item_set="x", subset=True), right=30, wrong=10, minute=1)
    run(connection, job("trial", plan("t", 4), item_set="y", subset=True), right=4, minute=2)
    assert board(connection).item_set == "x"
    assert ranks(board(connection, item_set="y")) == [(1, "trial")]


def redrawn(temperature: float, then: int, now: int, *outcomes: item_result_pb2.Outcome) -> str:
    source, again = job("s", plan("t", 4)), job("j", plan("t", 4))
    source.spec.sampling.max_tokens, again.spec.sampling.max_tokens = then, now
    again.spec.reuse.rerun.extend(outcomes)
    again.receipt.parameters = json.dumps({"temperature": temperature, "max_tokens": now})
    return redrawn_reason(again, source)


def test_answers_that_were_drawn_again_until_they_please_do_not_rank() -> None:
    assert "without more room" in redrawn(0, 64, 64, UNPARSED)
    assert "temperature" in redrawn(0.9, 64, 256, CUT)
    assert redrawn(0, 64, 256, CUT, UNPARSED) == "", "a cut greedy answer is the beginning of the longer one"
    assert redrawn(0.9, 64, 64, ERROR) == "", "a failed call is no draw"


def test_one_configuration_ranks_once_per_item_set(connection: Connection) -> None:
    run(connection, job("a", plan("t", 4), item_set="x"), right=4, minute=1)
    run(connection, job("b", plan("t", 4), item_set="y"), right=2, wrong=2, minute=2)
    assert ranks(board(connection, item_set="x")) == [(1, "a")]
    assert ranks(board(connection, item_set="y")) == [(1, "b")]


def test_a_metric_ranks_by_its_mean_over_the_tasks_that_have_it(connection: Connection) -> None:
    plans = (
        plan("sst2", 10, "accuracy"),
        plan("mrpc", 10, "f1", "accuracy"),
        plan("m", 10, "accuracy", group="mnli"),
        plan("mm", 10, "accuracy", group="mnli"),
    )
    run(connection, job("j", *plans), right=8, wrong=2, minute=1)
    by_accuracy = board(connection, metric="accuracy").entries[0]
    assert by_accuracy.score.mean == pytest.approx(0.8)
    assert by_accuracy.score.method == "stratified"
    assert by_accuracy.score.ci95_low < 0.8 < by_accuracy.score.ci95_high
    assert by_accuracy.task_count == 3
    assert board(connection, metric="f1").entries[0].task_count == 1
    score = board(connection).entries[0]
    f1 = score.tasks[1].metrics[0].mean
    assert score.score.mean == pytest.approx((0.8 + (f1 + 0.8) / 2 + 0.8) / 3)
    assert list(board(connection).metrics) == ["score", "accuracy", "f1"]


def test_an_unknown_suite_or_metric_is_refused_with_what_exists(connection: Connection) -> None:
    run(connection, job("j", plan("t", 10)), right=8, wrong=2, minute=1)
    with pytest.raises(UnknownSuiteError):
        board(connection, suite="gleu")
    announced = [endpoint_suite("demo", "accuracy")]
    with pytest.raises(InvalidRequestError, match="demo, glue"):
        board(connection, suite="gleu", announced=announced)
    with pytest.raises(InvalidRequestError, match="score, accuracy"):
        board(connection, metric="bleu", announced=announced)


def test_an_announced_suite_without_runs_has_an_empty_leaderboard(connection: Connection) -> None:
    response = board(connection, suite="demo", metric="accuracy", announced=[endpoint_suite("demo", "accuracy", "f1")])
    assert list(response.entries) == []
    assert list(response.metrics) == ["score", "accuracy", "f1"]
    assert not response.HasField("last_updated")


def test_tokens_per_second_come_from_stored_tokens_and_run_time(connection: Connection) -> None:
    run(connection, job("j", plan("t", 10)), right=10)
    assert board(connection).entries[0].tokens_per_second == pytest.approx(30 / 30)


def test_the_endpoint_filter_leaves_only_its_runs(connection: Connection) -> None:
    run(connection, job("a", plan("t", 10), endpoint="x"), right=10, minute=1)
    run(connection, job("b", plan("t", 10), endpoint="y"), right=9, wrong=1, minute=2)
    assert ranks(board(connection, endpoint="y")) == [(1, "b")]


def test_unread_answers_are_judged_task_by_task_and_the_worst_are_named() -> None:
    large = unread(plan("large", 1), metric_pb2.OutcomeCounts(answered=40_000))
    small = [
        unread(
            plan(f"small{n}", 1), metric_pb2.OutcomeCounts(answered=94 - n, unparsed=6 + n, input_truncated=int(n == 2))
        )
        for n in range(5)
    ]
    assert large is None
    found = [one for one in small if one is not None]
    assert [one.title for one in found] == ["SMALL0", "SMALL1", "SMALL2", "SMALL3", "SMALL4"]
    assert caution(found[:1], 9) == "answers could not be read: SMALL0 6.0%"
    assert caution(found, 9) == (
        "answers could not be read: SMALL4 10.0%, SMALL3 9.0%, SMALL2 7.9%, and of 2 more tasks above 5%"
    )
    assert caution([], 9) == ""
    # A share of exactly the threshold is none too many.
    assert unread(plan("t", 1), metric_pb2.OutcomeCounts(answered=94, unparsed=5, output_truncated=1)) is None
    cut = unread(plan("t", 1), metric_pb2.OutcomeCounts(answered=90, unparsed=8, output_truncated=1, input_truncated=1))
    assert cut is not None
    assert caution([cut], 2) == "answers could not be read: T 8.0%; answers were cut at a token limit: T 2.0%"


def test_runs_read_by_another_layer_have_a_board_of_their_own_that_stands_behind(connection: Connection) -> None:
    run(connection, job("usual", plan("t", 10), item_set="x"), right=5, wrong=5, minute=1)
    stricter = plan("t", 10)
    stricter.reading = scoring_pb2.READING_STRICT
    run(connection, job("strict", stricter, model="other", item_set="y"), right=9, wrong=1, minute=2)
    response = board(connection)
    assert ranks(response) == [(1, "usual")]
    assert [(one.item_set, one.scoring) for one in response.item_sets] == [
        ("x", ""),
        ("y", "answers read by the strict layer"),
    ]
    assert ranks(board(connection, item_set="y")) == [(1, "strict")]


def test_a_layer_is_offered_where_more_than_a_fifth_of_a_task_is_unread() -> None:
    def offer(*tasks: tuple[int, int, int], **job: Any) -> tuple[str, scoring_pb2.Reading]:
        plans = [plan(f"t{n}", 1) for n in range(len(tasks))]
        result = metric_pb2.JobResult()
        for planned, (unparsed, marked, lenient) in zip(plans, tasks, strict=True):
            counts = metric_pb2.OutcomeCounts(answered=1000 - unparsed, unparsed=unparsed)
            result.unread.extend(one for one in [unread(planned, counts, marked, lenient)] if one is not None)
        add_offer(job_pb2.Job(plan=plans, **job), result)
        return result.offer, result.offered_reading

    assert offer((310, 120, 260)) == (
        "The marked layer would read 120 of the 310 unread answers, the lenient one 260.",
        scoring_pb2.READING_LENIENT,
    )
    assert offer((310, 120, 120))[1] == scoring_pb2.READING_MARKED
    assert offer((310, 0, 260))[0] == "The lenient layer would read 260 of the 310 unread answers."
    nothing = ("", scoring_pb2.READING_UNSPECIFIED)
    assert offer((200, 120, 200)) == offer((310, 0, 0)) == offer((310, 1, 1), baseline=True) == nothing
    assert offer((300, 1, 2), (190, 100, 150), (400, 0, 4))[0] == (
        "T0: the marked layer would read 1 of the 300 unread answers, the lenient one 2. "
        "T2: the lenient layer would read 4 of the 400 unread answers."
    )
    assert offer(*[(300, 1, 2)] * 5)[0].endswith("Of 2 more tasks: the lenient layer would read 4 of 600.")


def test_a_suite_of_an_open_kind_has_an_empty_leaderboard_until_it_runs(connection: Connection) -> None:
    announced = [suite_pb2.Suite(suite="lm_eval", open=True)]
    response = board(connection, suite="lm_eval:hellaswag", announced=announced)
    assert (list(response.entries), list(response.metrics)) == ([], ["score"])
    with pytest.raises(InvalidRequestError, match="lm_eval"):
        board(connection, suite="helm:hellaswag", announced=announced)


def test_metrics_by_rule_rank_by_their_names(connection: Connection) -> None:
    for model, right in (("a", 6), ("b", 9)):
        planned = plan("t", 10)
        planned.metrics.add(metric="pass@1", rule=suite_pb2.MetricSpec.RULE_ANY, statistic="correct", beside=True)
        run(connection, job(model, planned, model=model), right=right, wrong=10 - right, minute=right)
    response = board(connection, metric="pass@1")
    assert ranks(response) == [(1, "b"), (2, "a")]
    assert response.entries[0].score.mean == 0.9
    assert list(response.metrics) == ["score", "accuracy", "pass@1"]
