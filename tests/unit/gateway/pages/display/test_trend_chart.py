"""The trend chart is well formed, holds its points, and its labels do not collide."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import trend_chart
from services.gateway.pages.display.trend_chart import Line, Point

NOW = 1_780_000_000.0
places = st.lists(st.floats(-50, 500), min_size=1, max_size=12)
shares = st.floats(-100, 100, allow_subnormal=False)


@st.composite
def lines(draw: st.DrawFn) -> list[Line]:
    found, row = [], 0
    for slot in range(draw(st.integers(1, 9))):
        times = sorted(draw(st.lists(st.floats(0, 90 * 86_400), min_size=1, max_size=6)))
        points = []
        for at in times:
            value = draw(shares)
            low = None if draw(st.booleans()) else value - 1
            points.append(Point(NOW + at, value, low, None if low is None else value + 1, row))
            row += 1
        found.append(
            Line("a <b>&'\"" * draw(st.integers(1, 6)), None if slot == 8 else slot * 2 % 16, points, slot % 4)
        )
    return found


@given(lines(), st.sampled_from([0, 170]))
def test_every_run_has_a_mark_inside_the_drawing(drawn: list[Line], labels: int) -> None:
    text = trend_chart.trend_chart(drawn, 'six "models"', width=800, height=320, labels=labels)
    root = ElementTree.fromstring(text)
    marks = [mark for mark in root.iter("path") if mark.get("data-run")]
    assert [int(mark.get("data-run", "")) for mark in marks] == [p.row for line in drawn for p in line.points]
    for mark in marks:
        x, y = (float(part) for part in mark.get("transform", "")[len("translate(") : -1].split())
        assert 36 <= x <= 800 - (labels or 12)
        assert 0 <= y <= 320
    assert "style=" not in text
    assert "nan" not in text


@given(places)
def test_labels_are_pushed_apart_and_keep_their_order(wanted: list[float]) -> None:
    placed = trend_chart.pushed_apart(wanted, 16, 10, 294)
    assert all(after - before >= 16 - 1e-6 for before, after in pairwise(sorted(placed)))
    ordered = sorted(range(len(wanted)), key=lambda index: wanted[index])
    assert [placed[index] for index in ordered] == sorted(placed)
    assert min(placed) >= 10 - 1e-6
    assert max(placed) <= 294 + 1e-6


def test_labels_with_room_stay_at_the_ends_of_their_lines() -> None:
    assert trend_chart.pushed_apart([50, 200, 100], 16, 10, 294) == [50, 200, 100]


@given(st.floats(60, 90 * 86_400))
def test_times_are_round_and_few(span: float) -> None:
    ticks = trend_chart.time_ticks(NOW, NOW + span)
    assert 1 <= len(ticks) <= 6
    assert all(NOW <= at <= NOW + span for at, _ in ticks)
    assert all((":" in words) == (span < 2 * 86_400) for _, words in ticks)


def test_without_a_run_there_is_no_chart() -> None:
    assert trend_chart.trend_chart([Line("a", 0, [])], "none", width=800, height=320) == ""
