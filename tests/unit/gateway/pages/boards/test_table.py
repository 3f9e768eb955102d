"""Cells of a board by category."""

from __future__ import annotations

import pytest

from services.gateway.pages.boards.table import columns
from tests.gateway import fake_data
from touchstone.v1 import metric_pb2, suite_pb2


def test_a_cell_not_shown_to_beat_the_majority_class_is_bare() -> None:
    board = fake_data.leaderboard({})
    ranked, floors = [e for e in board if e.rank], [e for e in board if e.baseline]
    found = {
        column.task: column for column in columns(ranked, floors, fake_data.suites()[1], suite_pb2.WEIGHTING_TASKS)
    }
    assert list(found) == ["cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli"]
    mrpc, sst2 = found["mrpc"], found["sst2"]
    weakest = next(e for e in ranked if e.model == "gemma3:4b")
    assert weakest.job_id not in mrpc.levels
    assert sst2.levels[weakest.job_id] == 1
    assert sst2.levels[next(e for e in ranked if e.model == "llama3.3:70b").job_id] == 5
    assert all(floor.job_id not in column.levels for floor in floors for column in found.values())


@pytest.mark.parametrize(("rule", "mean"), [(suite_pb2.WEIGHTING_ITEMS, 0.7), (suite_pb2.WEIGHTING_TASKS, 0.6)])
def test_categories_of_a_large_suite_go_by_the_rule_of_the_board(rule: suite_pb2.Weighting, mean: float) -> None:
    metrics = {suite_pb2.WEIGHTING_ITEMS: 0.7, suite_pb2.WEIGHTING_TASKS: 0.6}
    entry = metric_pb2.LeaderboardEntry(
        job_id="j",
        rank=1,
        tasks=[metric_pb2.TaskResult(task="law", category="Humanities", items=10)],
        averages=[
            metric_pb2.Average(category="Humanities", metric=metric_pb2.Metric(mean=value, n=10), weighting=own)
            for own, value in metrics.items()
        ],
    )
    suite = suite_pb2.Suite(tasks=[suite_pb2.TaskInfo(task=f"t{place}") for place in range(20)])
    (column,) = columns([entry], [], suite, rule)
    assert (column.title, column.results["j"].metrics[0].mean) == ("Humanities", mean)
