"""What is wrong with a database, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import duckdb

from services.results.runs import job_reads
from services.results.scores.job_result import compute
from services.results.storage.database import Connection
from touchstone.v1 import job_pb2, metric_pb2

COMPUTED = "the next start computes it"
"""The end of a sentence about a fault without loss."""
_RECOMPUTED = 20
"""Newest results that are computed again."""


def database_faults(connection: Connection) -> Iterator[str]:
    """Reads every table completely, then compares stored answers with plans and stored results with computed ones."""
    names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
    damaged = False
    for name in names:
        try:
            connection.execute(f"SELECT bit_xor(hash(t)) FROM {name} t").fetchall()
        except duckdb.Error as error:
            damaged = True
            yield f"the table {name} cannot be read: {str(error).splitlines()[0][:200]}"
    if not damaged:
        yield from _repeated(connection, names)
        yield from _contradictions(connection)


def _repeated(connection: Connection, names: Collection[str]) -> Iterator[str]:
    for key, table in (
        ("job_id, task, item, repeat", "items"),
        ("number", "annotations"),
        ("number", "marks"),
        ("number", "preferences"),
        ("number", "rubrics"),
        ("number", "ratings"),
    ):
        # A file that an earlier version left behind lacks later tables until the next start.
        if table not in names:
            continue
        ((twice,),) = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1)"
        ).fetchall()
        if twice:
            yield f"{table}: {twice:,} rows are stored twice"


def _contradictions(connection: Connection) -> Iterator[str]:
    unsealed = connection.execute(
        "SELECT job_id FROM jobs ANTI JOIN seals USING (job_id, attempt) WHERE state = $completed ORDER BY job_id",
        {"completed": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    yield from (f"job {job_id} is completed but has no result; {COMPUTED}" for (job_id,) in unsealed)
    away = _away(connection)
    missing = connection.execute(
        "SELECT j.job_id, j.planned, count(i.job_id), s.missing FROM jobs j JOIN seals s USING (job_id, attempt) "
        f"LEFT JOIN items i ON i.job_id = j.job_id WHERE j.state = $completed AND j.planned IS NOT NULL {away}"
        "GROUP BY ALL HAVING count(i.job_id) + s.missing <> j.planned ORDER BY j.job_id",
        {"completed": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    for job_id, planned, stored, known in missing:
        yield f"job {job_id}: {stored:,} of {planned - known:,} answers are stored"
    unknown = connection.execute(
        "SELECT job_id, s.missing FROM jobs j JOIN seals s USING (job_id, attempt) "
        "WHERE j.state = $completed AND s.missing > 0 AND NOT j.incomplete ORDER BY job_id",
        {"completed": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    yield from (f"job {job_id} was complete, but {lost:,} of its answers are lost" for job_id, lost in unknown)
    if not missing:
        yield from _wrong_results(connection)


def _away(connection: Connection) -> str:
    """SQL that leaves out jobs whose items are in the archive alone. A file of an earlier version knows none."""
    known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'archived_items'").fetchall()
    return "AND job_id NOT IN (SELECT job_id FROM archived_items WHERE returned_at IS NULL) " if known else ""


def _wrong_results(connection: Connection) -> Iterator[str]:
    newest = connection.execute(
        "SELECT s.job_id, s.result FROM seals s JOIN jobs j USING (job_id, attempt) WHERE j.state = $completed "
        f"{_away(connection)}ORDER BY s.sealed_at DESC LIMIT {_RECOMPUTED}",
        {"completed": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    for job_id, result in newest:
        computed = compute(connection, job_reads.get_job(connection, job_id), seal=True)
        if _figures(metric_pb2.JobResult.FromString(result)) != _figures(computed.result):
            yield f"job {job_id}: its result does not match its items"


def _figures(result: metric_pb2.JobResult) -> list[tuple[str, str, int, float]]:
    return [
        (task.task, metric.metric, metric.n, round(metric.mean, 9)) for task in result.tasks for metric in task.metrics
    ]
