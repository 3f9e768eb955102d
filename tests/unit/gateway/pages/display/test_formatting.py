"""Durations, ranges and bounds in words."""

from __future__ import annotations

import pytest

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
    ("value", "words"),
    [(0, "–"), (0.4, "< 1 ms"), (87.4, "87 ms"), (95, "95 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (3e4, "30.0 s")],
)
def test_below_a_second_times_are_in_milliseconds(value: float, words: str) -> None:
    assert formatting.milliseconds(value) == words


def test_bounds_are_said_only_where_they_are_wider_than_the_mean() -> None:
    assert formatting.bounds(fake_data.metric("accuracy", 0.5, 100)) == ""
    assert formatting.bounds(fake_data.bounded_metric("score", 0.144, 0.019, 0.894, 100)) == "1.9–89.4"
