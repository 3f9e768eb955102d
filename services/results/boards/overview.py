"""Figures over all jobs."""

from __future__ import annotations

from datetime import datetime, timedelta

from services.errors import InvalidRequestError
from services.results.runs import job_reads
from services.results.statistics.metric_values import ACCURACY
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import sentences
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

MOST_DAYS = 3650
MOST_MEANS = 100


def since(days: int, now: datetime) -> datetime | None:
    """The beginning of the last `days` days; None for 0. Raises InvalidRequestError."""
    if not 0 <= days <= MOST_DAYS:
        raise InvalidRequestError(sentences.between("days", 0, MOST_DAYS, zero="no limit"), "days")
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
