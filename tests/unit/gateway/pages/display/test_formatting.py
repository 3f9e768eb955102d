"""Durations, ranges and bounds in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import formatting
from tests.gateway import fake_data


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
