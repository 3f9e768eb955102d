"""The sliding window is exact at its edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.errors import LimitReachedError
from services.gateway.access.limits import SlidingWindow, Streams


def test_the_window_slides_and_refusals_do_not_count() -> None:
    now = 0.0
    window = SlidingWindow(2, 60, lambda: now)
    window.admit("a")
    now = 30.0
    window.admit("a")
    for _ in range(5):
        with pytest.raises(LimitReachedError) as refused:
            window.admit("a")
        assert refused.value.retry_after_s == 30
    window.admit("b")
    now = 59.999
    with pytest.raises(LimitReachedError):
        window.admit("a")
    now = 60.0
    window.admit("a")
    with pytest.raises(LimitReachedError):
        window.admit("a")


@given(st.lists(st.floats(0, 20), max_size=80))
def test_no_window_ever_holds_more_than_the_limit(gaps: list[float]) -> None:
    now = 0.0
    window = SlidingWindow(5, 60, lambda: now)
    admitted: list[float] = []
    for gap in gaps:
        now += gap
        try:
            window.admit("a")
        except LimitReachedError:
            assert sum(now - then < 60 for then in admitted) == 5
        else:
            admitted.append(now)
    for start in admitted:
        assert sum(start <= then < start + 60 for then in admitted) <= 5


def test_a_user_who_asks_no_more_is_forgotten() -> None:
    now = 0.0
    window = SlidingWindow(5, 60, lambda: now)
    for n in range(10_000):
        window.admit(str(n))
    now = 100.0
    window.admit("new")
    assert window.users == 1


def test_streams_are_counted_per_user_and_freed() -> None:
    streams = Streams(1)
    with streams.slot("a"):
        with streams.slot("b"):
            pass
        with pytest.raises(LimitReachedError), streams.slot("a"):
            pass
    with streams.slot("a"):
        pass
