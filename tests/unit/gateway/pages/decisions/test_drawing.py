"""Charts of decisions: what is drawn of long and of odd courses."""

from __future__ import annotations

import itertools
import math
import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.pages.decisions import drawing
from services.gateway.pages.decisions.drawing import NARROW, WIDE, Line, thinned

LIMIT = math.log(80)
_POINT = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


def course(items: int, seed: int = 1) -> list[tuple[float, float]]:
    """Evidence as it may go: up and down."""
    drawn = random.Random(seed)
    steps = itertools.accumulate(drawn.gauss(0.001, 0.06) for _ in range(items))
    return [(at, value) for at, value in enumerate(steps, 1)]


def ways(svg: str) -> list[list[tuple[float, float]]]:
    """The points of each line that is drawn."""
    paths = re.findall(r'<path class="way [^"]*" d="([^"]+)"', svg)
    return [[(float(x), float(y)) for x, y in _POINT.findall(path)] for path in paths]


@given(st.lists(st.floats(-50, 50), max_size=600), st.integers(1, 40))
def test_a_thinned_line_keeps_its_ends_and_its_extremes(values: list[float], stretches: int) -> None:
    points = [(float(at), value) for at, value in enumerate(values)]
    kept = thinned(points, stretches)
    assert len(kept) <= 2 * stretches + 2
    assert list(kept) == sorted(kept)
    assert {*kept} <= {*points}
    if points:
        assert (kept[0], kept[-1]) == (points[0], points[-1])
        assert {max(value for _, value in kept), min(value for _, value in kept)} == {max(values), min(values)}


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_evidence_of_14_000_items_is_drawn_in_no_time_and_little_room(width: int) -> None:
    lines = [Line(f"m{number}", course(14_000, number)) for number in range(1, 4)]
    began = time.perf_counter()
    svg = drawing.evidence_chart(lines, LIMIT, 13_000, "Evidence", width)
    assert time.perf_counter() - began < 0.2
    assert len(svg) < 16_000
    for drawn in ways(svg):
        assert max(x for x, _ in drawn) == pytest.approx(width - 12)
        assert min(x for x, _ in drawn) >= 48


def test_evidence_is_on_a_logarithmic_scale_with_its_limit() -> None:
    points = [(0, 0.0), (10, math.log(10)), (20, LIMIT)]
    svg = drawing.evidence_chart([Line("m1", points)], LIMIT, 20, "Evidence")
    ((_, one), (_, ten), (_, limit)) = ways(svg)[0]
    assert (one - limit) / (one - ten) == pytest.approx(math.log10(80), abs=0.01)
    assert f'<path class="limit" d="M48 {limit:.1f}H' in svg
    assert ">80 times<" in svg
    assert all(f">{words}<" in svg for words in ("1", "10", "1/10"))
    assert 'class="decided"' in svg
    assert 'class="chief"' in svg


@pytest.mark.parametrize("value", [-1000.0, 1e6, -math.inf, math.inf])
def test_what_is_far_off_runs_along_the_edge(value: float) -> None:
    svg = drawing.evidence_chart([Line("m1", [(0, 0.0), (5, value)])], LIMIT, 0, "Evidence")
    ((_, first), (_, last)) = ways(svg)[0]
    assert 0 <= last <= 260
    assert (last > first) == (value < 0)
    assert "nan" not in svg
    assert "inf" not in svg


def test_one_item_and_none_are_drawn() -> None:
    assert "way" not in drawing.evidence_chart([Line("m1", [])], LIMIT, 0, "Evidence")
    assert len(ways(drawing.evidence_chart([Line("m1", [(0, 0.0), (1, 0.3)])], LIMIT, 0, "Evidence"))) == 1
    assert "nan" not in drawing.chance_chart([(1, 1.0)], 0.1, 0, "Chance")


@pytest.mark.parametrize("most", [1, 3, 9, 10, 99, 108, 1_170, 14_042, 10**9])
def test_numbers_below_the_axis_are_round_few_and_apart(most: int) -> None:
    for width, decided in itertools.product((WIDE, NARROW), (0, most, most // 3)):
        svg = drawing.evidence_chart([Line("m1", [(0, 0.0), (most, 1.0)])], LIMIT, decided, "Evidence", width)
        found = re.findall(r'<text(?: class="chief")? x="([\d.]+)" y="\d+" text-anchor="(?:end|middle)">([\d,]+)<', svg)
        numbers = [(float(x), int(text.replace(",", ""))) for x, text in found]
        assert 1 <= len(numbers) <= 7
        assert all(
            text.rstrip("0") in ("", "1", "2", "3", "4", "5", "6", "8", "25") or int(text) == decided
            for text in (str(number) for _, number in numbers)
            if int(text) % 5 == 0
        )
        places = sorted(x for x, _ in numbers)
        assert all(b - a >= 40 for a, b in itertools.pairwise(places))


@pytest.mark.parametrize(("most", "decided"), [(1_596, 1_596), (1_600, 1_580), (14_042, 14_010), (512, 505)])
def test_the_number_of_a_late_verdict_covers_no_other(most: int, decided: int) -> None:
    for width in (WIDE, NARROW):
        svg = drawing.evidence_chart([Line("m1", [(0, 0.0), (most, 1.0)])], LIMIT, decided, "Evidence", width)
        found = re.findall(r'<text(?: class="chief")? x="([\d.]+)" y="\d+" text-anchor="(end|middle)">([\d,]+)<', svg)
        sizes = [(float(x), 6.6 * len(text), anchor) for x, anchor, text in found]
        spans = sorted((x - wide, x) if anchor == "end" else (x - wide / 2, x + wide / 2) for x, wide, anchor in sizes)
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans[1:]))


def test_hostile_words_stay_words() -> None:
    svg = drawing.evidence_chart([Line('m1"><script>', [(0, 0.0), (1, 1.0)])], LIMIT, 0, '"><script>')
    assert "<script>" not in svg


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_difference_has_its_interval_and_lines_at_0_and_the_margin(width: int) -> None:
    points = [(at, 6 + 90 / at, -94 / at + 5, 190 / at + 7) for at in range(1, 14_001)]
    svg = drawing.difference_chart(points, 2.0, 9000, "Difference <b>", width)
    assert len(svg) < 16_000
    assert svg.count('class="span"') == svg.count('class="zero"') == svg.count('class="decided"') == 1
    assert svg.count('class="limit"') == 2, "plus and minus the margin"
    assert drawing.difference_chart(points, 0.0, 0, "", width).count('class="limit"') == 0
    (line,) = ways(svg)
    height = 190
    assert all(14 <= y <= height - 24 for _, y in line), "early points are held at the edge"
    ((_, last),) = re.findall(r'class="end accent" cx="([\d.]+)" cy="([\d.]+)"', svg)
    zero = float(re.search(r'class="zero" d="M48 ([\d.]+)H', svg).group(1))  # type: ignore[union-attr]
    assert float(last) < zero, "above 0, the first one is better"
    assert "&lt;b&gt;" in svg


def test_a_difference_of_one_item_can_be_drawn() -> None:
    svg = drawing.difference_chart([(60, 50.0, -99.0, 98.0)], 0.0, 60, "")
    (top, bottom), *_ = ways(svg)
    assert top[0] == bottom[0]
    assert bottom[1] - top[1] > 140, "its interval has a height"
