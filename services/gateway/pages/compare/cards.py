"""What stands below the table: head-to-head counts, every pair, cost against quality, speed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from urllib.parse import urlencode

from markupsafe import Markup

from services.gateway.pages.compare import drawing
from services.gateway.pages.compare.differences import Line, Side, Turned, to
from services.gateway.pages.compare.drawing import Point
from services.gateway.pages.compare.view import View
from services.gateway.pages.display import formatting
from services.gateway.reads import values
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2
from touchstone.v1.comparison_pb2 import CompareResponse

_ROWS_IN_SIGHT = 12
"""Tasks whose counts are in sight; further ones unfold."""
_WITHOUT = metric_pb2.JobResult()


@dataclass(frozen=True, slots=True)
class Counts:
    """Items by who has them right, each with the address that lists them; `bar` draws them."""

    title: str
    mine: int
    theirs: int
    mine_address: str
    theirs_address: str
    bar: Markup
    shown: bool = False


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """`figures` are (count, words, address, tone), which add up to `items`."""

    items: int
    figures: Sequence[tuple[int, str, str, str]]
    bar: Markup
    tasks: Sequence[Counts]
    further: Sequence[Counts]


@dataclass(frozen=True, slots=True)
class Cell:
    """Of the matrix: the row's run against the column's. Without a text the pair was not tested."""

    address: str
    text: str = ""
    interval: str = ""
    tip: str = ""
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """`plot` is None with fewer than two runs of known cost; `unpriced` names the runs without one."""

    plot: Markup | None
    unpriced: Sequence[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """How much a run varies by itself, × 100; without figures where there is one run."""

    side: Side
    runs: int
    flips: str = formatting.MISSING
    interval: str = formatting.MISSING
    floor: str = formatting.MISSING


def again_of(sides: Sequence[Side]) -> list[Asked]:
    """Bundled baselines never vary."""
    found = []
    for side in sides:
        again = side.run.again
        if side.run.HasField("again"):
            flips = again.flips
            interval = to((flips.low, flips.high))
            found.append(
                Asked(
                    side, again.runs, formatting.hundredths(flips.share), interval, formatting.hundredths(again.floor)
                )
            )
        elif not side.run.baseline:
            found.append(Asked(side, 1))
    return found


def head_to_head(
    rows: results_service_pb2.ListSideBySideResponse | None, focus: Side, reference: Side, lines: Sequence[Line]
) -> HeadToHead | None:
    """None where nothing is right or wrong."""
    if rows is None or len(rows.runs) != 2:
        return None
    mine, theirs = rows.runs[0].only_right, rows.runs[1].only_right
    items = rows.count_all_right + rows.count_all_wrong + mine + theirs
    if not items:
        return None
    asked = f"{focus.job_id},{reference.job_id}"
    figures = [
        (rows.count_all_right, "both right", _rows_address(asked, "all_right"), "both"),
        (mine, f"only {focus.name} right", _rows_address(asked, "only_right", "A"), focus.tone),
        (theirs, f"only {reference.name} right", _rows_address(asked, "only_right", "B"), reference.tone),
        (rows.count_all_wrong, "both wrong", _rows_address(asked, "all_wrong"), "neither"),
    ]
    titles: dict[str, Line] = {}
    for line in lines:
        titles.setdefault(line.task, line)
    order = {task: place for place, task in enumerate(titles)}
    most = max((max(one.only_right) for one in rows.tasks), default=0)
    tasks = [
        Counts(
            title=titles[one.task].title if one.task in titles else one.task,
            mine=one.only_right[0],
            theirs=one.only_right[1],
            mine_address=_rows_address(asked, "only_right", "A", one.task),
            theirs_address=_rows_address(asked, "only_right", "B", one.task),
            bar=drawing.against_bar(one.only_right[0], one.only_right[1], most, (focus.tone, reference.tone)),
            shown=one.task in titles and titles[one.task].shown,
        )
        for one in sorted(rows.tasks, key=lambda one: (order.get(one.task, len(order)), one.task))
    ]
    several = tasks if len(tasks) > 1 else []
    return HeadToHead(
        items,
        figures,
        drawing.counts_bar([(count, tone) for count, _, _, tone in figures]),
        several[:_ROWS_IN_SIGHT],
        several[_ROWS_IN_SIGHT:],
    )


def _rows_address(job_ids: str, chosen: str, only: str = "", task: str = "") -> str:
    asked = {"filter": chosen, "only": only, "task": task}
    return f"/side-by-side?jobs={job_ids}&{urlencode({name: value for name, value in asked.items() if value})}"


def matrix_of(view: View, found: CompareResponse, sides: Sequence[Side]) -> list[tuple[Side, Sequence[Cell | None]]]:
    """Best first, by the first metric; None on the diagonal."""
    place = {run.job_id: number for number, run in enumerate(found.runs)}
    ordered = sorted(sides, key=lambda side: place[side.job_id])
    cells: dict[tuple[str, str], Cell] = {}
    by_job = {side.job_id: side for side in sides}
    for one in found.differences:
        if not one.task and one.metric == found.metrics[0]:
            for row, column in ((one.a, one.b), (one.b, one.a)):
                cells[row, column] = _cell(view, Turned(one, by_job[row], by_job[column]), row, column)
    for a, b in combinations([side.job_id for side in sides], 2):
        for row, column in ((a, b), (b, a)):
            cells.setdefault((row, column), Cell(view.pair(row, column)))
    return [
        (row, [None if row is column else cells[row.job_id, column.job_id] for column in ordered]) for row in ordered
    ]


def _cell(view: View, turned: Turned, row: str, column: str) -> Cell:
    value, p = turned.value, turned.p
    if value is None:
        return Cell(view.pair(row, column), formatting.MISSING, tip=f"Cannot be compared: {turned.reason}")
    words = f"95 % CI {to(turned.interval)}"
    return Cell(
        view.pair(row, column),
        formatting.change(value),
        to(turned.interval),
        words if p is None else f"{words}, p {formatting.p_value(p)}",
        turned.shown,
    )


def costs_of(results: Mapping[str, metric_pb2.JobResult], sides: Sequence[Side], chief: Sequence[Side]) -> Costs:
    """Cost per 1,000 items against the score on the common items; `chief` are the runs in question."""
    points, unpriced = [], []
    for side in sides:
        cost = cost_per_thousand(results.get(side.job_id, _WITHOUT))
        score = side.run.scores[0] if side.run.scores else metric_pb2.Metric()
        if cost is None or not score.HasField("mean"):
            unpriced.append(side.name)
            continue
        has = score.HasField("ci95_low")
        low, high = (100 * score.ci95_low, 100 * score.ci95_high) if has else (None, None)
        points.append(Point(side.name, cost, 100 * score.mean, low, high, side.slot, side in chief))
    plots = drawing.cost_plot(points) + drawing.cost_plot(points, narrow=True) if len(points) > 1 else None
    return Costs(plots, unpriced)


def cost_per_thousand(result: metric_pb2.JobResult) -> float | None:
    """US dollars per 1,000 of the answers that were called for; None where the cost is 0 or not known."""
    cost = values.cost(result)
    answers = sum(task.items for task in result.tasks) - result.items_reused
    return 1000 * cost / answers if cost and answers > 0 else None


def speed_of(
    jobs: Mapping[str, job_pb2.Job], results: Mapping[str, metric_pb2.JobResult], sides: Sequence[Side]
) -> list[tuple[str, list[str]]]:
    """Rows of figures, one figure per run, as the runs' own pages have them. Rows without any are left out."""
    known = [results.get(side.job_id, _WITHOUT) for side in sides]
    progress = [jobs[side.job_id].progress if side.job_id in jobs else job_pb2.Progress() for side in sides]
    rows = [
        ("Tokens/s", [formatting.rate(one.tokens_per_second) for one in progress]),
        ("Latency p50", [formatting.milliseconds(one.latency_p50_ms) for one in known]),
        ("Latency p95", [formatting.milliseconds(one.latency_p95_ms) for one in known]),
        ("First token p50", [formatting.milliseconds(one.ttft_p50_ms) for one in known]),
        ("Cost of the run", [formatting.cost(one) or formatting.MISSING for one in known]),
    ]
    return [row for row in rows if any(text != formatting.MISSING for text in row[1])]
