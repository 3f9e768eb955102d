"""Scores over time as server-side SVG: a line and an interval band per configuration, labels at the lines' ends.

Pure. Colours come from the style sheet by class names. Labels are escaped; everything else is numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from services.gateway.pages.display.charts import MARKERS, Axis

LEAST_SPAN_S = 60.0
LABEL_GAP = 16
"""Pixels between the base lines of two labels."""
LONGEST_LABEL = 20
_STEPS_S = (
    60,
    120,
    300,
    600,
    1800,
    3600,
    2 * 3600,
    4 * 3600,
    6 * 3600,
    12 * 3600,
    *(86_400 * days for days in (1, 2, 4, 7, 14, 30)),
)
_MOST_TICKS = 6
_DASHES = ("", "7 3", "2 3")


@dataclass(frozen=True, slots=True)
class Point:
    """A run: seconds since 1970, its score and interval × 100, and the number of its row in the table."""

    at: float
    value: float
    low: float | None
    high: float | None
    row: int


@dataclass(frozen=True, slots=True)
class Line:
    """One configuration's runs, oldest first. `slot` is None for baselines. Lines of one slot differ in `dash`."""

    label: str
    slot: int | None
    points: Sequence[Point]
    dash: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot's place in a drawing `width` × `height` pixels, and its scales."""

    width: int
    height: int
    left: int
    right: int
    start: float
    end: float
    axis: Axis

    @classmethod
    def around(cls, lines: Sequence[Line], width: int, height: int, right: int) -> Frame:
        """Holds every point with its interval. `right` pixels are left free for labels."""
        points = [point for line in lines for point in line.points]
        ends = [end for p in points for end in (p.value, p.low, p.high) if end is not None]
        first, last = min(p.at for p in points), max(p.at for p in points)
        spare = max(0.0, LEAST_SPAN_S - (last - first)) / 2
        return cls(width, height, 36, right, first - spare, last + spare, Axis.around(ends))

    def x(self, at: float) -> float:
        inner = self.width - self.right - self.left - 20
        return self.left + 10 + (at - self.start) / (self.end - self.start) * inner

    def y(self, value: float) -> float:
        top, bottom = 10, self.height - 26
        return bottom - (value - self.axis.low) / (self.axis.high - self.axis.low) * (bottom - top)


def trend_chart(
    lines: Sequence[Line], about: str, *, width: int, height: int, labels: int = 0, kind: str = ""
) -> Markup:
    """The chart, with `labels` pixels at the right for the lines' names; none if that is 0. Empty without a point.

    Every point names the row of the table that says the same in words (`data-run`): a script shows it as a tooltip.
    """
    if not any(line.points for line in lines):
        return Markup("")
    frame = Frame.around(lines, width, height, labels or 12)
    drawn = "".join(_line(frame, line) for line in lines)
    names = _names(frame, lines) if labels else ""
    # Only numbers, class names of this module and escaped texts are formatted into the text.
    return Markup(
        f'<svg class="trend {escape(kind)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'tabindex="0" role="img" aria-label="{escape(about)}">{_grid(frame)}'
        f'<line class="guide" x1="0" x2="0" y1="10" y2="{height - 26}"/>{drawn}{names}</svg>'
    )


def _grid(frame: Frame) -> str:
    floor, edge = frame.height - 26, frame.width - frame.right
    rules = "".join(
        f'<path class="grid" d="M{frame.left} {frame.y(tick):.1f}H{edge}"/>'
        f'<text x="{frame.left - 8}" y="{frame.y(tick) + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
        for tick in frame.axis.ticks
    )
    times = "".join(
        f'<path class="tick" d="M{frame.x(at):.1f} {floor}v4"/>'
        f'<text x="{frame.x(at):.1f}" y="{floor + 18}" text-anchor="middle">{words}</text>'
        for at, words in time_ticks(frame.start, frame.end, 4 if frame.width < 500 else _MOST_TICKS)
    )
    return f'{rules}<path class="tick" d="M{frame.left} {floor}H{edge}"/>{times}'


def time_ticks(start: float, end: float, most: int = _MOST_TICKS) -> list[tuple[float, str]]:
    """At most `most` round times in the span, each in words (UTC): "14:05" within two days, else "7 Nov"."""
    step = next((one for one in _STEPS_S if (end - start) / one <= most - 1), 0)
    if not step:
        step = math.ceil((end - start) / (most - 1) / 86_400) * 86_400
    first = math.ceil(start / step) * step
    found = []
    for place in range(most):
        at = first + place * step
        if at <= end:
            when = datetime.fromtimestamp(at, UTC)
            found.append((float(at), f"{when:%H:%M}" if end - start < 2 * 86_400 else f"{when.day} {when:%b}"))
    return found


def _line(frame: Frame, line: Line) -> str:
    tone = "none" if line.slot is None else f"m{line.slot % 8 + 1}"
    open_ = line.slot is not None and line.slot >= 8
    dash = _DASHES[line.dash % len(_DASHES)] or ("4 3" if open_ else "")
    places = [(frame.x(point.at), frame.y(point.value)) for point in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    stroke = f'<polyline points="{path}"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>'
    shape = MARKERS[(line.slot or 0) % 8]
    marks = "".join(
        f'<path class="mark {tone}{" open" if open_ else ""}" data-run="{point.row}" '
        f'transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'
        for point, (x, y) in zip(line.points, places, strict=True)
    )
    return f'<g class="line {tone}">{_band(frame, line)}{stroke}{marks}</g>'


def _band(frame: Frame, line: Line) -> str:
    """The intervals as one area; of a single run as a whisker."""
    known = [
        (frame.x(p.at), frame.y(p.low), frame.y(p.high))
        for p in line.points
        if p.low is not None and p.high is not None
    ]
    if len(known) == 1:
        ((x, low, high),) = known
        caps = f"M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6M{x:.1f} {low:.1f}V{high:.1f}"
        return f'<path class="whisker" d="{caps}"/>'
    around = [f"{x:.1f},{high:.1f}" for x, _, high in known] + [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(known)]
    return f'<polygon class="band" points="{" ".join(around)}"/>' if known else ""


def _names(frame: Frame, lines: Sequence[Line]) -> str:
    shown = [line for line in lines if line.points]
    places = pushed_apart([frame.y(line.points[-1].value) for line in shown], LABEL_GAP, 10, frame.height - 26)
    x = frame.width - frame.right + 14
    drawn = ""
    for line, y in zip(shown, places, strict=True):
        tone = "none" if line.slot is None else f"m{line.slot % 8 + 1}{' open' if line.slot >= 8 else ''}"
        name = line.label if len(line.label) <= LONGEST_LABEL else f"{line.label[: LONGEST_LABEL - 1]}…"
        drawn += (
            f'<path class="mark {tone}" transform="translate({x} {y:.1f})" d="{MARKERS[(line.slot or 0) % 8]}"/>'
            f'<text class="name" x="{x + 10}" y="{y + 4:.1f}">{escape(name)}</text>'
            f'<text x="{frame.width - 4}" y="{y + 4:.1f}" text-anchor="end">{_number(line.points[-1].value, 1)}</text>'
        )
    return f'<g class="names" aria-hidden="true">{drawn}</g>'


def pushed_apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near as possible to those wanted, in their order, `gap` apart, between `low` and `high` if there is
    room."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    placed: list[float] = []
    for index in order:
        placed.append(max(min(max(wanted[index], low), high), placed[-1] + gap if placed else low))
    # What was pushed below the end goes back up, as far as the first ones leave room.
    limit = max(high, low + gap * (len(placed) - 1))
    for place in range(len(placed) - 1, -1, -1):
        placed[place] = min(placed[place], limit)
        limit = placed[place] - gap
    found = [0.0] * len(wanted)
    for index, y in zip(order, placed, strict=True):
        found[index] = y
    return found


def _number(value: float, decimals: int | None = None) -> str:
    return (f"{value:g}" if decimals is None else f"{value:.{decimals}f}").replace("-", "−")
