"""Jobs as lists and exports choose them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from services.errors import InvalidRequestError
from services.results import paging
from services.results.runs import marks
from services.results.storage import run_scores
from services.results.storage.database import Connection, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import sentences, weighting
from touchstone.v1 import job_pb2, results_service_pb2


def where(
    request: results_service_pb2.ResultsServiceListJobsRequest, visible: Visibility = EVERYTHING
) -> tuple[str, dict[str, Any]]:
    """The SQL condition over `jobs` that a request's filters are, with its parameters. Raises InvalidRequestError."""
    for state in request.states:
        if state not in job_pb2.Job.State.values():
            raise InvalidRequestError(sentences.not_valid(state, "state", job_pb2.Job.State.keys()[1:]), "states")
    return query("runs/jobs_where"), {
        "model": request.model,
        "model_query": request.model_query,
        "suite": request.suite,
        "datasets": request.datasets,
        "owner": request.owner,
        "project_id": request.project_id,
        "states": [int(state) for state in request.states],
        "created_after": created_after(request),
        **visible.parameters,
    }


def created_after(request: results_service_pb2.ResultsServiceListJobsRequest) -> datetime | None:
    """Raises InvalidRequestError for a time beyond the calendar."""
    if not request.HasField("created_after"):
        return None
    try:
        return request.created_after.ToDatetime()
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError(
            "created_after must be a time between the years 1 and 9999.", "created_after"
        ) from error


def list_jobs(
    connection: Connection,
    request: results_service_pb2.ResultsServiceListJobsRequest,
    visible: Visibility = EVERYTHING,
) -> results_service_pb2.ResultsServiceListJobsResponse:
    """Newest first. Raises InvalidRequestError for a bad page."""
    jobs, token = read_page(connection, request, visible)
    text, parameters = where(request, visible)
    ((total,),) = connection.execute(query("runs/count_jobs").format(where=text), parameters).fetchall()
    return results_service_pb2.ResultsServiceListJobsResponse(
        jobs=jobs,
        next_page_token=token,
        total_size=total,
        scores=read_scores(connection, jobs) if request.with_scores else [],
    )


def read_page(
    connection: Connection,
    request: results_service_pb2.ResultsServiceListJobsRequest,
    visible: Visibility = EVERYTHING,
) -> tuple[list[job_pb2.Job], str]:
    """The jobs of `list_jobs`, without their number, and the next page's token. Raises as that does."""
    size = paging.page_size(request.page_size, default=20, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    text, parameters = where(request, visible)
    key = {
        "after_at": paging.time_of(after[0]) if after else None,
        "after_job": after[1] if after else None,
        "size": size + 1,
    }
    rows = connection.execute(query("runs/list_jobs").format(where=text), parameters | key).fetchall()
    return paging.fill_page(
        (job_pb2.Job.FromString(blob) for (blob,) in rows),
        size,
        filter_,
        lambda job: [job.created_at.ToMicroseconds(), job.job_id],
    )


def read_scores(connection: Connection, jobs: Sequence[job_pb2.Job]) -> list[results_service_pb2.JobScores]:
    """The averages of each job, in the same order; none where its present attempt is not sealed."""
    if not jobs:
        return []
    attempts = {job.job_id: job.attempt for job in jobs}
    found = {job_id: results_service_pb2.JobScores(job_id=job_id) for job_id in attempts}
    times = [job.created_at.ToDatetime() for job in jobs]
    text = query("runs/job_scores").format(metric=", ".join(run_scores.METRIC_COLUMNS))
    parameters = {"job_ids": list(found), "first": min(times), "last": max(times)}
    present = marks.present(connection, list(found))
    for job_id, attempt, reason, caution, *metric in connection.execute(text, parameters).fetchall():
        if attempt >= attempts[job_id]:
            average = run_scores.metric_of(metric)
            if not weighting.parted(average.metric)[1]:
                found[job_id].averages.append(average)
            found[job_id].not_ranked_reason = present[job_id].words if job_id in present else reason
            found[job_id].caution = caution
    return list(found.values())
