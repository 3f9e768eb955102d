"""Jobs and the audit trail as they are read."""

from __future__ import annotations

from services.errors import NotFoundError
from services.results import paging
from services.results.database import Connection, first_row, query
from services.results.job_result import compute
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2


def get_job(connection: Connection, job_id: str) -> job_pb2.Job:
    """Raises NotFoundError for a job that the audit trail never named."""
    found = first_row(connection, "SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job_id})
    if found is None:
        raise NotFoundError(f"Benchmark job {job_id} not found")
    return job_pb2.Job.FromString(found[0])


def get_job_result(connection: Connection, job_id: str) -> metric_pb2.JobResult:
    """The sealed result of the job's present attempt, else what is measured so far."""
    job = get_job(connection, job_id)
    sealed = sealed_result(connection, job_id, job.attempt)
    return sealed.result if sealed is not None else compute(connection, job, seal=False).result


def sealed_result(connection: Connection, job_id: str, attempt: int) -> results_service_pb2.SealJobResponse | None:
    """What sealing this or a later attempt answered, or None when that has not happened."""
    found = first_row(
        connection,
        "SELECT missing, infrastructure_errors, result FROM seals WHERE job_id = $job_id AND attempt >= $attempt",
        {"job_id": job_id, "attempt": attempt},
    )
    if found is None:
        return None
    missing, errors, result = found
    return results_service_pb2.SealJobResponse(
        missing=missing, infrastructure_errors=errors, result=metric_pb2.JobResult.FromString(result)
    )


def list_jobs(
    connection: Connection, request: results_service_pb2.ResultsServiceListJobsRequest
) -> results_service_pb2.ResultsServiceListJobsResponse:
    """Newest first. Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, default=20, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    where = {
        "model": request.model,
        "suite": request.suite,
        "owner": request.owner,
        "project_id": request.project_id,
        "states": [int(state) for state in request.states],
        "created_after": request.created_after.ToDatetime() if request.HasField("created_after") else None,
    }
    key = dict(zip(("after_us", "after_job"), after or (None, None), strict=True))
    rows = connection.execute(query("list_jobs"), where | key | {"size": size + 1}).fetchall()
    jobs, token = paging.fill_page(
        (job_pb2.Job.FromString(blob) for (blob,) in rows),
        size,
        filter_,
        lambda job: [job.created_at.ToMicroseconds(), job.job_id],
    )
    ((total,),) = connection.execute(query("count_jobs"), where).fetchall()
    return results_service_pb2.ResultsServiceListJobsResponse(jobs=jobs, next_page_token=token, total_size=total)


def list_events(
    connection: Connection, request: results_service_pb2.ListEventsRequest
) -> results_service_pb2.ListEventsResponse:
    """Oldest first. Raises InvalidRequestError for a bad page."""
    size = paging.page_size(request.page_size, default=100, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str,)) or [""]
    rows = connection.execute(
        query("list_events"), {"job_id": request.job_id, "after": after[0], "size": size + 1}
    ).fetchall()
    events, token = paging.fill_page(
        (job_pb2.JobEvent.FromString(blob) for (blob,) in rows), size, filter_, lambda event: [event.event_id]
    )
    return results_service_pb2.ListEventsResponse(events=events, next_page_token=token)
