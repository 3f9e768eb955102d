"""Charts of a decision over the items: the evidence, the forecast, and the difference. Pure.

The text in them is numbers only, and colours come from the style sheet by class names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from services.gateway.pages.display import formatting
from services.gateway.pages.display.charts import Axis

WIDE, NARROW = 880, 330
"""Pixels of the two drawings of each chart: on a phone, the narrow one keeps its texts legible."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 14, 24
_STRETCHES = {WIDE: 150, NARROW: 75}
"""Stretches of the items in each of which a line has at most two points."""
_FLOOR = -2.0
"""Powers of ten. Of less evidence it does not matter how little it is: lines run along the edge."""
_OVER = 1.5
"""Evidence far above the limit is drawn at this many times the limit's logarithm."""
_EARLY = 5
"""The first fifth of a difference's intervals may reach over the edges."""
_MOST_TICKS = 5
_TICK_GAP, _GAP_AT_EDGE = 46, 72
"""Pixels between the places of two numbers below the axis. At the right edge, a number stands left of its place."""
_EDGE = 30
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

Points = Sequence[tuple[float, float]]
"""(items, value), oldest first."""
Spans = Sequence[tuple[float, float, float, float]]
"""(items, value, low, high), oldest first."""


@dataclass(frozen=True, slots=True)
class Line:
    """What speaks for one claim, as natural logarithms. `tone` is a class of the style sheet."""

    tone: str
    points: Points


def thinned(points: Points, stretches: int) -> Points:
    """The first and the last point, and of each stretch of points the lowest and the highest: at most 2 × `stretches`
    + 2, however many there are."""
    if len(points) <= 2 * stretches + 2:
        return points
    size = math.ceil((len(points) - 2) / stretches)
    kept = [points[0]]
    for first in range(1, len(points) - 1, size):
        part = points[first : min(first + size, len(points) - 1)]
        kept += sorted({min(part, key=lambda one: one[1]), max(part, key=lambda one: one[1])})
    return [*kept, points[-1]]


def evidence_chart(lines: Sequence[Line], limit: float, decided: int, about: str, width: int = WIDE) -> Markup:
    """The evidence on a logarithmic scale, with the `limit` at which a claim is accepted, also as a natural logarithm,
    and where that was, `decided`; 0 for nowhere."""
    threshold = limit / math.log(10)
    ways = [[(at, _held(value, threshold)) for at, value in thinned(line.points, _STRETCHES[width])] for line in lines]
    values = [value for way in ways for _, value in way]
    low, high = min([-1.0, *values]), max([threshold * 1.15, *values])
    plot = _Plot(width, 260 if width == WIDE else 220, _items(ways), math.floor(low), high)
    step = math.ceil((plot.high - plot.low) / _MOST_TICKS)
    ticks = range(math.ceil(plot.low / step), math.floor(plot.high / step) + 1)
    drawn = [plot.rule(tick * step, _times(tick * step)) for tick in ticks]
    drawn += [plot.numbers(decided), plot.upright(decided), plot.limit(threshold, f"{_whole(math.exp(limit))} times")]
    drawn += [plot.way(way, line.tone) for way, line in zip(ways, lines, strict=True)]
    return plot.svg("evidence", drawn, about)


def chance_chart(points: Points, unlikely: float, decided: int, about: str, width: int = WIDE) -> Markup:
    """The chance that all items would show anything, from 0 to 1, and the one below which they are not asked."""
    way = thinned(points, _STRETCHES[width])
    plot = _Plot(width, 136, _items([way]), 0, 1)
    drawn = [plot.rule(share, f"{100 * share:.0f} %") for share in (0, 0.5, 1)]
    drawn += [plot.numbers(decided), plot.upright(decided), plot.limit(unlikely, f"{100 * unlikely:g} %")]
    return plot.svg("chance", [*drawn, plot.way(way, "accent")], about)


def difference_chart(points: Spans, margin: float, decided: int, about: str, width: int = WIDE) -> Markup:
    """The difference with its interval, in hundredths, with lines at 0 and on both sides at the `margin`, if any."""
    kept = {at for at, _ in thinned([(at, difference) for at, difference, _, _ in points], _STRETCHES[width])}
    shown = [point for point in points if point[0] in kept]
    # The first items say next to nothing. With all of their interval, the rest would be too small to see.
    late = shown[len(shown) // _EARLY :]
    axis = Axis.around([end for _, _, low, high in late for end in (low, high)] + [0.0, margin, -margin])
    plot = _Plot(width, 190, _items([[(at, value) for at, value, _, _ in shown]]), axis.low, axis.high)
    upper = [(at, plot.held(high)) for at, _, _, high in shown]
    lower = [(at, plot.held(low)) for at, _, low, _ in shown]
    drawn = [plot.rule(tick, _signed(tick)) for tick in axis.ticks]
    drawn += [plot.numbers(decided), f'<path class="span" d="{plot.path([*upper, *reversed(lower)])}Z"/>']
    drawn += [plot.line(side * margin, "limit") for side in (1, -1) if margin]
    drawn += [plot.line(0, "zero"), plot.upright(decided)]
    if len(shown) == 1:
        # An area over one place has no width.
        drawn.append(f'<path class="way accent" d="{plot.path([*upper, *lower])}"/>')
    drawn.append(plot.way([(at, plot.held(value)) for at, value, _, _ in shown], "accent"))
    return plot.svg("difference", drawn, about)


def swatch(tone: str) -> Markup:
    """A piece of a line, for the legend."""
    return Markup(
        f'<svg class="swatch" viewBox="0 0 18 8" width="18" height="8" aria-hidden="true">'
        f'<path class="way {escape(tone)}" d="M0 4H18"/></svg>'
    )


def _signed(value: float) -> str:
    return f"{value:+g}".replace("-", "−") if value else "0"


def _held(value: float, threshold: float) -> float:
    return min(max(value / math.log(10), _FLOOR), _OVER * threshold)


def _items(ways: Sequence[Points]) -> float:
    return max((at for way in ways for at, _ in way), default=1)


def _whole(value: float) -> str:
    return formatting.number(round(value))


def _times(power: int) -> str:
    """1/10, 1, 100, 10⁵."""
    if abs(power) > 4:
        return f"10{str(power).translate(_SUPERSCRIPTS)}"
    return f"{10**power:,}" if power >= 0 else f"1/{10**-power:,}"


@dataclass(frozen=True, slots=True)
class _Plot:
    """A frame of `width` × `height` pixels with items from 0 to the right, and values from `low` to `high` upwards."""

    width: int
    height: int
    items: float
    low: float
    high: float

    def x(self, at: float) -> float:
        return _LEFT + at / max(self.items, 1) * (self.width - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        span = self.height - _TOP - _BOTTOM
        return _TOP + (self.high - value) / (self.high - self.low) * span

    def held(self, value: float) -> float:
        """At the edge, if it is outside."""
        return min(max(value, self.low), self.high)

    def path(self, points: Points) -> str:
        return "M" + "L".join(f"{self.x(at):.1f} {self.y(value):.1f}" for at, value in points) if points else ""

    def rule(self, value: float, words: str) -> str:
        y = self.y(value)
        return (
            f'<path class="grid" d="M{_LEFT} {y:.1f}H{self.width - _RIGHT}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{words}</text>'
        )

    def line(self, value: float, kind: str) -> str:
        return f'<path class="{kind}" d="M{_LEFT} {self.y(value):.1f}H{self.width - _RIGHT}"/>'

    def limit(self, value: float, words: str) -> str:
        """What a line must pass."""
        text = f'<text class="limit" x="{_LEFT + 6}" y="{self.y(value) - 5:.1f}">{words}</text>'
        return self.line(value, "limit") + text

    def upright(self, decided: int) -> str:
        """Where it was decided; nothing for 0."""
        return f'<path class="decided" d="M{self.x(decided):.1f} {_TOP}V{self.height - _BOTTOM}"/>' if decided else ""

    def numbers(self, decided: int) -> str:
        """Numbers of items below the axis, among them that of the decision."""
        step = _step(self.items, 5 if self.width >= 2 * NARROW else 3)
        places = dict.fromkeys(range(0, math.floor(self.items) + 1, step), "")
        if decided:
            gap = _GAP_AT_EDGE if self._is_at_edge(decided) else _TICK_GAP
            apart = [at for at in places if abs(self.x(at) - self.x(decided)) >= gap]
            places = dict.fromkeys(apart, "") | {decided: ' class="chief"'}
        return "".join(self._number(at, kind) for at, kind in places.items())

    def _is_at_edge(self, at: float) -> bool:
        return self.x(at) > self.width - _EDGE

    def _number(self, at: int, kind: str) -> str:
        x, floor = self.x(at), self.height - _BOTTOM
        edge = "end" if self._is_at_edge(at) else "middle"
        return (
            f'<path class="tick" d="M{x:.1f} {floor}v4"/>'
            f'<text{kind} x="{x:.1f}" y="{floor + 17}" text-anchor="{edge}">{_whole(at)}</text>'
        )

    def way(self, points: Points, tone: str) -> str:
        """A line with a dot at its end."""
        if not points:
            return ""
        at, value = points[-1]
        return (
            f'<path class="way {escape(tone)}" d="{self.path(points)}"/>'
            f'<circle class="end {escape(tone)}" cx="{self.x(at):.1f}" cy="{self.y(value):.1f}" r="3"/>'
        )

    def svg(self, kind: str, drawn: Sequence[str], about: str) -> Markup:
        # Only numbers, class names and the escaped description are formatted into the text.
        size = "narrow" if self.width == NARROW else "wide"
        return Markup(
            f'<svg class="course {kind} {size}" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" role="img" aria-label="{escape(about)}">{"".join(drawn)}</svg>'
        )


def _step(most: float, ticks: int) -> int:
    """The smallest of 1, 2 and 5 times a power of ten that comes at most `ticks` times."""
    power: int = 10 ** max(0, math.floor(math.log10(max(most, 1))) - 1)
    return next(step * power for step in (1, 2, 5, 10, 20, 50, 100) if most / (step * power) <= ticks)
