"""The leaderboard page: ranked configurations, their intervals on one axis, tasks as a heat table."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.http.responses import CSV, csv_of
from services.gateway.pages.boards.table import (
    SPARK_RUNS,
    Sparks,
    columns,
    distinctions,
    end_of_top,
    exported,
    item_set_choices,
    place_words,
    task_width,
)
from services.gateway.pages.compare.view import report_of
from services.gateway.pages.display import palette
from services.gateway.pages.display.charts import Axis
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import datasets
from services.gateway.reads.catalogue import Catalogue
from services.gateway.reads.questions import SUITE_SCORE, ask_leaderboard, require_answered
from services.words.enums import MODES, WEIGHTINGS, weighting_name
from services.words.jobs import ENDED_EARLY, status_of
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, suite_pb2

TOPS = (10, 20, 50, 100)
_TREND_DAYS, _MOST_TRENDS = 365, 500
_METRIC_ORDER = ("score", "accuracy", "f1", "matthews_correlation", "pearson", "spearman")


@dataclass(frozen=True, slots=True)
class View:
    """The choices in the address: everything shown follows from them."""

    suite: str
    metric: str
    weighting: str
    mode: str
    top: int
    endpoint: str
    item_set: str
    baselines: bool
    unranked: bool

    @classmethod
    def of(cls, request: Request, suite: str) -> View:
        """Unknown choices fall back to the defaults: a page is not an API. Boxes left out of a sent form are
        unticked."""
        query = request.query_params
        top = query.get("top", "")
        boxes = query.getlist("show") if "form" in query else ["baselines", "unranked"]
        return cls(
            suite=suite,
            metric=query.get("metric") or SUITE_SCORE,
            weighting=query.get("weighting", "") if query.get("weighting", "") in WEIGHTINGS else "",
            mode=query.get("mode", "") if query.get("mode", "") in MODES else "generate",
            top=int(top) if top.isdecimal() and int(top[:4]) in TOPS else 20,
            endpoint=query.get("endpoint", ""),
            item_set=query.get("item_set", ""),
            baselines="baselines" in boxes,
            unranked="unranked" in boxes,
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """The choices, all empty while the scheduler is silent. `keys` are (endpoint, model)."""

    suites: Sequence[suite_pb2.Suite] = ()
    endpoints: Sequence[str] = ()
    keys: Sequence[tuple[str, str]] = ()

    @classmethod
    async def of(cls, catalogue: Catalogue) -> Offer:
        try:
            suites = await catalogue.suites()
            endpoints = [known.endpoint for known in await catalogue.endpoints()]
            return cls(suites, endpoints, await catalogue.model_keys())
        except TouchstoneError:
            return cls()

    def suite(self, name: str) -> suite_pb2.Suite | None:
        return next((suite for suite in self.suites if suite.suite == name), None)


@dataclass(frozen=True, slots=True)
class Rows:
    """A board's entries by position. Baselines are ranked if there is nothing else."""

    scored: list[metric_pb2.LeaderboardEntry]
    ranked: list[metric_pb2.LeaderboardEntry]
    floors: list[metric_pb2.LeaderboardEntry]
    unranked: list[metric_pb2.LeaderboardEntry]

    @classmethod
    def of(cls, entries: Sequence[metric_pb2.LeaderboardEntry], view: View) -> Rows:
        scored = [e for e in entries if not e.not_ranked_reason]
        return cls(
            scored=scored,
            ranked=[e for e in scored if not e.baseline or (e.rank and view.baselines)],
            floors=[e for e in scored if e.baseline and not e.rank],
            unranked=[e for e in entries if e.not_ranked_reason],
        )


async def leaderboard(request: Request) -> Response:
    """The board of one suite, as a page or as the part that its filters replace."""
    ctx = context.of(request)
    chosen = request.query_params.get("suite", "") or await _newest_suite(request)
    offer = await Offer.of(ctx.catalogue)
    chosen = chosen or (offer.suites[0].suite if offer.suites else "glue")
    known = offer.suite(chosen)
    view, board = await _answered(request, View.of(request, chosen), offer)
    problem = await _problem(ctx.catalogue, view, board, offer.suites)
    if problem:
        board = results_service_pb2.GetLeaderboardResponse()
    values = {
        "title": known.title
        if known
        else await datasets.name_of(context.of(request).backend, view.suite, context.identity(request)),
        "completed": 0 if board.entries or problem else (await _runs(request, view.suite, size=1)).total_size,
        "problem": problem,
        "request_id": uuid.uuid4().hex,
        **_choices(view, board, offer),
        **_shown(view, board, offer),
        "sparks": Sparks.of(board.entries, await _trends(request, view, board), board.item_set),
    }
    if is_fragment(request):
        return fragment(request, "leaderboard/_board.html", values)
    return await render(request, "leaderboard/index.html", "leaderboard", values, 400 if problem else 200)


async def export(request: Request) -> Response:
    """The rows of the page as CSV. Raises InvalidRequestError for an unknown suite or metric."""
    suite = request.query_params.get("suite", "") or await _newest_suite(request)
    offer = await Offer.of(context.of(request).catalogue)
    view, board = await _answered(request, View.of(request, suite), offer)
    if problem := await _problem(context.of(request).catalogue, view, board, offer.suites):
        raise InvalidRequestError(problem)
    shown = _shown(view, board, offer)
    rows = [
        exported(e, view.suite, view.metric, shown["columns"])
        for e in (*shown["ranked"], *shown["floors"], *shown["unranked"])
    ]
    headers = {"Content-Disposition": 'attachment; filename="touchstone-leaderboard.csv"'}
    return Response(csv_of(rows), media_type=CSV, headers=headers)


async def _trends(
    request: Request, view: View, board: results_service_pb2.GetLeaderboardResponse
) -> Sequence[results_service_pb2.Trend]:
    """The runs before those on the board; none by another rule than the suite's, or while they are not known."""
    if not board.entries or board.weighting != board.suite_weighting:
        return ()
    ctx = context.of(request)
    call = results_service_pb2.ListTrendsRequest(
        suite=view.suite,
        metric=view.metric,
        days=_TREND_DAYS,
        mode=MODES[view.mode],
        points=SPARK_RUNS,
        configurations=list(dict.fromkeys(entry.configuration for entry in board.entries))[:_MOST_TRENDS],
        item_set=board.item_set,
    )
    try:
        return (await ctx.backend.ask(ctx.backend.results.ListTrends, call, context.identity(request))).trends
    except TouchstoneError:
        return ()


async def _answered(
    request: Request, view: View, offer: Offer
) -> tuple[View, results_service_pb2.GetLeaderboardResponse]:
    """The board, with its view: choices that fit only another suite are dropped."""
    own = metrics_of((), offer.suite(view.suite))
    if "form" in request.query_params and view.metric not in own and view.metric in _all(offer.suites):
        # The form was sent for another suite, which has this metric.
        view = replace(view, metric=SUITE_SCORE)
    board = await _board(request, view)
    if view.item_set and not board.entries:
        # Nothing has run on these items with the other choices, or they are of another suite.
        view = replace(view, item_set="")
        board = await _board(request, view)
    return view, board


def _choices(view: View, board: results_service_pb2.GetLeaderboardResponse, offer: Offer) -> dict[str, Any]:
    """What the form is drawn from."""
    known = offer.suite(view.suite)
    return {
        "view": view,
        "suites": offer.suites,
        "endpoints": offer.endpoints,
        "metrics": metrics_of(board.metrics, known),
        "weighting": weighting_name(board.weighting) or "",
        "weightings": _weightings(board.suite_weighting),
        "modes": _modes(known, view.mode),
        "tops": TOPS,
        "item_sets": item_set_choices(board.item_sets),
        "may_start": known is not None and not known.open,
        "json_address": f"/api/v1/benchmarking/leaderboard?{urlencode(_api_query(view))}",
        "csv_address": f"/leaderboard/export?{urlencode(_page_query(view), doseq=True)}",
    }


def _shown(view: View, board: results_service_pb2.GetLeaderboardResponse, offer: Offer) -> dict[str, Any]:
    """What the table is drawn from."""
    rows = Rows.of(board.entries, view)
    unranked = rows.unranked if view.unranked else []
    hidden = [] if view.baselines else [e for e in rows.scored if e.baseline]
    tasks = columns(rows.ranked, rows.floors, offer.suite(view.suite), board.weighting)
    models = ((e.endpoint, e.model) for e in board.entries if not e.baseline)
    return {
        "board": board,
        "hidden_baselines": len(hidden),
        "hidden_unranked": len(rows.unranked) - len(unranked),
        "ranked": rows.ranked,
        "floors": rows.floors if view.baselines else [],
        "unranked": unranked,
        "reasons": {e.job_id: unranked_word(e) for e in rows.unranked},
        "unread": {e.job_id: unread_word(e) for e in rows.scored},
        "apart": distinctions(board.entries),
        "report_address": report_of([e.job_id for e in rows.ranked]),
        "places": {e.job_id: place_words(e) for e in rows.ranked if e.rank_low},
        "end_of_top": end_of_top(rows.ranked),
        "costs": any(e.HasField("cost_usd") for e in board.entries),
        "changes": {e.job_id: _change(e) for e in rows.ranked},
        "axis": _axis(rows.ranked, unranked),
        "columns": tasks,
        "task_width": task_width(tasks),
        "slots": palette.assign(offer.keys, models),
    }


async def _board(request: Request, view: View) -> results_service_pb2.GetLeaderboardResponse:
    """Without entries where the service does not know the suite or the metric."""
    ctx = context.of(request)
    call = results_service_pb2.GetLeaderboardRequest(
        suite=view.suite,
        metric=view.metric,
        limit=view.top,
        mode=MODES[view.mode],
        endpoint=view.endpoint,
        item_set=view.item_set,
        weighting=WEIGHTINGS.get(view.weighting),
    )
    try:
        return await ask_leaderboard(ctx.backend, call, context.identity(request))
    except InvalidRequestError:
        return results_service_pb2.GetLeaderboardResponse()


async def _problem(
    catalogue: Catalogue,
    view: View,
    board: results_service_pb2.GetLeaderboardResponse,
    suites: Sequence[suite_pb2.Suite],
) -> str:
    """The API's sentence about an unknown suite or metric; empty if the address is right, or while that is unknown."""
    try:
        if board.entries or suites:
            await require_answered(catalogue, view.suite, view.metric, board)
    except InvalidRequestError as error:
        return error.message
    except TouchstoneError:
        return ""
    return ""


def _all(suites: Sequence[suite_pb2.Suite]) -> set[str]:
    return {spec.metric for suite in suites for task in suite.tasks for spec in task.metrics}


async def _newest_suite(request: Request) -> str:
    """The suite of the newest completed job: it interests someone who just ran a job. Jobs with all answers go first,
    as the others do not rank."""
    found = [job for job in (await _runs(request, size=20)).jobs if job.spec.HasField("suite")]
    if not found:
        # The newest ones may all be of datasets.
        try:
            suites = await context.of(request).catalogue.suites()
        except TouchstoneError:
            suites = []
        answers = await asyncio.gather(*(_runs(request, suite.suite, size=1) for suite in suites))
        found = sorted((job for one in answers for job in one.jobs), key=lambda job: -job.created_at.ToNanoseconds())
    return next((job.spec.suite.suite for job in sorted(found, key=lambda job: job.incomplete)), "")


async def _runs(request: Request, suite: str = "", *, size: int) -> results_service_pb2.ResultsServiceListJobsResponse:
    """The newest completed jobs; of a suite also their number."""
    ctx = context.of(request)
    call = results_service_pb2.ResultsServiceListJobsRequest(
        suite=suite, page_size=size, states=[job_pb2.Job.STATE_COMPLETED], without_counts=not suite
    )
    return await ctx.backend.ask(ctx.backend.results.ListJobs, call, context.identity(request))


def _change(entry: metric_pb2.LeaderboardEntry) -> float | None:
    """Compared with the configuration's previous run; None without one."""
    if not entry.HasField("previous_mean") or not entry.score.HasField("mean"):
        return None
    return entry.score.mean - entry.previous_mean


def unranked_word(entry: metric_pb2.LeaderboardEntry) -> str:
    """Why a run has no rank, in a tag: its mark, its state, or that answers are missing."""
    if entry.mark:
        return entry.mark
    if entry.state in ENDED_EARLY:
        return status_of(entry.state)
    total = sum(task.items_planned or task.items for task in entry.tasks)
    stored = sum(task.items for task in entry.tasks)
    errors = sum(task.outcomes.infrastructure_error for task in entry.tasks)
    if not total:
        return "bounded"
    return "incomplete" if errors or stored < total else "does not count"


def unread_word(entry: metric_pb2.LeaderboardEntry) -> str:
    """The largest share of a task's answers that is unread or cut, in a tag; "" if none is too large."""
    if not entry.unread:
        return ""
    unparsed, cut = max(one.unparsed for one in entry.unread), max(one.cut for one in entry.unread)
    share, became = (cut, "cut") if cut > unparsed else (unparsed, "unread")
    return f"{'up to ' if entry.task_count > 1 else ''}{100 * share:.0f} % {became}"


def metrics_of(named: Sequence[str], suite: suite_pb2.Suite | None) -> list[str]:
    """The metrics to choose from, the suite's score first."""
    found = {SUITE_SCORE, *named, *(spec.metric for task in (suite.tasks if suite else ()) for spec in task.metrics)}
    order = {metric: place for place, metric in enumerate(_METRIC_ORDER)}
    return sorted(found, key=lambda metric: (order.get(metric, len(order)), metric))


def _weightings(own: suite_pb2.Weighting) -> list[tuple[str, str]]:
    """The rules of scores; empty for a single task. The suite's own is the empty choice, so that the form uses each
    suite's own when the suite changes."""
    if not own:
        return []
    words = ((word, rule == own) for word, rule in WEIGHTINGS.items())
    return [("", f"Over {word} (suite's rule)") if is_own else (word, f"Over {word}") for word, is_own in words]


def _modes(suite: suite_pb2.Suite | None, chosen: str) -> list[str]:
    """Modes that some task of the suite can run in."""
    offered = {mode for task in (suite.tasks if suite else ()) for mode in task.modes}
    return [word for word, mode in MODES.items() if mode in offered or word in ("generate", chosen)]


def _axis(ranked: Sequence[metric_pb2.LeaderboardEntry], unranked: Sequence[metric_pb2.LeaderboardEntry]) -> Axis:
    """Holds the intervals of all ranked rows; baselines may fall off it."""
    ends = [end * 100 for e in ranked for end in (e.score.ci95_low, e.score.ci95_high) if e.score.HasField("ci95_low")]
    ends += [e.score.mean * 100 for e in ranked if e.score.HasField("mean")]
    if not ends:
        ends = [end * 100 for e in unranked for end in (e.score.bound_low, e.score.bound_high)]
    return Axis.around(ends)


def _page_query(view: View) -> dict[str, object]:
    """The page's own query for the same board."""
    boxes = [name for name, shown in (("baselines", view.baselines), ("unranked", view.unranked)) if shown]
    chosen = {name: value for name, value in asdict(view).items() if name not in ("baselines", "unranked")}
    return {name: value for name, value in chosen.items() if value} | {"form": "1", "show": boxes}


def _api_query(view: View) -> dict[str, str | int]:
    """The API request for the same board."""
    asked: dict[str, str | int] = {"suite": view.suite, "metric": view.metric, "limit": view.top, "mode": view.mode}
    optional = (("weighting", view.weighting), ("endpoint", view.endpoint), ("item_set", view.item_set))
    return asked | {name: value for name, value in optional if value}
