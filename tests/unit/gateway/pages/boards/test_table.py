"""Cells of a board by category."""

from __future__ import annotations

import pytest

from services.gateway.http.responses import csv_of
from services.gateway.pages.boards.table import Sparks, columns, end_of_top, place_words
from tests.gateway import fake_data
from touchstone.v1 import metric_pb2, results_service_pb2, suite_pb2


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


def ranks(*places: tuple[int, int]) -> list[metric_pb2.LeaderboardEntry]:
    return [
        metric_pb2.LeaderboardEntry(job_id=f"j{rank}", rank=rank, rank_low=low, rank_high=high)
        for rank, (low, high) in enumerate(places, 1)
    ]


def test_a_range_of_ranks_is_said_in_words() -> None:
    first, second = ranks((1, 1), (2, 4))
    assert place_words(first) == "is 1st, whatever the data leave open"
    assert place_words(second) == "may be 2nd to 4th"


@pytest.mark.parametrize(
    ("places", "last"),
    [
        ([(1, 2), (1, 2), (3, 3)], "j2"),
        ([(1, 1), (2, 3), (2, 3)], "j1"),
        ([(1, 3), (1, 3), (1, 3)], ""),
        ([(1, 3), (2, 3), (1, 3), (4, 4)], "j3"),
        ([(0, 0), (0, 0)], ""),
        ([], ""),
    ],
)
def test_the_top_group_ends_after_the_last_row_that_may_be_first(places: list[tuple[int, int]], last: str) -> None:
    assert end_of_top(ranks(*places)) == last


def test_sparklines_share_the_span_of_the_largest_change_and_at_least_four_points() -> None:
    def trend(configuration: str, *scores: float, items: str = "all") -> results_service_pb2.Trend:
        points = [results_service_pb2.TrendPoint(score=metric_pb2.Metric(mean=score)) for score in scores]
        return results_service_pb2.Trend(configuration=configuration, item_set=items, points=points)

    entries = [metric_pb2.LeaderboardEntry(job_id=name, configuration=name) for name in ("a", "b", "c")]
    still = [trend("a", 0.5, 0.51), trend("b", 0.7), trend("a", 0.1, 0.9, items="few")]
    sparks = Sparks.of(entries, still, "all")
    assert sparks.span == 4
    assert {name: [round(value) for value in values] for name, values in sparks.values.items()} == {
        "a": [50, 51],
        "b": [70],
        "c": [],
    }
    assert Sparks.of(entries, [*still, trend("c", 0.2, 0.3)], "all").span == pytest.approx(10)


def test_a_spreadsheet_reads_names_as_texts() -> None:
    written = csv_of([{"model": "=cmd()", "score": -0.5, "n": None}, {"model": "a,b", "score": 1, "n": 2}])
    assert written.splitlines() == ["model,score,n", "'=cmd(),-0.5,", '"a,b",1,2']
    assert csv_of([]) == "\r\n"
