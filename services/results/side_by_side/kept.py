"""Matched rows of completed jobs, which no longer change, kept from one page to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from services.results.side_by_side.matching import Matched
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ItemConditions, ListSideBySideRequest

MOST_BYTES = 64 * 1024 * 1024
"""50,000 rows of two jobs take about 7 MB."""

_Key = tuple[tuple[tuple[str, int], ...], str]


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
    """What matched rows hang on. None where they may still change, and for conditions, which seldom come again."""
    plain = not request.query and request.conditions == ItemConditions()
    if not plain or any(job.state != job_pb2.Job.STATE_COMPLETED for job in jobs):
        return None
    return tuple((job.job_id, job.attempt) for job in jobs), request.task
