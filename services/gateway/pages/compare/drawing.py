"""SVG of the compare page: differences on a shared axis, counts as bars, cost against quality. Pure.

Text in it is numbers and escaped names; colours come from the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup, escape

from services.gateway.pages.display import formatting
from services.gateway.pages.display.charts import MARKERS, Axis

WIDTH = 300
"""Pixels of the column with the differences."""
_DIAMOND = 5.0
"""Half the height of the diamond of the suite."""
_BAR = 430
_SMALL_BAR = 84
_PLOT, _NARROW_PLOT = (460, 226), (320, 240)
_LONGEST, _LONGEST_NARROW = 26, 20
"""Characters of a name that a plot has room for."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 20, 16, 24
_LEAST_GAP = 13
"""Pixels between the names of two points."""


def axis_of(ends: Sequence[float]) -> Axis:
    """Holds zero and the ends of all intervals (each × 100)."""
    return replace(Axis.around([0.0, *ends]), width=WIDTH)


def _x(axis: Axis, value: float) -> float:
    """The place in pixels; what is off the axis is at its end."""
    return WIDTH * min(max(axis.share(value), 0), 1)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A difference × 100 with its interval; `reach` is the smallest difference that the items can show. `slot` is the
    better run's, None where no difference is shown."""

    value: float
    low: float | None
    high: float | None
    reach: float | None
    slot: int | None


def difference_cell(axis: Axis, drawn: Drawn | None, *, whole: bool = False) -> Markup:
    """One row of the table. The suite's own difference, `whole`, is a diamond as wide as its interval."""
    height = 36 if whole else 29
    y = height / 2
    lines = "".join(f"M{_x(axis, tick):.1f} 0V{height}" for tick in axis.ticks if tick)
    parts = [f'<path class="grid" d="{lines}"/>']
    if drawn is not None and drawn.reach is not None and not whole:
        left, right = (_x(axis, end) for end in (-drawn.reach, drawn.reach))
        parts.append(f'<rect class="reach" x="{left:.1f}" y="{y - 7}" width="{right - left:.1f}" height="14"/>')
    parts.append(f'<path class="zero" d="M{_x(axis, 0):.1f} 0V{height}"/>')
    if drawn is not None:
        parts.append(_diamond(axis, drawn, y) if whole else _whisker(axis, drawn, y))
    return _svg("difference", axis.width, height, "".join(parts))


def _whisker(axis: Axis, drawn: Drawn, y: float) -> str:
    tone = "none" if drawn.slot is None else f"m{drawn.slot % 8 + 1}"
    line = ""
    if drawn.low is not None and drawn.high is not None:
        a, b = _x(axis, drawn.low), _x(axis, drawn.high)
        line = f'<path class="whisker {tone}" d="M{a:.1f} {y - 3}v6M{b:.1f} {y - 3}v6M{a:.1f} {y}H{b:.1f}"/>'
    x = _x(axis, drawn.value)
    shape = MARKERS[0] if drawn.slot is None else MARKERS[drawn.slot % 8]
    hollow = " open" if drawn.slot is None or drawn.slot >= 8 else ""
    return f'{line}<path class="mark {tone}{hollow}" transform="translate({x:.1f} {y})" d="{shape}"/>'


def _diamond(axis: Axis, drawn: Drawn, y: float) -> str:
    low = drawn.value if drawn.low is None else drawn.low
    high = drawn.value if drawn.high is None else drawn.high
    a, x, b = (_x(axis, end) for end in (low, drawn.value, high))
    tone = "none open" if drawn.slot is None else f"m{drawn.slot % 8 + 1}"
    path = f"M{a:.1f} {y}L{x:.1f} {y - _DIAMOND}L{b:.1f} {y}L{x:.1f} {y + _DIAMOND}Z"
    return f'<path class="mark {tone}" d="{path}"/>'


def counts_bar(parts: Sequence[tuple[int, str]]) -> Markup:
    """Counts as parts of one bar, each with its class; a part that is not 0 is at least 2 pixels wide."""
    total = sum(count for count, _ in parts) or 1
    room = _BAR - 2 * (len(parts) - 1)
    x, drawn = 0.0, ""
    for count, tone in parts:
        width = max(2.0, room * count / total) if count else 0.0
        drawn += f'<rect class="{tone}" x="{x:.1f}" y="0" width="{width:.1f}" height="18" rx="1"/>' if count else ""
        x += width + (2 if count else 0)
    return Markup(
        f'<svg class="counts" viewBox="0 0 {_BAR} 18" preserveAspectRatio="none" width="{_BAR}" height="18" '
        f'aria-hidden="true">{drawn}</svg>'
    )


def against_bar(left: int, right: int, most: int, tones: tuple[str, str]) -> Markup:
    """Two counts from the middle outwards; `most` is the largest of all rows."""
    half = (_SMALL_BAR - 2) / 2
    a, b = (half * count / max(most, 1) for count in (left, right))
    drawn = (
        f'<rect class="{tones[0]}" x="{half - a:.1f}" y="4" width="{a:.1f}" height="8" rx="1"/>'
        f'<rect class="{tones[1]}" x="{half + 2:.1f}" y="4" width="{b:.1f}" height="8" rx="1"/>'
    )
    return _svg("against", _SMALL_BAR, 16, drawn)


@dataclass(frozen=True, slots=True)
class Point:
    """A run's cost per 1,000 items in US dollars, above 0, and its score × 100 with the interval. `chief` is one of the
    two in question."""

    name: str
    cost: float
    score: float
    low: float | None
    high: float | None
    slot: int | None
    chief: bool = True


def front(points: Sequence[Point]) -> list[Point]:
    """The points that none beats by both cost and score, cheapest first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost, -one.score)):
        if not found or point.score > found[-1].score:
            found.append(point)
    return found


def cost_plot(points: Sequence[Point], *, narrow: bool = False) -> Markup:
    """Cost on a logarithmic axis, quality upwards with vertical intervals, the front as dashed steps. On a phone the
    `narrow` one keeps its texts legible."""
    width, height = _NARROW_PLOT if narrow else _PLOT
    longest = _LONGEST_NARROW if narrow else _LONGEST
    vertical = Axis.around([end for one in points for end in (one.score, one.low, one.high) if end is not None])
    ticks, low, high = _cost_ticks([one.cost for one in points])

    def x(cost: float) -> float:
        return _LEFT + 22 + (math.log(cost) - low) / (high - low) * (width - _LEFT - _RIGHT - 44)

    def y(score: float) -> float:
        span = height - _TOP - _BOTTOM
        return _TOP + (vertical.high - score) / (vertical.high - vertical.low) * span

    parts = []
    for tick in vertical.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {y(tick):.1f}H{width - 4}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for cost in ticks[:: 2 if narrow and len(ticks) > 4 else 1]:
        parts.append(f'<path class="tick" d="M{x(cost):.1f} {height - _BOTTOM}v4"/>')
        words = f"${formatting.dollars(cost)}"
        parts.append(f'<text x="{x(cost):.1f}" y="{height - 6}" text-anchor="middle">{words}</text>')
    steps = "".join(f"H{x(b.cost):.1f}V{y(b.score):.1f}" for _, b in pairwise(front(points)))
    if steps:
        first = front(points)[0]
        parts.append(f'<path class="front" d="M{x(first.cost):.1f} {y(first.score):.1f}{steps}"/>')
    places = _labels([(x(one.cost), y(one.score), one.name) for one in points], width)
    for one, (label_x, label_y, anchor) in zip(points, places, strict=True):
        parts.append(_point(one, x(one.cost), y(one.score), y))
        bold = ' class="chief"' if one.chief else ""
        name = one.name if len(one.name) <= longest else f"{one.name[: longest - 1]}…"
        parts.append(f'<text{bold} x="{label_x:.1f}" y="{label_y:.1f}" text-anchor="{anchor}">{escape(name)}</text>')
    about = "Cost per 1,000 items against the score"
    return _svg("plot narrow" if narrow else "plot wide", width, height, "".join(parts), about)


def _point(one: Point, x: float, y: float, scale: Callable[[float], float]) -> str:
    tone = "none" if one.slot is None else f"m{one.slot % 8 + 1}"
    line = ""
    if one.low is not None and one.high is not None:
        line = f'<path class="whisker {tone}" d="M{x:.1f} {scale(one.high):.1f}V{scale(one.low):.1f}"/>'
    hollow = " open" if one.slot is None or one.slot >= 8 else ""
    shape = MARKERS[0] if one.slot is None else MARKERS[one.slot % 8]
    mark = f'<path class="mark {tone}{hollow}" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'
    dim = "" if one.chief else ' class="other"'
    return f"<g{dim}>{line}{mark}</g>"


def _labels(points: Sequence[tuple[float, float, str]], width: int) -> list[tuple[float, float, str]]:
    """x, y and anchor of each name: at the side of its point with more room, apart from the names above it."""
    taken: list[float] = []
    found: dict[int, tuple[float, float, str]] = {}
    for place in sorted(range(len(points)), key=lambda one: points[one][1]):
        x, y, _ = points[place]
        y -= 6
        while any(abs(y - other) < _LEAST_GAP for other in taken):
            y += 2
        taken.append(y)
        found[place] = (x + 9, y, "start") if x < width * 0.62 else (x - 9, y, "end")
    return [found[place] for place in range(len(points))]


def _cost_ticks(costs: Sequence[float]) -> tuple[list[float], float, float]:
    """Ticks at 1, 2 and 5 of each power of ten within the range, and the ends of its logarithms; at most six."""
    low, high = math.log(min(costs)), math.log(max(costs))
    if high - low < 1:
        low, high = (low + high) / 2 - 0.6, (low + high) / 2 + 0.6
    powers = range(math.floor(low / math.log(10)) - 1, math.ceil(high / math.log(10)) + 1)
    for steps in ((1, 2, 5), (1, 5), (1,)):
        ticks = [step * 10.0**power for power in powers for step in steps]
        inside = [tick for tick in ticks if low - 1e-9 <= math.log(tick) <= high + 1e-9]
        if len(inside) <= 6:
            break
    return inside[:: max(1, len(inside) // 6)], low, high


def _svg(name: str, width: float, height: float, inner: str, about: str = "") -> Markup:
    # Only numbers, class names of this module and escaped names are in the text.
    hide = f' role="img" aria-label="{about}"' if about else ' aria-hidden="true"'
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return Markup(f'<svg class="{name}" {size}{hide}>{inner}</svg>')
