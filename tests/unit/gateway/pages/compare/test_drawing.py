"""The compare page's drawings."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from services.gateway.pages.compare.drawing import (
    WIDTH,
    Drawn,
    Point,
    against_bar,
    axis_of,
    cost_plot,
    counts_bar,
    difference_cell,
    front,
)


def point(name: str, cost: float, score: float) -> Point:
    return Point(name, cost, score, score - 2, score + 2, 1)


def test_the_axis_holds_zero_and_every_interval() -> None:
    axis = axis_of([2.0, 13.0])
    assert axis.low <= 0
    assert axis.high >= 13


def test_a_difference_that_is_not_shown_is_a_grey_ring_in_its_band() -> None:
    axis = axis_of([-3.0, 9.0])
    grey = difference_cell(axis, Drawn(1.0, -3.0, 5.0, 6.0, None))
    shown = difference_cell(axis, Drawn(6.0, 3.0, 9.0, 4.0, 1))
    assert 'class="mark none open"' in grey
    assert 'class="mark m2"' in shown
    assert 'class="reach"' in grey
    band = re.search(r'class="reach" x="([\d.]+)"[^>]*width="([\d.]+)"', shown)
    assert band
    assert float(band[2]) == pytest.approx(WIDTH * (axis.share(4) - axis.share(-4)), abs=0.11)


def test_the_suites_diamond_is_as_wide_as_its_interval() -> None:
    axis = axis_of([0.0, 10.0])
    drawn = difference_cell(axis, Drawn(5.0, 2.0, 8.0, 3.0, 0), whole=True)
    path = re.search(r'class="mark m1" d="M([\d.]+) [\d.]+L([\d.]+) [\d.]+L([\d.]+)', drawn)
    assert path
    assert [float(x) for x in path.groups()] == pytest.approx([WIDTH * axis.share(end) for end in (2, 5, 8)], abs=0.06)
    assert 'class="reach"' not in drawn


def test_what_lies_off_the_axis_ends_at_it() -> None:
    axis = axis_of([0.0, 4.0])
    drawn = difference_cell(axis, Drawn(1.0, 0.0, 4.0, 90.0, None))
    band = re.search(r'class="reach" x="([\d.]+)"[^>]*width="([\d.]+)"', drawn)
    assert band
    assert float(band[1]) + float(band[2]) <= axis.width


def test_a_small_count_stays_visible_and_an_empty_one_is_not_drawn() -> None:
    widths = re.findall(
        r'class="(\w+)" x="[\d.]+" y="0" width="([\d.]+)"', counts_bar([(9999, "both"), (1, "m1"), (0, "m2")])
    )
    assert [tone for tone, _ in widths] == ["both", "m1"]
    assert float(widths[1][1]) == 2.0
    assert 'width="41.0"' in against_bar(10, 5, 10, ("m1", "m2"))


def test_the_front_is_what_none_beats_by_both() -> None:
    points = [point("cheap", 1, 70), point("dear", 10, 80), point("beaten", 5, 69), point("even", 1, 60)]
    assert [one.name for one in front(points)] == ["cheap", "dear"]


@pytest.mark.parametrize("costs", [(0.01, 0.013), (0.0001, 40.0), (1.0, 1.0)])
def test_a_plot_is_well_formed_and_escapes_names(costs: tuple[float, float]) -> None:
    hostile = '"><script>alert(1)</script>'
    for narrow, width, longest in ((False, 460, 26), (True, 320, 20)):
        drawn = cost_plot([point(hostile, costs[0], 70), point("b", costs[1], 75)], narrow=narrow)
        assert "<script" not in drawn
        texts = [one.text for one in ET.fromstring(drawn).iter("text")]
        assert f"{hostile[: longest - 1]}…" in texts
        assert 1 <= sum(str(text).startswith("$") for text in texts) <= 8
        for x in re.findall(r"translate\(([\d.]+)", drawn):
            assert 0 < float(x) < width
