"""Charts are well formed, and their axes hold their values."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.display import charts


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
    assert ">44.5<tspan class='off-axis'>, off the axis</tspan>" in charts.score_cell(axis, 44.5, 40, 50, 0)
    assert 'class="mark' not in charts.score_cell(axis, 44.5, 40, 50, 0)


@pytest.mark.parametrize(
    ("low", "high", "arrows", "brackets"), [(72, 88, 0, 2), (0.2, 88, 1, 1), (72, 94.7, 1, 1), (0.2, 94.7, 2, 0)]
)
def test_bounds_off_the_axis_end_in_an_arrow_instead_of_a_bracket(
    low: float, high: float, arrows: int, brackets: int
) -> None:
    cell = ElementTree.fromstring(charts.bounds_cell(charts.Axis.around([70, 90]), low, high))
    drawn = [path.get("class") for path in cell.iter("path")]
    assert (drawn.count("off"), drawn.count("bracket")) == (arrows, brackets)


@given(st.lists(st.lists(st.floats(0, 100, allow_subnormal=False), min_size=2, max_size=12), min_size=1, max_size=5))
def test_sparklines_of_one_table_show_equal_changes_as_equal_heights(tables: list[list[float]]) -> None:
    span = max(4.0, *(max(values) - min(values) for values in tables))
    for values in tables:
        line = ElementTree.fromstring(charts.trend_spark(values, span)).find("polyline")
        assert line is not None
        heights = [float(place.split(",")[1]) for place in line.get("points", "").split()]
        drawn = (max(heights) - min(heights)) / 16 * span
        assert abs(drawn - (max(values) - min(values))) <= span / 16 * 0.2 + 1e-6
        assert 0 <= min(heights) <= max(heights) <= 22
