"""Jobs and the audit trail as they are read."""

from __future__ import annotations

from collections.abc import Sequence

from services.errors import NotFoundError
from services.results import paging
from services.results.runs import marks
from services.results.scores.job_result import compute
from services.results.storage import text_retention
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import sentences
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2


def get_job(connection: Connection, job_id: str, visible: Visibility = EVERYTHING) -> job_pb2.Job:
    """Raises NotFoundError for a job that the audit trail never named, HiddenJobError for one that is not visible."""
    found = first_row(connection, "SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job_id})
    if found is None:
        raise NotFoundError(sentences.not_found("Benchmark job", job_id))
    job = job_pb2.Job.FromString(found[0])
    visible.check(job)
    return job


def jobs_by_id(connection: Connection, job_ids: Sequence[str]) -> dict[str, job_pb2.Job]:
    """Those that are stored."""
    rows = connection.execute(
        "SELECT job_id, job FROM jobs WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[]))", {"job_ids": job_ids}
    ).fetchall()
    return {job_id: job_pb2.Job.FromString(blob) for job_id, blob in rows}


def is_stored(connection: Connection, job_id: str) -> bool:
    """Whether the audit trail has named the job."""
    return first_row(connection, "SELECT 1 FROM jobs WHERE job_id = $job_id", {"job_id": job_id}) is not None


def get_job_result(connection: Connection, job_id: str, visible: Visibility = EVERYTHING) -> metric_pb2.JobResult:
    """The sealed result of the job's present attempt, else what is measured so far. Raises as `get_job`."""
    job = get_job(connection, job_id, visible)
    sealed = sealed_result(connection, job_id, job.attempt)
    result = sealed.result if sealed is not None else compute(connection, job, seal=False).result
    for mark in marks.present(connection, [job_id]).values():
        marks.put_on(result, mark)
    result.texts_dropped = text_retention.dropped_at(connection, job_id)
    return result


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


def list_events(
    connection: Connection, request: results_service_pb2.ListEventsRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ListEventsResponse:
    """Oldest first. Raises InvalidRequestError for a bad page, and NotFoundError for a job that is not visible."""
    size = paging.page_size(request.page_size, default=100, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (str,)) or [""]
    if request.job_id and visible.owner:
        get_job(connection, request.job_id, visible)
    rows = connection.execute(
        query("runs/list_events"),
        {"job_id": request.job_id, "after": after[0], "size": size + 1, **visible.parameters},
    ).fetchall()
    events, token = paging.fill_page(
        (job_pb2.JobEvent.FromString(blob) for (blob,) in rows), size, filter_, lambda event: [event.event_id]
    )
    return results_service_pb2.ListEventsResponse(events=events, next_page_token=token)
