"""Which jobs' items something else reads again and again: decisions, and watches that continue.

What a job is to a decision or a watch never changes. So each job is unpacked once, however often this is asked.
"""

from __future__ import annotations

from datetime import datetime

from services.results.storage.database import Connection
from services.words.decisions import job_ids
from touchstone.v1 import job_pb2


class Uses:
    """Those of one database."""

    def __init__(self) -> None:
        self._decided: dict[str, list[str]] = {}
        """The jobs of decisions, by that of the baseline."""
        self._referred: dict[str, list[str]] = {}
        """The jobs that watches compare with, by schedule; none for other schedules."""

    def decided(self, connection: Connection) -> list[str]:
        """The jobs of decisions, whose verdicts follow from their items."""
        rows = connection.execute("SELECT job_id FROM jobs WHERE decides").fetchall()
        ids = [job_id for (job_id,) in rows]
        for job_id in ids:
            if job_id not in self._decided:
                self._decided[job_id] = job_ids(_job(connection, job_id))
        return [one for job_id in ids for one in self._decided[job_id]]

    def watches(self, connection: Connection, before: datetime) -> tuple[list[str], list[str]]:
        """The schedules of watches that have asked something since this time, UTC without a zone, and the jobs that
        they compare with. Their alarms follow from the items of all of their runs."""
        rows = connection.execute(
            "SELECT schedule_id, arg_max(job_id, created_at) FROM jobs WHERE schedule_id <> '' "
            "GROUP BY schedule_id HAVING max(created_at) > $before",
            {"before": before},
        ).fetchall()
        for schedule_id, job_id in rows:
            if schedule_id not in self._referred:
                watching = _job(connection, job_id).spec.watching
                self._referred[schedule_id] = [*filter(None, (watching.reference_job_id, watching.again_job_id))]
        found = {schedule_id: self._referred[schedule_id] for schedule_id, _ in rows if self._referred[schedule_id]}
        return [*found], [job_id for referred in found.values() for job_id in referred]


def _job(connection: Connection, job_id: str) -> job_pb2.Job:
    ((blob,),) = connection.execute("SELECT job FROM jobs WHERE job_id = $job_id", {"job_id": job_id}).fetchall()
    return job_pb2.Job.FromString(blob)
