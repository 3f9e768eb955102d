"""Server-side SVG: sparklines, score cells on a shared axis, markers. Pure; the text in it is numbers only.

Colours come from the style sheet by class names, so that both themes and the strict CSP are served.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_HEX = "M4.3 0 2.15 3.9-2.15 3.9-4.3 0-2.15-3.9 2.15-3.9Z"
_PLUS = "M-1.5-4.3h3v2.8h2.8v3h-2.8v2.8h-3v-2.8h-2.8v-3h2.8Z"
_CROSS = "M-3.9-2-2-3.9 0-1.9 2-3.9 3.9-2 1.9 0 3.9 2 2 3.9 0 1.9-2 3.9-3.9 2-1.9 0Z"
_DOT = "M-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0Z"
MARKERS = (
    "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0-8.4 0Z",
    "M-3.8-3.8h7.6v7.6h-7.6Z",
    "M0-4.4 4.4 3.6h-8.8Z",
    "M0-5 5 0 0 5-5 0Z",
    "M0 4.4 4.4-3.6h-8.8Z",
    _PLUS,
    _HEX,
    _CROSS,
)
"""One path per colour, drawn around the origin."""


def _markup(text: str) -> Markup:
    # Only numbers and class names of this module are formatted into the text.
    return Markup(text)


def _mark(slot: int, x: float, y: float) -> str:
    shape = MARKERS[slot % 8]
    open_ = " open" if slot >= 8 else ""
    return f'<path class="mark m{slot % 8 + 1}{open_}" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'


def marker(slot: int | None) -> Markup:
    """A configuration's marker next to its name; a grey dash for baselines (None)."""
    inner = _mark(slot, 0, 0) if slot is not None else '<path class="mark none" d="M-4.5-1h9v2h-9Z"/>'
    return _markup(f'<svg class="marker" viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true">{inner}</svg>')


def sparkline(values: Sequence[float], width: int = 100, height: int = 26) -> Markup:
    """A line over equally spaced values with its last point marked; empty for fewer than two."""
    if len(values) < 2:
        return Markup("")
    low, high = min(values), max(values)
    # A flat rate stays flat: noise of a few per cent must not fill the height.
    middle, half = (low + high) / 2, max((high - low) / 2, abs(high) * 0.15, 1e-9)
    step = (width - 6) / (len(values) - 1)
    points = [
        (2 + i * step, 4 + (height * 0.55 - 4) * (1 - (v - middle + half) / (2 * half))) for i, v in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    return _markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        f'<polygon class="area" points="2,{height} {line} {x:.1f},{height}"/><polyline points="{line}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"/></svg>'
    )


def slots(used: int, total: int) -> Markup:
    """The queue's slots as boxes, those in use filled."""
    shown = min(total, 8)
    boxes = "".join(
        f'<rect class="{"used" if i < used else "free"}" x="{i * 9 + 0.5}" y="0.5" width="7" height="11" rx="1.5"/>'
        for i in range(shown)
    )
    size = f'viewBox="0 0 {shown * 9} 12" width="{shown * 9}" height="12"'
    return _markup(f'<svg class="slots" {size} aria-hidden="true">{boxes}</svg>')


def trend_spark(values: Sequence[float], span: float, width: int = 64, height: int = 22) -> Markup:
    """A line over a configuration's scores, oldest first, around their middle. The height holds `span`, which is the
    same for all rows of a table: noise must not look like news. Empty for fewer than two."""
    if len(values) < 2:
        return Markup("")
    middle = (min(values) + max(values)) / 2
    step = (width - 6) / (len(values) - 1)
    places = [(3 + i * step, height / 2 - (v - middle) / span * (height - 6)) for i, v in enumerate(values)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return _markup(
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-hidden="true">'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="2"/></svg>'
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """A shared axis: values × 100 from `low` to `high`, with ticks. Drawings on it are `width` pixels wide; 0 means as
    wide as their cell. Markers at the ends reach over the edge."""

    low: float
    high: float
    ticks: tuple[float, ...]
    width: int = 0

    @classmethod
    def around(cls, values: Sequence[float]) -> Axis:
        """Round ends that hold all values (each × 100), with 3 to 6 ticks."""
        if not values:
            return cls(0, 100, (0, 25, 50, 75, 100))
        low, high = min(values), max(values)
        steps = (1, 2, 5, 10, 20, 25, 50)
        step = next((s for s in steps if math.ceil(high / s) - math.floor(low / s) <= 5), 100)
        first, last = math.floor(low / step) * step, math.ceil(high / step) * step
        last = max(last, first + step * 2)
        count = round((last - first) / step)
        return cls(first, last, tuple(first + i * step for i in range(count + 1)))

    def share(self, value: float) -> float:
        """The place as a share of the width, 0 to 1 within the axis."""
        return (value - self.low) / (self.high - self.low)

    def x(self, value: float) -> str:
        """The place in per cent of the width."""
        return f"{self.share(value) * 100:.2f}%"

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def axis_head(axis: Axis) -> Markup:
    """Tick labels over the column."""
    labels = "".join(f'<text x="{axis.x(t)}" y="11" text-anchor="middle">{_tick(t)}</text>' for t in axis.ticks)
    return _markup(f'<svg class="axis" width="{axis.width or "100%"}" height="15">{labels}</svg>')


def score_cell(
    axis: Axis, value: float | None, low: float | None, high: float | None, slot: int | None, height: int = 34
) -> Markup:
    """An estimate with its interval on the axis (all × 100). Off the axis: an arrow and the value in words."""
    y = height / 2
    if value is None:
        return _cell(axis, height, "")
    if not axis.holds(value):
        left = value < axis.low
        arrow = f"M2 {y}l6-4v8Z" if left else f"M-2 {y}l-6-4v8Z"
        place = f'x="{13 if left else -13}" y="{y + 4}" text-anchor="{"start" if left else "end"}"'
        words = f"<text {place}>{_figure(value)}<tspan class='off-axis'>, off the axis</tspan></text>"
        return _cell(axis, height, _at("0" if left else "100%", f'<path class="off" d="{arrow}"/>{words}'))
    drawn = ""
    if low is not None and high is not None:
        a, b = axis.x(max(low, axis.low)), axis.x(min(high, axis.high))
        caps = "".join(f'<line x1="{end}" x2="{end}" y1="{y - 3}" y2="{y + 3}"/>' for end in (a, b))
        tone = f"m{slot % 8 + 1}" if slot is not None else "none"
        drawn = f'<g class="whisker {tone}">{caps}<line x1="{a}" x2="{b}" y1="{y}" y2="{y}"/></g>'
    if slot is None:
        shape = MARKERS[0] if height > 24 else _DOT
        mark = f'<path class="mark none" transform="translate(0 {y})" d="{shape}"/>'
    else:
        mark = _mark(slot, 0, y)
    return _cell(axis, height, drawn + _at(axis.x(value), mark))


def bounds_cell(axis: Axis, low: float, high: float, height: int = 34) -> Markup:
    """Bounds without an estimate: square brackets joined by dots, no marker; an arrow at an end off the axis."""
    y = height / 2
    if high < axis.low or low > axis.high:
        return score_cell(axis, low if low > axis.high else high, None, None, None, height)
    a, b = axis.x(max(low, axis.low)), axis.x(min(high, axis.high))
    left = _at(a, f'<path class="bracket" d="M3 {y - 5}h-3v10h3"/>')
    right = _at(b, f'<path class="bracket" d="M-3 {y - 5}h3v10h-3"/>')
    if low < axis.low:
        left = _at("0", f'<path class="off" d="M-4 {y}l6-4v8Z"/>')
    if high > axis.high:
        right = _at("100%", f'<path class="off" d="M4 {y}l-6-4v8Z"/>')
    return _cell(axis, height, f'<line class="dots" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>{left}{right}')


def _at(x: str, drawn: str) -> str:
    """A part drawn around a place that is given in per cent."""
    return f'<svg x="{x}" overflow="visible">{drawn}</svg>'


def _cell(axis: Axis, height: int, drawn: str) -> Markup:
    grid = "".join(f'<line class="grid" x1="{axis.x(t)}" x2="{axis.x(t)}" y2="{height}"/>' for t in axis.ticks)
    return _markup(
        f'<svg class="score" width="{axis.width or "100%"}" height="{height}" aria-hidden="true">{grid}{drawn}</svg>'
    )


def _tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _figure(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")
