"""Jobs and the audit trail as they are read: one, or those that lists and exports choose; and the marks of runs that do
not count: invalidated or superseded with a reason, or with answers of one that was invalidated.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.errors import InvalidRequestError, NotFoundError
from services.results import paging
from services.results.scores.job_result import RULES, compute
from services.results.storage import archived_items, run_scores, text_retention
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.words import refusals, suites
from services.words.enums import MARKS
from services.words.jobs import is_finished, require_project, suite_of
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2


def get_job(connection: Connection, job_id: str, visible: Visibility = EVERYTHING) -> job_pb2.Job:
    """Raises NotFoundError for a job that was deleted or that the audit trail never named, HiddenJobError for one that
    is not visible."""
    found = first_row(connection, "SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job_id})
    if found is None:
        raise not_found(connection, job_id, visible)
    job = job_pb2.Job.FromString(found[0])
    visible.check(job)
    return job


def answer_job(
    connection: Connection, request: results_service_pb2.ResultsServiceGetJobRequest, visible: Visibility = EVERYTHING
) -> results_service_pb2.ResultsServiceGetJobResponse:
    """The job, and the runs around it when asked for. Raises as `get_job`."""
    job = get_job(connection, request.job_id, visible)
    answer = results_service_pb2.ResultsServiceGetJobResponse(job=job)
    if request.with_runs_around and job.receipt.configuration:
        previous, following = _runs_around(connection, job, visible)
        answer.MergeFrom(results_service_pb2.ResultsServiceGetJobResponse(previous=previous, following=following))
    return answer


def _runs_around(
    connection: Connection, job: job_pb2.Job, visible: Visibility
) -> tuple[job_pb2.Job | None, job_pb2.Job | None]:
    """Runs of one configuration and suite are in the order in which they were sealed, as on boards."""
    rows = connection.execute(
        "SELECT job_id, attempt, sealed_at FROM seals WHERE suite = $suite AND configuration = $configuration "
        "ORDER BY sealed_at, job_id DESC",
        {"suite": suite_of(job.spec), "configuration": job.receipt.configuration},
    ).fetchall()
    ended = job.finished_at.ToDatetime() if job.HasField("finished_at") else datetime.max
    ids = [job_id for job_id, _, _ in rows]
    before = ids.index(job.job_id) if job.job_id in ids else sum(sealed_at <= ended for *_, sealed_at in rows)
    earlier, later = rows[:before][::-1], [row for row in rows[before:] if row[0] != job.job_id]
    marked = uncounted(connection, ids) if earlier or later else {}

    def nearest(runs: Sequence[tuple[str, int, datetime]]) -> job_pb2.Job | None:
        for job_id, attempt, _ in runs:
            if job_id not in marked:
                with suppress(NotFoundError):
                    found = get_job(connection, job_id, visible)
                    if found.state == job_pb2.Job.STATE_COMPLETED and found.attempt == attempt:
                        return found
        return None

    return nearest(earlier), nearest(later)


def not_found(connection: Connection, job_id: str, visible: Visibility) -> NotFoundError:
    """The error for a job that does not exist; for one that was deleted it says by whom."""
    return NotFoundError(_deleted(connection, job_id, visible) or refusals.not_found("Benchmark job", job_id))


def _deleted(connection: Connection, job_id: str, visible: Visibility) -> str:
    """Who deleted a job and when, in a sentence; empty for one that was not deleted or that is not visible."""
    found = first_row(
        connection,
        "SELECT deleted_by, deleted_at FROM deleted_jobs WHERE job_id = $job_id "
        "AND ($visible_owner = '' OR owner = $visible_owner)",
        {"job_id": job_id, **visible.parameters},
    )
    return f"Benchmark job {job_id} was deleted by {found[0]} on {found[1]:%Y-%m-%d at %H:%M} UTC." if found else ""


def jobs_by_id(connection: Connection, job_ids: Sequence[str]) -> dict[str, job_pb2.Job]:
    """The jobs that are stored."""
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
    result = _result_of(connection, job)
    for mark in uncounted(connection, [job_id]).values():
        put_mark_on(result, mark)
    result.texts_dropped = text_retention.dropped_at(connection, job_id)
    result.name, result.alias = _names_of(connection, [job])[job_id]
    return result


def _result_of(connection: Connection, job: job_pb2.Job) -> metric_pb2.JobResult:
    sealed = sealed_result(connection, job.job_id, job.attempt)
    if sealed is not None:
        return sealed.result
    kept = archived_items.result_of(connection, job.job_id, job.attempt, RULES) if is_finished(job) else None
    if kept is not None:
        return metric_pb2.JobResult.FromString(kept)
    return compute(connection, job, seal=False).result


def _names_of(connection: Connection, jobs: Sequence[job_pb2.Job]) -> dict[str, tuple[str, str]]:
    """By job its configuration's name and alias, empty where nobody gave one."""
    rows = connection.execute(
        "SELECT configuration, name, alias FROM configuration_names "
        "WHERE configuration IN (SELECT unnest($configurations::VARCHAR[]))",
        {"configurations": list({job.receipt.configuration for job in jobs})},
    ).fetchall()
    held = {configuration: (name, alias) for configuration, name, alias in rows}
    return {job.job_id: held.get(job.receipt.configuration, ("", "")) for job in jobs}


def sealed_result(connection: Connection, job_id: str, attempt: int) -> results_service_pb2.SealJobResponse | None:
    """The answer of sealing this or a later attempt, or None before that."""
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
    if request.job_id and visible.owner and not _deleted(connection, request.job_id, visible):
        get_job(connection, request.job_id, visible)
    rows = connection.execute(
        query("runs/list_events"),
        {"job_id": request.job_id, "after": after[0], "size": size + 1, **visible.parameters},
    ).fetchall()
    events, token = paging.fill_page(
        (job_pb2.JobEvent.FromString(blob) for (blob,) in rows), size, filter_, lambda event: [event.event_id]
    )
    return results_service_pb2.ListEventsResponse(events=events, next_page_token=token)


def jobs_where(
    request: results_service_pb2.ResultsServiceListJobsRequest, visible: Visibility = EVERYTHING
) -> tuple[str, dict[str, Any]]:
    """A request's filters as an SQL condition over `jobs`, with its parameters. Raises InvalidRequestError."""
    require_project(request.project_id)
    for state in request.states:
        if state not in job_pb2.Job.State.values():
            raise InvalidRequestError(refusals.not_valid(state, "state", job_pb2.Job.State.keys()[1:]), "states")
    return query("runs/jobs_where"), {
        "model": request.model,
        "model_query": request.model_query,
        "suite": request.suite,
        "endpoint": request.endpoint,
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
    """Newest first. Raises InvalidRequestError for a bad page or project."""
    jobs, token = read_page(connection, request, visible)
    answer = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=jobs,
        next_page_token=token,
        scores=read_scores(connection, jobs) if request.with_scores else [],
    )
    if not request.without_counts:
        text, parameters = jobs_where(request, visible)
        ((answer.total_size, answer.completed, answer.finished),) = connection.execute(
            query("runs/count_jobs").format(where=text), parameters
        ).fetchall()
    return answer


def read_page(
    connection: Connection,
    request: results_service_pb2.ResultsServiceListJobsRequest,
    visible: Visibility = EVERYTHING,
) -> tuple[list[job_pb2.Job], str]:
    """The jobs of `list_jobs`, without their number, and the next page's token. Raises as `list_jobs`."""
    size = paging.page_size(request.page_size, default=20, most=1000)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str))
    text, parameters = jobs_where(request, visible)
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
    """The averages of each job, in the same order; empty if its present attempt is not sealed. With the name of its
    configuration."""
    if not jobs:
        return []
    attempts = {job.job_id: job.attempt for job in jobs}
    found = {
        job_id: results_service_pb2.JobScores(job_id=job_id, name=name, alias=alias)
        for job_id, (name, alias) in _names_of(connection, jobs).items()
    }
    times = [job.created_at.ToDatetime() for job in jobs]
    text = query("runs/job_scores").format(metric=", ".join(run_scores.METRIC_COLUMNS))
    parameters = {"job_ids": list(found), "first": min(times), "last": max(times)}
    present = uncounted(connection, list(found))
    for job_id, attempt, reason, caution, *metric in connection.execute(text, parameters).fetchall():
        if attempt >= attempts[job_id]:
            average = run_scores.metric_of(metric)
            if not suites.parted(average.metric)[1]:
                found[job_id].averages.append(average)
            found[job_id].not_ranked_reason = present[job_id].words if job_id in present else reason
            found[job_id].caution = caution
    return list(found.values())


@dataclass(frozen=True, slots=True)
class RunMarked:
    """Why a run does not count. `name` is "invalidated" or "superseded"; `superseded_by` a job, or empty; `source` the
    marked job if that is a different one, or empty."""

    name: str
    reason: str
    superseded_by: str
    source: str = ""

    @property
    def words(self) -> str:
        if self.source:
            return f"its answers come from job {self.source}, which was {self.name}: {self.reason.rstrip('.')}"
        by = f" by job {self.superseded_by}" if self.superseded_by else ""
        return f"the run was {self.name}{by}: {self.reason.rstrip('.')}"


def put_mark_on(result: metric_pb2.JobResult, mark: RunMarked) -> None:
    """Says in a result that its run does not count."""
    if not mark.source:
        result.mark, result.mark_reason, result.superseded_by = mark.name, mark.reason, mark.superseded_by
    result.not_ranked_reason = mark.words


def uncounted(connection: Connection, job_ids: Sequence[str]) -> dict[str, RunMarked]:
    """The jobs among these that do not count, by job."""
    rows = connection.execute(
        "SELECT job_id, mark, reason, superseded_by, source FROM uncounted_runs "
        "WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[])) ORDER BY source DESC",
        {"job_ids": job_ids},
    ).fetchall()
    # The run's own mark, without a source, comes last and applies.
    return {job_id: RunMarked(MARKS.of(mark), reason, by, source) for job_id, mark, reason, by, source in rows}


def built_on(connection: Connection, job_id: str) -> list[str]:
    """Jobs whose answers come from this one, directly or through others."""
    rows = connection.execute(
        "WITH RECURSIVE built AS ("
        "SELECT job_id FROM run_sources WHERE source = $job_id "
        "UNION SELECT s.job_id FROM run_sources s JOIN built ON s.source = built.job_id"
        ") FROM built ORDER BY job_id",
        {"job_id": job_id},
    ).fetchall()
    return [built for (built,) in rows]
