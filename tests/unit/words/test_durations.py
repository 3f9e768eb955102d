"""Guesses of time share one unit with their ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.words.durations import time_left, time_range


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
    assert time_left(seconds) == words
    assert time_range(seconds, low, high) == span


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_range_of_time_holds_its_guess_and_is_never_one_value(seconds: float, low: float, high: float) -> None:
    span = time_range(seconds, low, high)
    if span:
        first, last = (float(end) for end in span.split("–"))
        assert first < last
        assert first <= float(time_left(seconds).removeprefix("under ").split()[0]) <= last
