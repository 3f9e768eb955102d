"""What migrations cannot do in SQL: filling new columns and tables from serialised jobs that were stored before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from services.results.storage import run_scores
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2, metric_pb2

_AT_ONCE = 20_000
"""Rows per read: a serialised job takes a few kilobytes."""


def fill_run_scores(connection: DuckDBPyConnection) -> None:
    """Migration 4: columns of jobs and seals, scores of runs, item sets."""
    columns: dict[str, list[Any]] = {name: [] for name in ("job_id", "baseline", "incomplete", "finished_at")}
    sets: dict[tuple[str, str], job_pb2.Job] = {}
    for job_id, blob in _rows(connection, "SELECT job_id, job FROM jobs"):
        job = job_pb2.Job.FromString(blob)
        finished = job.finished_at.ToDatetime() if job.HasField("finished_at") else None
        for name, value in zip(columns, (job_id, job.baseline, job.incomplete, finished), strict=True):
            columns[name].append(value)
        if job.item_set:
            sets[suite_of(job.spec), job.item_set] = job
    types = {"finished_at": pa.timestamp("us"), "job_id": pa.string()}
    arrays = {name: pa.array(values, types.get(name, pa.bool_())) for name, values in columns.items()}
    _update(connection, "jobs", pa.table(arrays))
    reasons: dict[str, list[str]] = {"job_id": [], "not_ranked_reason": []}
    for job_id, blob in _rows(connection, "SELECT job_id, result FROM seals"):
        reasons["job_id"].append(job_id)
        reasons["not_ranked_reason"].append(metric_pb2.JobResult.FromString(blob).not_ranked_reason)
    _update(connection, "seals", pa.table({name: pa.array(values, pa.string()) for name, values in reasons.items()}))
    run_scores.fill(connection)
    for job in sets.values():
        run_scores.add_item_set(connection, job)


def fill_run_sources(connection: DuckDBPyConnection) -> None:
    """Migration 6: whose answers jobs took; runs with answers of an invalidated one no longer count."""
    sources: dict[str, list[str]] = {"job_id": [], "source": []}
    for job_id, blob in _rows(connection, "SELECT job_id, job FROM jobs"):
        job = job_pb2.Job.FromString(blob)
        if job.spec.reuse.job_id:
            sources["job_id"].append(job_id)
            sources["source"].append(job.spec.reuse.job_id)
    connection.register("filled", pa.table({name: pa.array(each, pa.string()) for name, each in sources.items()}))
    connection.execute("INSERT INTO run_sources FROM filled")
    connection.unregister("filled")
    for (job_id,) in connection.execute("SELECT DISTINCT job_id FROM uncounted_runs WHERE source <> ''").fetchall():
        run_scores.refresh(connection, job_id)


BACKFILLS: dict[int, Callable[[DuckDBPyConnection], None]] = {
    4: fill_run_scores,
    6: fill_run_sources,
    9: run_scores.fill_unranked,
}
"""By migration, run in its transaction."""


def _rows(connection: DuckDBPyConnection, select: str) -> Iterator[tuple[Any, ...]]:
    last = -1
    while True:
        text = f"{select} WHERE rowid > $last ORDER BY rowid LIMIT {_AT_ONCE}".replace("SELECT", "SELECT rowid,", 1)
        rows = connection.execute(text, {"last": last}).fetchall()
        if not rows:
            return
        last = rows[-1][0]
        yield from (row[1:] for row in rows)


def _update(connection: DuckDBPyConnection, table: str, values: pa.Table) -> None:
    """Sets columns of a table by `job_id`."""
    if not values.num_rows:
        return
    changes = ", ".join(f"{name} = filled.{name}" for name in values.column_names if name != "job_id")
    connection.register("filled", values)
    connection.execute(f"UPDATE {table} SET {changes} FROM filled WHERE {table}.job_id = filled.job_id")
    connection.unregister("filled")
