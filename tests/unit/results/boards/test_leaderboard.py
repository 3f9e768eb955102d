"""Who stands for a configuration, who ranks, and in which order."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.results.boards.leaderboard import UnknownSuiteError
from services.results.storage.database import Connection
from tests.unit.results.boards.ranked import board, ranks
from tests.unit.results.builders import endpoint_suite, job, plan, run
from touchstone.v1 import scoring_pb2, suite_pb2


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
