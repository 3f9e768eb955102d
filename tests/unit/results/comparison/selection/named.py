"""Runs that are compared by name."""

from __future__ import annotations

from services.results.comparison.selection import subjects
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from tests.unit.results.finished import finished, right_or_wrong, task
from touchstone.v1 import comparison_pb2, job_pb2


def run(connection: Connection, job_id: str, model: str, pattern: str = "1101", **fields: object) -> job_pb2.Job:
    return finished(connection, job_id, task("sst2", right_or_wrong(pattern)), model=model, **fields)  # type: ignore[arg-type]


def chosen(connection: Connection, *names: str, visible: Visibility = EVERYTHING, **fields: object) -> subjects.Chosen:
    fields.setdefault("suite", "glue")
    request = comparison_pb2.CompareRequest(subjects=names, **fields)  # type: ignore[arg-type]
    return subjects.choose(connection, request, visible)


def jobs(found: subjects.Chosen) -> dict[str, str]:
    return {one.subject: one.job_id for one in found.runs}
