"""Figures, colours and drawings: pure, and the same everywhere."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from services.gateway import charts, palette
from services.gateway.estimate import spoken_range
from services.gateway.jobs import iso
from services.gateway.pages import formatting
from services.gateway.pages.heat import columns
from services.gateway.pages.items import _shared
from tests.gateway import fake_data
from touchstone.v1 import metric_pb2, suite_pb2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (2260, "37 min 40 s"), (3600, "1 h"), (10800, "3 h"), (4320, "1 h 12 min")],
)
def test_durations_are_said_in_two_units(seconds: float, words: str) -> None:
    assert formatting.duration(seconds) == words


def test_negative_figures_use_a_minus_and_a_range_says_to() -> None:
    assert formatting.hundredths(-0.012) == "−1.2"
    assert formatting.hundredths(-0.0001) == "0.0"
    assert formatting.span(-0.012, 0.034) == "−1.2 to 3.4"
    assert formatting.span(0.659, 0.679) == "65.9–67.9"


def test_times_are_iso_8601_with_milliseconds_and_z() -> None:
    assert iso(Timestamp(seconds=1765140917, nanos=5_000_000)) == "2025-12-07T20:55:17.005Z"
    assert iso(Timestamp()) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(20, "under 1 minute"), (60, "1-2 minutes"), (1400, "17-35 minutes"), (9000, "1-4 hours")]
)
def test_guesses_are_said_as_ranges(seconds: float, words: str) -> None:
    assert spoken_range(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "low", "high", "words", "span"),
    [
        (0.01, 0.01, 0.04, "under 0.1 s", ""),
        (0.01, 0.01, 0.3, "under 0.1 s", "0.0–0.3"),
        (1.2, 1.1, 1.4, "1.2 s", "1.1–1.4"),
        (9.96, 9.4, 11, "10 s", "9–11"),
        (34, 34, 34.2, "34 s", ""),
        (59, 45, 80, "59 s", "45–80"),
        (59.6, 59, 61, "1 min", ""),
        (130, 110, 140, "2 min", ""),
        (1320, 1080, 1620, "22 min", "18–27"),
        (5760, 5000, 7000, "1.6 h", "1.4–1.9"),
        (100, 200, 50, "2 min", ""),
    ],
)
def test_time_left_and_its_range_share_one_unit(seconds: float, low: float, high: float, words: str, span: str) -> None:
    assert formatting.time_left(seconds) == words
    assert formatting.time_range(seconds, low, high) == span


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_range_of_time_holds_its_guess_and_is_never_one_value(seconds: float, low: float, high: float) -> None:
    span = formatting.time_range(seconds, low, high)
    if span:
        first, last = (float(end) for end in span.split("–"))
        assert first < last
        assert first <= float(formatting.time_left(seconds).removeprefix("under ").split()[0]) <= last


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "–"), (0.4, "< 1 ms"), (87.4, "87 ms"), (95, "95 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (3e4, "30.0 s")],
)
def test_below_a_second_times_are_in_milliseconds(value: float, words: str) -> None:
    assert formatting.milliseconds(value) == words


def test_bounds_are_said_only_where_they_are_wider_than_the_mean() -> None:
    assert formatting.bounds(fake_data.metric("accuracy", 0.5, 100)) == ""
    assert formatting.bounds(fake_data.bounded_metric("score", 0.144, 0.019, 0.894, 100)) == "1.9–89.4"


keys = st.lists(st.tuples(st.sampled_from(["ollama", "vllm"]), st.text(max_size=6)), unique=True, max_size=16)


@given(keys)
def test_up_to_sixteen_configurations_have_sixteen_looks(known: list[tuple[str, str]]) -> None:
    slots = palette.assign(known)
    assert len(set(slots.values())) == len(known)
    assert slots == palette.assign(reversed(known))


@given(keys, keys)
def test_what_a_page_adds_does_not_change_the_others(known: list[palette.Key], shown: list[palette.Key]) -> None:
    alone, together = palette.assign(known), palette.assign(known, shown)
    assert {key: together[key] for key in known} == alone


@given(st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=1, max_size=30))
def test_an_axis_holds_its_values_with_few_round_ticks(values: list[float]) -> None:
    axis = charts.Axis.around(values)
    assert all(axis.holds(value) for value in values)
    assert 3 <= len(axis.ticks) <= 6


@given(st.floats(0, 100), st.floats(0, 100), st.integers(0, 15))
def test_drawings_are_well_formed(value: float, other: float, slot: int) -> None:
    axis = charts.Axis.around([70, 90])
    low, high = sorted((value, other))
    for drawn in (
        charts.score_cell(axis, value, low, high, slot),
        charts.bounds_cell(axis, low, high),
        charts.sparkline([value, other, value]),
        charts.marker(slot),
        charts.axis_head(axis),
    ):
        ElementTree.fromstring(drawn)
        assert "style" not in drawn
        assert "nan" not in drawn


def test_a_value_off_the_axis_is_said_in_words() -> None:
    axis = charts.Axis.around([70, 90])
    assert "44.5, off the axis" in charts.score_cell(axis, 44.5, 40, 50, 0)
    assert 'class="mark' not in charts.score_cell(axis, 44.5, 40, 50, 0)


@pytest.mark.parametrize(
    ("low", "high", "arrows", "brackets"), [(72, 88, 0, 2), (0.2, 88, 1, 1), (72, 94.7, 1, 1), (0.2, 94.7, 2, 0)]
)
def test_bounds_off_the_axis_end_in_an_arrow_instead_of_a_bracket(
    low: float, high: float, arrows: int, brackets: int
) -> None:
    cell = ElementTree.fromstring(charts.bounds_cell(charts.Axis.around([70, 90]), low, high))
    paths = {path.get("class"): path.get("d", "") for path in cell}
    assert paths.get("off", "").count("Z") == arrows
    assert paths["bracket"].count("M") == brackets


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


def test_rows_leave_out_what_all_prompts_begin_with() -> None:
    texts = ["Is this acceptable? Sentence: the cat sat", "Is this acceptable? Sentence: the dog ran"]
    assert texts[0][_shared(texts) :] == "cat sat"
    assert _shared(["same", "same"]) == 0
    assert _shared(["one"]) == 0
