"""Boards and comparisons over items and over tasks, by the suite's own rule and by the other."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from services.errors import InvalidRequestError
from services.results.boards.leaderboard import leaderboard
from services.results.comparison import rank_ranges
from services.results.intake import resealing
from services.results.storage.database import Connection, Database
from services.words.suites import ITEMS, TASKS, UNSPECIFIED
from tests.unit.results.comparisons import compared, difference
from tests.unit.results.finished import finished, right_or_wrong, said, share_right, task
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.suite_pb2 import Weighting

SMALL, LARGE = 20, 60


@pytest.fixture
async def database(connection: Connection) -> AsyncIterator[Database]:
    opened = Database(connection)
    yield opened
    await opened.close()


def ran(
    connection: Connection,
    model: str,
    small: int,
    large: int,
    *,
    suite: str = "mmlu",
    rule: Weighting = UNSPECIFIED,
    minute: int = 0,
) -> job_pb2.Job:
    """So many of the small and the large task's items are right."""
    tasks = [
        task(name, right_or_wrong("1" * right + "0" * (items - right)), weighting=rule)
        for name, right, items in (("small", small, SMALL), ("large", large, LARGE))
    ]
    return finished(connection, model, *tasks, suite=suite, model=model, minute=minute, item_set="s")


def board(connection: Connection, **asked: object) -> results_service_pb2.GetLeaderboardResponse:
    request = results_service_pb2.GetLeaderboardRequest(suite="mmlu", **asked)  # type: ignore[arg-type]
    with connection.cursor() as cursor:
        return leaderboard(cursor, request)


def shown(found: results_service_pb2.GetLeaderboardResponse) -> list[tuple[int, str, float]]:
    return [(entry.rank, entry.model, round(entry.score.mean, 9)) for entry in found.entries]


@pytest.mark.parametrize("metric", ["score", "accuracy"])
def test_a_board_ranks_by_the_suites_rule_and_by_the_other_when_asked(connection: Connection, metric: str) -> None:
    ran(connection, "narrow", 20, 20, rule=ITEMS)
    ran(connection, "broad", 8, 40, rule=ITEMS)
    over_items = [(1, "broad", 0.6), (2, "narrow", 0.5)]
    over_tasks = [(1, "narrow", round((1 + 1 / 3) / 2, 9)), (2, "broad", round((0.4 + 2 / 3) / 2, 9))]
    found = board(connection, metric=metric)
    assert (shown(found), found.weighting, found.suite_weighting) == (over_items, ITEMS, ITEMS)
    found = board(connection, metric=metric, weighting=TASKS)
    assert (shown(found), found.weighting, found.suite_weighting) == (over_tasks, TASKS, ITEMS)
    assert {entry.score.metric for entry in found.entries} == {metric}
    assert list(found.metrics) == ["score", "accuracy"]


def test_a_rule_that_is_none_is_refused(connection: Connection) -> None:
    ran(connection, "m", 1, 1)
    with pytest.raises(InvalidRequestError, match="weighting must be items or tasks"):
        board(connection, weighting=9)


def test_a_single_task_has_one_score_whatever_is_asked(connection: Connection) -> None:
    finished(connection, "j", task("t", right_or_wrong("1110")), suite="mmlu")
    found = board(connection, weighting=TASKS)
    assert (found.weighting, found.suite_weighting, found.entries[0].score.mean) == (UNSPECIFIED, UNSPECIFIED, 0.75)


def test_runs_compare_by_the_rule_of_their_suite_or_the_one_asked_for(connection: Connection) -> None:
    narrow, broad = ran(connection, "narrow", 20, 20, rule=ITEMS), ran(connection, "broad", 8, 40, rule=ITEMS)
    by_items = compared(connection, narrow.job_id, broad.job_id, suite="mmlu")
    found = difference(by_items)
    assert by_items.weighting == ITEMS
    assert (found.a, found.test, found.only_a, found.only_b, found.n) == ("broad", "exact McNemar", 20, 12, 80)
    assert found.difference == pytest.approx(8 / 80)
    assert [run.scores[0].mean for run in by_items.runs] == pytest.approx([0.6, 0.5])
    by_tasks = compared(connection, narrow.job_id, broad.job_id, suite="mmlu", weighting=TASKS)
    found = difference(by_tasks)
    assert (by_tasks.weighting, found.a, found.test) == (TASKS, "narrow", "stratified permutation")
    assert found.difference == pytest.approx((0.6 - 1 / 3) / 2)
    assert by_tasks.runs[0].scores[0].mean == pytest.approx(2 / 3)


@pytest.mark.parametrize("rule", [ITEMS, TASKS])
def test_a_difference_is_that_of_the_scores_whatever_the_tasks_metrics(connection: Connection, rule: Weighting) -> None:
    """F1 with accuracy, two tasks that count once, and passages."""
    for model, seed in (("m1", 1), ("m2", 2), ("m3", 3)):
        chance = random.Random(seed)
        labels = [chance.choice(("yes", "no")) for _ in range(90)]
        truths = [("yes", "no")[item % 2] for item in range(90)]
        answers = [said(item, said_, truth) for item, (said_, truth) in enumerate(zip(labels, truths, strict=True))]
        passages = [said(item, one, group=f"p{item // 5}") for item, one in enumerate(labels[:40])]
        finished(
            connection,
            model,
            task("mrpc", answers, "f1", "accuracy"),
            task("m", right_or_wrong("110" * 10), score_group="mnli"),
            task("mm", right_or_wrong(share_right(0.5 + seed / 10, 50, seed)), score_group="mnli"),
            task("boolq", passages),
            model=model,
        )
    found = compared(connection, "m1", "m2", "m3", weighting=rule)
    scores = {run.job_id: run.scores[0].mean for run in found.runs}
    assert len(set(scores.values())) == 3
    for one in found.differences:
        if not one.task:
            assert one.difference == pytest.approx(scores[one.a] - scores[one.b])
    (overall,) = [test for test in found.omnibus if not test.task]
    assert (overall.test, overall.n) == ("Cochran's Q of scores", 210)
    board = leaderboard(connection, results_service_pb2.GetLeaderboardRequest(suite="glue", weighting=rule))
    assert {entry.job_id: entry.score.mean for entry in board.entries} == scores


def test_places_and_the_board_go_by_the_same_rule(connection: Connection) -> None:
    ran(connection, "narrow", 20, 6, rule=ITEMS)
    ran(connection, "broad", 2, 54, rule=ITEMS)
    with connection.cursor() as cursor:
        assert rank_ranges.of_board(cursor, "score over items", ["broad", "narrow"]) == {
            "broad": (1, 1),
            "narrow": (2, 2),
        }
    with connection.cursor() as cursor:
        assert rank_ranges.of_board(cursor, "score over tasks", ["broad", "narrow"]) == {
            "broad": (1, 2),
            "narrow": (1, 2),
        }


def test_runs_of_different_rules_are_ranked_and_compared_by_one(connection: Connection) -> None:
    """A group of lm_eval's from before its weights were kept, and one from after."""
    old = ran(connection, "old", 20, 20, suite="lm_eval:mmlu", minute=3)
    new = ran(connection, "new", 8, 40, suite="lm_eval:mmlu", rule=ITEMS, minute=4)
    request = results_service_pb2.GetLeaderboardRequest(suite="lm_eval:mmlu")
    found = leaderboard(connection, request)
    assert (shown(found), found.weighting) == ([(1, "new", 0.6), (2, "old", 0.5)], ITEMS)
    response = compared(connection, old.job_id, new.job_id, suite="lm_eval:mmlu")
    assert response.weighting == ITEMS
    assert "The scores of these runs have different rules; here, all are means over items." in response.notes


async def test_runs_sealed_before_there_were_rules_are_sealed_again_by_the_rule_of_their_suite(
    connection: Connection, database: Database
) -> None:
    for model, small, large in (("narrow", 20, 20), ("broad", 8, 40)):
        ran(connection, model, small, large)
        as_before(connection, model, (small / SMALL + large / LARGE) / 2)
    assert shown(board(connection)) == [(1, "narrow", 0.666666667), (2, "broad", 0.533333333)]
    assert await resealing.reseal(database) == 2
    found = board(connection)
    assert (shown(found), found.weighting) == ([(1, "broad", 0.6), (2, "narrow", 0.5)], ITEMS)


async def test_a_run_that_waits_to_be_sealed_again_is_not_ranked_among_the_others(
    connection: Connection, database: Database
) -> None:
    ran(connection, "old", 20, 20, minute=1)
    as_before(connection, "old", 2 / 3)
    ran(connection, "new", 8, 40, rule=ITEMS, minute=2)
    found = board(connection)
    assert [(entry.rank, entry.model, entry.not_ranked_reason) for entry in found.entries] == [
        (1, "new", ""),
        (0, "old", "the score over items is still being computed; try again in a moment"),
    ]
    # A comparison computes it.
    assert [run.scores[0].mean for run in compared(connection, "old", "new", suite="mmlu").runs] == [0.6, 0.5]
    await resealing.reseal(database)
    assert shown(board(connection)) == [(1, "new", 0.6), (2, "old", 0.5)]


def as_before(connection: Connection, job_id: str, score: float) -> None:
    """A seal as the first rules left it: the score over tasks alone."""
    result = metric_pb2.JobResult(job_id=job_id, sealed=True)
    (blob,) = connection.execute("SELECT result FROM seals WHERE job_id = $job_id", {"job_id": job_id}).fetchone() or ()
    result.tasks.extend(metric_pb2.JobResult.FromString(blob).tasks)
    connection.execute(
        "UPDATE seals SET rules = 1, result = $result WHERE job_id = $job_id",
        {"job_id": job_id, "result": result.SerializeToString()},
    )
    for table in ("metrics", "run_scores", "current_scores"):
        connection.execute(
            f"DELETE FROM {table} WHERE job_id = $job_id AND metric LIKE '% over %'",
            {"job_id": job_id},
        )
        where = "job_id = $job_id AND metric = 'score'" + (" AND task = ''" if table == "metrics" else "")
        connection.execute(f"UPDATE {table} SET mean = $mean WHERE {where}", {"job_id": job_id, "mean": score})
    connection.execute("UPDATE item_sets SET weighting = 0")
