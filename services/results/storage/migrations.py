"""The DuckDB file: opening it, hardened, and bringing it to the newest schema. What SQL cannot do, such as filling new
columns from serialised jobs that were stored before, is done in Python.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from services.errors import UnavailableError
from services.results.storage import run_scores
from services.results.storage.database import Connection, damage, damaged, not_a_database
from services.words.jobs import suite_of
from touchstone.v1 import job_pb2, metric_pb2

log = logging.getLogger(__name__)

_AT_ONCE = 20_000
"""Rows per read: a serialised job takes a few kilobytes."""

# Only our own SQL runs here, so nothing outside the file is ever needed.
_HARDENED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # A page of a thousand jobs is found by narrow columns, then read by row; a page of ids by their index.
    "late_materialization_max_rows": "1001",
    "dynamic_or_filter_threshold": "1001",
}
MEMORY = "600MB"
"""What DuckDB may hold; Python, gRPC and what is being packed come on top."""


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


def fill_schedules(connection: DuckDBPyConnection) -> None:
    """Migration 26: the schedules of jobs."""
    columns: dict[str, list[str]] = {"job_id": [], "schedule_id": []}
    for job_id, blob in _rows(connection, "SELECT job_id, job FROM jobs"):
        if schedule_id := job_pb2.Job.FromString(blob).spec.schedule_id:
            columns["job_id"].append(job_id)
            columns["schedule_id"].append(schedule_id)
    _update(connection, "jobs", pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()}))


BACKFILLS: dict[int, Callable[[DuckDBPyConnection], None]] = {
    4: fill_run_scores,
    6: fill_run_sources,
    9: run_scores.fill_unranked,
    26: fill_schedules,
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


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration in schema.sql, in order."""
    text = (resources.files(__package__) / "schema.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- migration (\d+):.*$", text, flags=re.MULTILINE)
    return [(int(number), sql) for number, sql in zip(parts[1::2], parts[2::2], strict=True)]


def open_file(path: Path, *folders: Path) -> Connection:
    """Opens or creates the database and brings it to the newest schema. Apart from it, DuckDB can reach only files in
    `folders`.

    Raises DamagedFilesError when its files are damaged, and UnavailableError when another process has it open, the disk
    refuses, or a newer Touchstone wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if why := not_a_database(path):
            raise damaged(path, why)
        connection = duckdb.connect(str(path), config={**_HARDENED, "memory_limit": MEMORY})
        _lock_in(connection, folders)
        _migrate(connection)
        connection.checkpoint()
    except (duckdb.Error, OSError) as error:
        if (found := damage(error, path)) is not None:
            raise found from error
        raise UnavailableError(
            f"The results database {path} cannot be opened: {error}. Check that no other results service uses it "
            "and that its disk has space."
        ) from error
    return connection


def open_copy(path: Path) -> Connection:
    """Opens a copy of a database for reading alone. Raises UnavailableError if it cannot be read or has another schema
    than this version's."""
    try:
        settings: dict[str, Any] = {**_HARDENED, "memory_limit": MEMORY}
        if not os.access(path.parent, os.W_OK):
            # Next to the copy there is no room for what does not fit into memory.
            settings["temp_directory"] = str(Path(tempfile.gettempdir()) / f"touchstone-{os.getpid()}-{path.stem}")
        connection = duckdb.connect(str(path), read_only=True, config=settings)
        try:
            _lock_in(connection, ())
            ((schema,),) = connection.execute("SELECT max(number) FROM migrations").fetchall()
            if schema != (known := migrations()[-1][0]):
                raise UnavailableError(f"It has schema {schema}; this version reads {known}.")
        except BaseException:
            connection.close()
            raise
    except (duckdb.Error, OSError) as error:
        raise UnavailableError(f"It cannot be read: {str(error).splitlines()[0]}") from error
    return connection


def _lock_in(connection: Connection, folders: Sequence[Path]) -> None:
    # Not by the configuration above, which takes no folders.
    allowed = ", ".join("'" + str(folder.absolute()).replace("'", "''") + "/'" for folder in folders)
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _migrate(connection: Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, applied_at TIMESTAMP)")
    done = {number for (number,) in connection.execute("SELECT number FROM migrations").fetchall()}
    known = migrations()
    if done and max(done) > max(number for number, _ in known):
        raise UnavailableError(
            f"A newer Touchstone wrote the results database (schema {max(done)}). Start that version or a later one."
        )
    for number, sql in known:
        if number not in done:
            connection.begin()
            connection.execute(sql)
            if number in BACKFILLS:
                BACKFILLS[number](connection)
            connection.execute("INSERT INTO migrations VALUES ($number, now() AT TIME ZONE 'UTC')", {"number": number})
            connection.commit()
            log.info("applied migration %d", number)
