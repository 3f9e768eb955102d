"""Scores over time, a series per configuration and item set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.errors import InvalidRequestError
from services.results.boards import overview
from services.results.storage import run_scores
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import sentences
from services.words.jobs import asked_mode
from touchstone.v1 import results_service_pb2 as pb

SERIES, MOST_SERIES = 16, 64
DAYS = 30
POINTS = 300
"""The newest points of one series."""


def list_trends(
    connection: Connection, request: pb.ListTrendsRequest, now: datetime, visible: Visibility = EVERYTHING
) -> pb.ListTrendsResponse:
    """`now` is UTC without a zone. Raises InvalidRequestError."""
    if not 0 <= request.limit <= MOST_SERIES:
        raise InvalidRequestError(sentences.between("limit", 0, MOST_SERIES, zero=str(SERIES)), "limit")
    rows = connection.execute(
        query("boards/trends").format(metric=", ".join(f"r.{name}" for name in run_scores.METRIC_COLUMNS)),
        {
            "suite": request.suite,
            "mode": asked_mode(request.mode),
            "metric": request.metric or "score",
            "created_after": overview.since(request.days, now) or now - timedelta(days=DAYS),
            "model": request.model,
            "project_id": request.project_id,
            "series": request.limit or SERIES,
            "points": POINTS,
            **visible.parameters,
        },
    ).fetchall()
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
