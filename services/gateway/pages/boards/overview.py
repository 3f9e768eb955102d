"""The overview page: what ran lately, how scores moved, what runs and waits now. And all of it as a file."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.http.responses import CSV, JSONResponse, csv_of
from services.gateway.pages.boards.leaderboard import Offer, metrics_of
from services.gateway.pages.display import formatting, palette
from services.gateway.pages.display.trend_chart import Line, Point, trend_chart
from services.gateway.pages.jobs.history import JobRow, job_rows
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.pages.operations.queue import starts
from services.gateway.reads import datasets, jobs
from services.gateway.reads.questions import require_known
from services.words.enums import mode_name
from services.words.jobs import status_of, suite_of
from touchstone.v1 import evaluator_pb2, job_pb2, queue_pb2, results_service_pb2, suite_pb2

LEAST_DAYS, MOST_DAYS, USUAL_DAYS = 1, 90, 30
USUAL_METRIC = "accuracy"
RECENT = 12
_WAITING = 6
"""Waiting jobs in sight; the Queue page has them all."""
SERIES = 8
"""Lines in the chart: those with the newest runs."""
_MOST_SERIES = 64
"""That are asked for where baselines have most of the newest runs."""
RUNS_A_LINE = 60
_LIKELY_MODE = suite_pb2.MODE_GENERATE
"""Of the trends: these are asked for while the service finds out which mode has the most runs."""
_USUAL_METRICS = ("accuracy", "f1", "score")


@dataclass(frozen=True, slots=True)
class View:
    """The choices in the address. `problem` says which one was not taken, and what can be."""

    suite: str
    metric: str
    days: int
    problem: str = ""

    @classmethod
    def of(cls, query: QueryParams) -> View:
        written = query.get("days", "").strip()
        days = int(written) if written.isdecimal() and len(written) < 4 else 0
        wrong = written and not LEAST_DAYS <= days <= MOST_DAYS
        return cls(
            suite=query.get("suite", ""),
            metric=query.get("metric") or USUAL_METRIC,
            days=days if written and not wrong else USUAL_DAYS,
            problem=f"Days back must be between {LEAST_DAYS} and {MOST_DAYS}." if wrong else "",
        )

    def address(self, path: str = "/overview", **more: str) -> str:
        """The page, or what belongs to it, with these choices."""
        return f"{path}?" + urlencode({"suite": self.suite, "metric": self.metric, "days": str(self.days)} | more)

    @property
    def created_after(self) -> datetime:
        """At a whole minute, so that equal requests within it get one answer."""
        return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(days=self.days)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the services answer. `charted` is the suite of the trends: scores of several suites have no common axis."""

    overview: results_service_pb2.GetOverviewResponse
    listed: Sequence[job_pb2.Job]
    scores: Sequence[results_service_pb2.JobScores]
    charted: str
    mode: suite_pb2.Mode
    trends: Sequence[results_service_pb2.Trend]
    queue: queue_pb2.Queue | None
    evaluators: Sequence[evaluator_pb2.Evaluator]

    @property
    def version(self) -> str:
        """Changes with the runs of the chart."""
        text = "".join(point.job_id for trend in self.trends for point in trend.points)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


async def overview(request: Request) -> Response:
    """The page; the form that its filters replace; or, with `part=live`, the panels that change by themselves."""
    view = View.of(request.query_params)
    offer = await Offer.of(context.of(request).catalogue)
    figures, view = await _asked(request, view)
    values = _choices(view, offer) | {"view": view, "drawn": figures.version if figures else ""}
    values["suite_title"] = await _title(request, view.suite, offer)
    if figures is None:
        status = 400
    else:
        status = 200
        values |= {"charted": await _title(request, figures.charted, offer), **_shown(view, figures, offer)}
    values["figures"] = figures
    if is_fragment(request) and request.query_params.get("part") == "live" and figures is not None:
        values["redraw"] = figures.version != request.query_params.get("drawn")
        return fragment(request, "overview/_live.html", values)
    if is_fragment(request):
        return fragment(request, "overview/_overview.html", values)
    return await render(request, "overview/index.html", "overview", values, status)


async def home(request: Request) -> Response:
    """Redirects to the overview once anything was started, else to the page that starts jobs."""
    ctx, caller = context.of(request), context.identity(request)
    call = results_service_pb2.ResultsServiceListJobsRequest(page_size=1, without_counts=True)
    try:
        started = bool((await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)).jobs)
    except TouchstoneError:
        started = False
    return RedirectResponse("/overview" if started else "/run", 303)


async def export(request: Request) -> Response:
    """What the page shows, as a file: all of it as JSON, its jobs as CSV. Raises InvalidRequestError."""
    view = View.of(request.query_params)
    figures, view = await _asked(request, view)
    if view.problem or figures is None:
        raise InvalidRequestError(view.problem)
    rows = [exported(row) for row in job_rows(figures.listed, figures.scores)]
    if request.query_params.get("format") == "json":
        return JSONResponse(
            {"suite": view.suite, "metric": view.metric, "days": view.days, **_cards(figures), "jobs": rows},
            headers={"Content-Disposition": 'attachment; filename="touchstone-overview.json"'},
        )
    headers = {"Content-Disposition": 'attachment; filename="touchstone-overview.csv"'}
    return Response(csv_of(rows), media_type=CSV, headers=headers)


def exported(row: JobRow) -> dict[str, Any]:
    """A job of the table with REST's names and values; no estimate where the page shows none."""
    job = row.job
    return {
        "job_id": job.job_id,
        "model_name": job.spec.model,
        "provider": job.spec.endpoint,
        "benchmark_suite": suite_of(job.spec),
        "mode": mode_name(job.spec.mode),
        "status": status_of(job.state),
        "created_at": jobs.iso(job.created_at),
        "completed_at": jobs.iso(job.finished_at),
        "accuracy": row.accuracy.value,
        "f1": row.f1.value,
        "score": row.score.value,
        "score_interval": row.score.interval or None,
        "not_ranked_reason": row.why or None,
    }


async def _asked(request: Request, view: View) -> tuple[Figures | None, View]:
    """None for a suite or a metric that does not exist; the view then says so."""
    ctx, caller = context.of(request), context.identity(request)
    totals = results_service_pb2.GetOverviewRequest(suite=view.suite, days=view.days, metric=view.metric)
    listing = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=RECENT, suite=view.suite, with_scores=True, without_counts=True
    )
    listing.created_after.FromDatetime(view.created_after)
    await jobs.settle(ctx.backend, caller)
    try:
        found, listed, likely, queue, evaluators = await asyncio.gather(
            ctx.backend.ask(ctx.backend.results.GetOverview, totals, caller),
            ctx.backend.ask(ctx.backend.results.ListJobs, listing, caller),
            _trends(request, view, _LIKELY_MODE) if view.suite else _nothing(),
            _queue(request),
            _evaluators(request),
        )
        if not found.means and view.suite:
            await require_known(ctx.catalogue, view.suite, view.metric)
    except InvalidRequestError as error:
        return None, View(view.suite, view.metric, view.days, error.message)
    recent, fresh = await jobs.current(ctx.backend, listing, listed.jobs, caller, RECENT)
    found.total_jobs += fresh
    means = found.means[0] if found.means else results_service_pb2.OverviewMean(suite=view.suite)
    if means.suite and (means.suite, means.mode or _LIKELY_MODE) != (view.suite, _LIKELY_MODE):
        trends = await _trends(request, view, means.mode, means.suite)
    else:
        trends = likely
    return Figures(found, recent[:RECENT], listed.scores, means.suite, means.mode, trends, queue, evaluators), view


async def _nothing() -> Sequence[results_service_pb2.Trend]:
    return []


async def _trends(
    request: Request, view: View, mode: suite_pb2.Mode, suite: str = ""
) -> Sequence[results_service_pb2.Trend]:
    """The models' lines with the newest runs; the baselines' where there is nothing else. Of the chosen suite unless
    another one is given."""
    ctx = context.of(request)
    for limit in (2 * SERIES, _MOST_SERIES):
        call = results_service_pb2.ListTrendsRequest(
            suite=suite or view.suite, metric=view.metric, days=view.days, mode=mode, limit=limit, points=RUNS_A_LINE
        )
        found = (await ctx.backend.ask(ctx.backend.results.ListTrends, call, context.identity(request))).trends
        scored = [trend for trend in found if any(map(_is_estimate, trend.points))]
        if len(found) < limit or sum(not trend.baseline for trend in scored) >= SERIES:
            break
    scored.sort(key=lambda trend: -trend.points[-1].completed_at.ToNanoseconds())
    return ([trend for trend in scored if not trend.baseline] or scored)[:SERIES]


async def _queue(request: Request) -> queue_pb2.Queue | None:
    try:
        return await context.of(request).catalogue.queue()
    except TouchstoneError:
        return None


async def _evaluators(request: Request) -> Sequence[evaluator_pb2.Evaluator]:
    try:
        return [one for one in await context.of(request).catalogue.evaluators() if one.live]
    except TouchstoneError:
        return []


async def _title(request: Request, suite: str, offer: Offer) -> str:
    known = offer.suite(suite)
    if known:
        return known.title or known.suite
    return await datasets.name_of(context.of(request).backend, suite, context.identity(request))


def _choices(view: View, offer: Offer) -> dict[str, Any]:
    """What the form is drawn from."""
    metrics = metrics_of((), offer.suite(view.suite)) if view.suite else list(_USUAL_METRICS)
    return {
        "suites": offer.suites,
        "metrics": metrics if view.metric in metrics else [*metrics, view.metric],
        "least_days": LEAST_DAYS,
        "most_days": MOST_DAYS,
    }


def _shown(view: View, figures: Figures, offer: Offer) -> dict[str, Any]:
    """What the panels are drawn from."""
    rows = job_rows(figures.listed, figures.scores)
    shown = [(row.job.spec.endpoint, row.job.spec.model) for row in rows if not row.job.baseline]
    shown += [(trend.endpoint, trend.model) for trend in figures.trends if not trend.baseline]
    slots = palette.assign(offer.keys, shown)
    lines, runs = drawn_lines(figures.trends, slots)
    latest = figures.overview.latest if figures.overview.HasField("latest") else None
    words = formatting.metric_name(view.metric)
    about = f"{words} over time of {formatting.plural(len(lines), 'configuration')}. Arrow keys step through the runs, "
    about += "Enter opens the job. The table below has the same figures."
    return {
        "rows": rows,
        "slots": slots,
        "runs": runs,
        "chart": trend_chart(lines, about, width=836, height=330, labels=196, kind="wide"),
        "small_chart": trend_chart(lines, about, width=358, height=260, kind="narrow"),
        "lines": lines,
        "mode": mode_name(figures.mode),
        "subsets": any(trend.subset for trend in figures.trends),
        "latest": latest,
        "latest_row": next((row for row in rows if latest and row.job.job_id == latest.job_id), None),
        "waiting": [(job, starts(job.progress)) for job in (figures.queue.pending[:_WAITING] if figures.queue else ())],
    }


def _cards(figures: Figures) -> dict[str, Any]:
    """The cards and the chart with REST's names and values."""
    found = figures.overview
    return {
        "mean": found.mean if found.HasField("mean") else None,
        "runs_with_metric": found.runs_with_metric,
        "completed_jobs": found.completed_jobs,
        "models": found.models,
        "latest_job_id": found.latest.job_id or None,
        "trends": [
            {
                "suite": figures.charted,
                "configuration": trend.configuration,
                "model": trend.model,
                "provider": trend.endpoint,
                "points": [_exported_point(point) for point in trend.points if _is_estimate(point)][-RUNS_A_LINE:],
            }
            for trend in figures.trends
        ],
    }


def _exported_point(point: results_service_pb2.TrendPoint) -> dict[str, Any]:
    score = point.score
    known = score.HasField("ci95_low")
    return {
        "job_id": point.job_id,
        "completed_at": jobs.iso(point.completed_at),
        "mean": score.mean,
        "ci95": [score.ci95_low, score.ci95_high] if known else None,
        "n": score.n,
    }


@dataclass(frozen=True, slots=True)
class Run:
    """A point of the chart, as a row of its table."""

    line: int
    label: str
    slot: int | None
    point: results_service_pb2.TrendPoint


def drawn_lines(
    trends: Sequence[results_service_pb2.Trend], slots: dict[palette.Key, int]
) -> tuple[list[Line], list[Run]]:
    """A line per trend, the newest runs of each, and the rows of the table in the order of the points' numbers."""
    lines: list[Line] = []
    runs: list[Run] = []
    same: Counter[palette.Key] = Counter()
    for place, (trend, label) in enumerate(zip(trends, labels_of(trends), strict=True)):
        key = (trend.endpoint, trend.model)
        slot = None if trend.baseline else slots.get(key)
        points = []
        for point in [one for one in trend.points if _is_estimate(one)][-RUNS_A_LINE:]:
            points.append(_point(point, len(runs)))
            runs.append(Run(place, label, slot, point))
        lines.append(Line(label, slot, points, same[key]))
        same[key] += 1
    return lines, runs


def _is_estimate(point: results_service_pb2.TrendPoint) -> bool:
    """Whether it has a place on a line. All points are of runs that rank, as on the leaderboard: those with unread
    answers, which have bounds, too."""
    return point.score.HasField("mean")


def _point(point: results_service_pb2.TrendPoint, row: int) -> Point:
    score = point.score
    known = score.HasField("ci95_low")
    low, high = (score.ci95_low * 100, score.ci95_high * 100) if known else (None, None)
    return Point(point.completed_at.ToNanoseconds() / 1e9, score.mean * 100, low, high, row)


def labels_of(trends: Sequence[results_service_pb2.Trend]) -> list[str]:
    """The model's name and the configuration's, with what else distinguishes the lines: endpoint, hash, "subset"."""
    models = Counter(trend.model for trend in trends)
    keys = Counter((trend.endpoint, trend.model) for trend in trends)
    labels = []
    for trend in trends:
        alike = keys[trend.endpoint, trend.model]
        words = [formatting.shown(trend.model), f"@{trend.endpoint}" if models[trend.model] > alike else "", trend.name]
        if alike > 1:
            words.append("" if trend.name else trend.configuration[:6])
            words.append("subset" if trend.subset else "")
        labels.append(" ".join(filter(None, words)))
    return labels
