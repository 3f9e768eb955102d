"""Marks of runs that do not count: invalidated or superseded, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.database import Connection
from touchstone.v1 import metric_pb2
from touchstone.v1 import results_service_pb2 as pb

NAMES = {pb.RUN_MARK_INVALIDATED: "invalidated", pb.RUN_MARK_SUPERSEDED: "superseded"}


@dataclass(frozen=True, slots=True)
class RunMarked:
    """Why a run does not count. `name` is "invalidated" or "superseded"; `superseded_by` a job, or empty."""

    name: str
    reason: str
    superseded_by: str

    @property
    def words(self) -> str:
        by = f" by job {self.superseded_by}" if self.superseded_by else ""
        return f"the run was {self.name}{by}: {self.reason.rstrip('.')}"


def put_on(result: metric_pb2.JobResult, mark: RunMarked) -> None:
    """Says in a result that its run does not count."""
    result.mark, result.mark_reason, result.superseded_by = mark.name, mark.reason, mark.superseded_by
    result.not_ranked_reason = mark.words


def present(connection: Connection, job_ids: Sequence[str]) -> dict[str, RunMarked]:
    """Of these jobs those that do not count, by job."""
    rows = connection.execute(
        "SELECT job_id, mark, reason, superseded_by FROM present_marks "
        "WHERE mark <> $valid AND job_id IN (SELECT unnest($job_ids::VARCHAR[]))",
        {"valid": pb.RUN_MARK_VALID, "job_ids": job_ids},
    ).fetchall()
    return {job_id: RunMarked(NAMES[mark], reason, by) for job_id, mark, reason, by in rows}
