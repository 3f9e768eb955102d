"""Jobs that have ended."""

from __future__ import annotations

from services.results.intake import writes
from services.results.storage.database import Connection
from tests.unit.results.builders import event, seal
from touchstone.v1 import job_pb2


def complete(connection: Connection, job: job_pb2.Job) -> None:
    job.state = job_pb2.Job.STATE_COMPLETED
    writes.store_events(connection, [event(f"9-{job.job_id}-{job.attempt}", job)])
    seal(connection, job)
