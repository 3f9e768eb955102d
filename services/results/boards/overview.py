"""Figures over all jobs, and trends: scores over time, a series per configuration and item set."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from services.errors import InvalidRequestError
from services.results.runs import job_reads
from services.results.statistics.metric_values import ACCURACY
from services.results.storage import run_scores
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals
from services.words.jobs import asked_mode, require_project
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

MOST_DAYS = 3650
MOST_MEANS = 100
SERIES, MOST_SERIES = 16, 64
TREND_DAYS = 30
POINTS = 300
"""Of one series, the newest."""
MOST_CONFIGURATIONS = 500
_RECENT_PART = 8
"""Of a period, this part of its end is read first. In a busy installation it has all points that a chart shows."""


def since(days: int, now: datetime) -> datetime | None:
    """The beginning of the last `days` days; None for 0. Raises InvalidRequestError."""
    if not 0 <= days <= MOST_DAYS:
        raise InvalidRequestError(refusals.between("days", 0, MOST_DAYS, zero="no limit"), "days")
    return now - timedelta(days=days) if days else None


def overview(
    connection: Connection, request: pb.GetOverviewRequest, now: datetime, visible: Visibility = EVERYTHING
) -> pb.GetOverviewResponse:
    """`now` is UTC without a zone. Raises InvalidRequestError for bad days."""
    jobs = pb.ResultsServiceListJobsRequest(suite=request.suite, project_id=request.project_id)
    start = since(request.days, now)
    if start is not None:
        jobs.created_after.FromDatetime(start)
    text, parameters = job_reads.jobs_where(jobs, visible)
    ((total, completed, failed, cancelled, complete, models, ended),) = connection.execute(
        query("boards/overview_jobs").format(where=text), parameters
    ).fetchall()
    latest = first_row(
        connection, query("boards/overview_latest").format(where=text), parameters | {"finished_at": ended}
    )
    rows = connection.execute(
        query("boards/overview_scores"),
        {
            "metric": request.metric or ACCURACY,
            "suite": request.suite,
            "project_id": request.project_id,
            "created_after": start,
            "most": MOST_MEANS,
            **visible.parameters,
        },
    ).fetchall()
    means = [pb.OverviewMean(suite=suite, mode=mode, mean=mean, runs=runs) for suite, mode, mean, runs in rows]
    return pb.GetOverviewResponse(
        mean=means[0].mean if means else None,
        runs_with_metric=means[0].runs if means else 0,
        means=means,
        total_jobs=total,
        completed_jobs=completed,
        failed_jobs=failed,
        cancelled_jobs=cancelled,
        complete_jobs=complete,
        models=models,
        latest=job_pb2.Job.FromString(latest[0]) if latest else None,
    )


def list_trends(
    connection: Connection, request: pb.ListTrendsRequest, now: datetime, visible: Visibility = EVERYTHING
) -> pb.ListTrendsResponse:
    """`now` is UTC without a zone. Raises InvalidRequestError."""
    require_project(request.project_id)
    if not 0 <= request.limit <= MOST_SERIES:
        raise InvalidRequestError(refusals.between("limit", 0, MOST_SERIES, zero=str(SERIES)), "limit")
    if not 0 <= request.points <= POINTS:
        raise InvalidRequestError(refusals.between("points", 0, POINTS, zero=str(POINTS)), "points")
    if len(request.configurations) > MOST_CONFIGURATIONS:
        raise InvalidRequestError(refusals.entries("configurations", 0, MOST_CONFIGURATIONS, 64), "configurations")
    series = request.limit or len(request.configurations) or SERIES
    where = {
        "suite": request.suite,
        "mode": asked_mode(request.mode),
        "metric": request.metric or "score",
        "created_after": since(request.days, now) or now - timedelta(days=TREND_DAYS),
        "model": request.model,
        "project_id": request.project_id,
        "item_set": request.item_set,
        "configurations": list(request.configurations),
        "completed_after": None,
        "series": series,
        "points": min(request.points or POINTS, MOST_SERIES * POINTS // series),
        **visible.parameters,
    }
    rows = _newest_points(connection, where) or _recent_points(connection, where, now) or _points(connection, where)
    trends: dict[int, pb.Trend] = {}
    for place, configuration, item_set, model, endpoint, subset, baseline, name, job_id, completed_at, *metric in rows:
        if place not in trends:
            trends[place] = pb.Trend(
                configuration=configuration,
                model=model,
                endpoint=endpoint,
                name=name,
                item_set=item_set,
                subset=subset,
                baseline=baseline,
            )
        point = trends[place].points.add(job_id=job_id, score=run_scores.metric_of(metric))
        point.completed_at.FromDatetime(completed_at.replace(tzinfo=UTC))
    return pb.ListTrendsResponse(trends=trends.values())


def _points(connection: Connection, where: dict[str, Any]) -> list[tuple[Any, ...]]:
    text = query("boards/trends").format(metric=", ".join(f"r.{name}" for name in run_scores.METRIC_COLUMNS))
    return connection.execute(text, where).fetchall()


def _newest_points(connection: Connection, where: dict[str, Any]) -> list[tuple[Any, ...]] | None:
    """The same rows, read from as few recent runs as seem to suffice: of each configuration three times as long as its
    points would take if all came like the two newest. None where that would not be less, or did not suffice; and unless
    configurations on one item set are asked for, of which the number of runs is stored."""
    if not where["configurations"] or not where["item_set"] or where["project_id"] or where["visible_owner"]:
        return None
    runs = connection.execute(
        "SELECT configuration, max(runs), max(completed_at), min(completed_at) FROM current_scores "
        "WHERE suite = $suite AND mode = $mode AND item_set = $item_set AND metric = $metric "
        "AND configuration IN (SELECT unnest($configurations::VARCHAR[])) GROUP BY configuration",
        {name: where[name] for name in ("suite", "mode", "item_set", "metric", "configurations")},
    ).fetchall()
    wanted = {configuration: min(number, where["points"]) for configuration, number, *_ in runs}
    starts = [last - 3 * wanted[configuration] * (last - before) for configuration, _, last, before in runs]
    start = min(starts, default=where["created_after"])
    if start <= where["created_after"]:
        return None
    rows = _points(connection, where | {"completed_after": start})
    found = Counter(configuration for _, configuration, *_ in rows)
    return rows if all(found[configuration] >= number for configuration, number in wanted.items()) else None


def _recent_points(connection: Connection, where: dict[str, Any], now: datetime) -> list[tuple[Any, ...]] | None:
    """The same rows, read from the last part of the period. None where that part has too few series, or too few points
    of one: older runs would then be among the rows, too."""
    start = now - (now - where["created_after"]) / _RECENT_PART
    rows = _points(connection, where | {"completed_after": start})
    found = Counter(place for place, *_ in rows)
    full = len(found) == where["series"] and min(found.values()) == where["points"]
    return rows if full else None
