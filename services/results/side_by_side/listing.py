"""Answers of two to four jobs to the same rows, side by side."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from services.errors import InvalidRequestError, NotFoundError
from services.results.runs import job_reads
from services.results.side_by_side.matching import Matched, match
from services.results.side_by_side.page import MovedError, Page
from services.results.storage import archived_items
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ItemConditions, ListSideBySideRequest, ListSideBySideResponse

FEWEST, MOST = 2, 4

MOST_BYTES = 64 * 1024 * 1024
"""50,000 rows of two jobs take about 7 MB."""

_Key = tuple[tuple[tuple[str, int], ...], str]


class SideBySide:
    """Lists them; what matches in completed jobs is kept for the next page. Safe to use from several threads."""

    def __init__(self) -> None:
        self._kept = Kept()

    def rows(
        self, connection: Connection, request: ListSideBySideRequest, visible: Visibility = EVERYTHING
    ) -> ListSideBySideResponse:
        """In order of task, item and repeat as the first job that has a row numbers it.

        Raises NotFoundError for a job and for a task that no job has, InvalidRequestError for the rest.
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
        raise InvalidRequestError(
            f"job_ids must hold between {FEWEST} and {MOST} jobs; it holds {len(request.job_ids)}.", "job_ids"
        )
    if len(set(request.job_ids)) < len(request.job_ids):
        raise InvalidRequestError("A job is named twice. Name different ones.", "job_ids")
    jobs = [job_reads.get_job(connection, job_id, visible) for job_id in request.job_ids]
    archived_items.require(connection, *request.job_ids)
    tasks = list(dict.fromkeys(plan.task for job in jobs for plan in job.plan))
    if request.task and tasks and request.task not in tasks:
        raise NotFoundError(f"None of the jobs has a task {request.task!r}. Their tasks: {', '.join(tasks)}.")
    return jobs


def _require_common(connection: Connection, request: ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> None:
    """Raises InvalidRequestError where the jobs have no row in common in any task."""
    if not request.task or not match(connection, ListSideBySideRequest(job_ids=request.job_ids), jobs).common:
        raise InvalidRequestError(
            "The jobs have no rows in common. Name jobs over one dataset, over datasets with the same custom ids, "
            "or of one suite. A job that has just started has no rows yet.",
            "job_ids",
        )


class Kept:
    """The last used ones. Safe to use from several threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._known: OrderedDict[_Key, Matched] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key) -> Matched | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def put(self, key: _Key, matched: Matched) -> None:
        with self._lock:
            self._known[key] = matched
            self._known.move_to_end(key)
            while sum(one.rows.nbytes for one in self._known.values()) > self._most_bytes:
                self._known.popitem(last=False)

    def drop(self, key: _Key) -> None:
        with self._lock:
            self._known.pop(key, None)


def key_of(request: ListSideBySideRequest, jobs: Sequence[job_pb2.Job]) -> _Key | None:
    """What matched rows depend on. None where they may still change, and for conditions, which are seldom repeated."""
    plain = not request.query and request.conditions == ItemConditions()
    if not plain or any(job.state != job_pb2.Job.STATE_COMPLETED for job in jobs):
        return None
    return tuple((job.job_id, job.attempt) for job in jobs), request.task
