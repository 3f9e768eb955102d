"""Runs that do not count: invalidated or superseded with a reason, or with answers of one that was invalidated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.storage.database import Connection
from services.words.enums import MARKS
from touchstone.v1 import metric_pb2


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


def put_on(result: metric_pb2.JobResult, mark: RunMarked) -> None:
    """Says in a result that its run does not count."""
    if not mark.source:
        result.mark, result.mark_reason, result.superseded_by = mark.name, mark.reason, mark.superseded_by
    result.not_ranked_reason = mark.words


def present(connection: Connection, job_ids: Sequence[str]) -> dict[str, RunMarked]:
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
