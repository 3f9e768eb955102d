"""Averages over tasks, categories and items."""

from __future__ import annotations

import pytest

from services.results.intake import writes
from services.results.scores import job_result
from services.results.storage.database import Connection
from tests.unit.results.builders import answer, batch, job, known
from tests.unit.results.scores.planned import figures, measured, planned


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


def test_several_metrics_of_a_single_task_are_averaged(connection: Connection) -> None:
    result = measured(connection, {"a": 3}, planned("a", 4, "f1", "accuracy"))
    assert result.suite_score.method == "stratified"
    assert result.suite_score.mean == pytest.approx(sum(m.mean for m in result.tasks[0].metrics) / 2)


def test_averages_wait_until_every_task_of_theirs_has_items(connection: Connection) -> None:
    plans = [planned("a", 2, category="x"), planned("b", 2, category="x"), planned("c", 2, category="y")]
    known(connection, *plans)
    writes.store_items(connection, [batch("j", "a", [answer(0)]), batch("j", "c", [answer(0), answer(1)])])
    result = job_result.compute(connection, job("j", *plans), seal=False).result
    assert ("y", "score", "macro") in figures(result)
    assert ("x", "score", "macro") not in figures(result)
    assert not result.HasField("suite_score")
