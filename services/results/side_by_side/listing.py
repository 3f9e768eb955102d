"""Answers of two to four jobs to the same rows, row beside row."""

from __future__ import annotations

from collections.abc import Sequence

from services.errors import InvalidRequestError, NotFoundError
from services.results import job_reads
from services.results.database import Connection
from services.results.side_by_side.kept import Kept, key_of
from services.results.side_by_side.matching import match
from services.results.side_by_side.page import MovedError, Page
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ListSideBySideRequest, ListSideBySideResponse

FEWEST, MOST = 2, 4


class SideBySide:
    """Lists them; what matches in completed jobs is kept for the next page. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept = Kept()

    def rows(
        self, connection: Connection, request: ListSideBySideRequest, visible: Visibility = EVERYTHING
    ) -> ListSideBySideResponse:
        """In order of task, item and repeat as the first job that has a row numbers it.

        Raises NotFoundError for a job and for a task that none has, InvalidRequestError for the rest.
        """
        jobs = _jobs(connection, request, visible)
        page = Page(request, jobs)
        key = key_of(request, jobs)
        known = self._kept.get(key) if key is not None else None
        if key is not None and known is not None:
            try:
                return page.read(connection, known)
            except MovedError:
                self._kept.drop(key)
        matched = match(connection, request, jobs)
        if not matched.common:
            _require_common(connection, request, jobs)
        if key is not None:
            self._kept.put(key, matched)
        return page.read(connection, matched)


def _jobs(connection: Connection, request: ListSideBySideRequest, visible: Visibility) -> list[job_pb2.Job]:
    if not FEWEST <= len(request.job_ids) <= MOST:
        raise InvalidRequestError(f"Name {FEWEST} to {MOST} jobs, not {len(request.job_ids)}.", "job_ids")
    if len(set(request.job_ids)) < len(request.job_ids):
        raise InvalidRequestError("A job is named twice. Name different ones.", "job_ids")
    jobs = [job_reads.get_job(connection, job_id, visible) for job_id in request.job_ids]
    tasks = list(dict.fromkeys(plan.task for job in jobs for plan in job.plan))
    if request.task and tasks and request.task not in tasks:
        raise NotFoundError(f"No job has a task {request.task!r}. They have: {', '.join(tasks)}.")
    return jobs


def _require_common(connection: Connection, request: ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> None:
    """Raises InvalidRequestError where the jobs have no row in common, in no task."""
    if not request.task or not match(connection, ListSideBySideRequest(job_ids=request.job_ids), jobs).common:
        raise InvalidRequestError(
            "The jobs have no row in common. Name jobs over one dataset, over datasets with the same custom ids, or "
            "of one suite; a job that has just begun has no rows yet.",
            "job_ids",
        )
