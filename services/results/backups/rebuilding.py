"""A database built from what can still be read: the damaged file, table by table, and the files of finished jobs. The
streams add the rest when the results service starts: no position is copied, so all of them are read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from services.errors import TouchstoneError, UnavailableError
from services.results.archive.restoring import restore_jobs
from services.results.archive.rows import add_items
from services.results.backups.checking import COMPUTED, database_faults
from services.results.intake.writes import Mark
from services.results.storage import archived_items
from services.results.storage.database import Connection
from services.results.storage.job_files import is_whole
from services.results.storage.migrations import open_file
from services.results.stores.store import Store

Say = Callable[[str], None]

_WHOLE = (
    # Computed tables belong together, and are computed again if missing.
    ("seals", "metrics", "run_scores", "current_scores", "item_sets"),
    # A dataset without its shards would lose them; the store of datasets adds the missing ones.
    ("datasets", "dataset_shards", "dataset_requests"),
    ("archived_identities",),
    ("imports", "imported_answers"),
)
_IN_PART = (
    "deleted_jobs",
    "events",
    "jobs",
    "run_sources",
    "answer_texts",
    "marks",
    "annotations",
    "preferences",
    "rubrics",
    "ratings",
    "configuration_names",
    "archived_items",
    "items",
)
"""Tables with a primary key, of which every row counts for itself."""
_IMPORTS = _WHOLE[-1]
_RANGE = 2048
"""Rows per read if a table cannot be read as a whole."""


def rebuild(damaged: Path, jobs: Path, fresh: Path, say: Say, archive: Store | None = None) -> None:
    """Builds `fresh` from the damaged database, which may be missing, the folder of job files, and an archive. Raises
    UnavailableError when the disk refuses or the archive cannot be reached."""
    target = open_file(fresh, jobs, _scratch(fresh))
    try:
        source = _opened(damaged, fresh.parent, say)
        if source is not None:
            try:
                for tables in _WHOLE:
                    _take_whole(source, target, tables, say)
                for table in _IN_PART:
                    _take_part(source, target, table, say)
            finally:
                source.close()
        _take_files(target, jobs, say)
        if archive is not None:
            restore_jobs(target, archive, _scratch(fresh), say)
        target.checkpoint()
    finally:
        target.close()


def complete(
    backup: Callable[[Path], object],
    fresh: Path,
    present: Path,
    jobs: Path,
    given_up: Mark | None,
    say: Say,
    archive: Store | None = None,
) -> None:
    """Lets `backup` copy a backup's database to `fresh`. Adds the answers and imports of the present one that can be
    read, the files of finished jobs, and an archive: RESULTS no longer has most of these. `given_up` is the last
    position that it no longer has; the next start does not look for it. Raises as `rebuild`, and OSError."""
    backup(fresh)
    try:
        target = open_file(fresh, jobs, _scratch(fresh))
    except UnavailableError as error:
        say(f"Answers from after the backup are not restored. {error.message}")
        backup(fresh)
        return
    try:
        source = _opened(present, fresh.parent, say)
        if source is not None:
            try:
                _take_imports(source, target)
                _take_part(source, target, "items", say)
            finally:
                source.close()
        _take_files(target, jobs, say)
        if archive is not None:
            restore_jobs(target, archive, _scratch(fresh), say)
        if given_up is not None:
            target.execute(
                "UPDATE positions SET sequence = greatest(sequence, $sequence) "
                "WHERE stream = $stream AND created = $created",
                {"stream": given_up.stream, "created": given_up.created, "sequence": given_up.sequence},
            )
        target.checkpoint()
    finally:
        target.close()


def keep(whole: Path, fresh: Path) -> bool:
    """Copies a database to `fresh`, so that all streams are read again. False, without a copy, if it is damaged,
    missing or without some answers, or was written by a newer version."""
    if not whole.is_file():
        return False
    shutil.copyfile(whole, fresh)
    log, copied = whole.with_suffix(".duckdb.wal"), fresh.with_suffix(".duckdb.wal")
    if log.is_file():
        shutil.copyfile(log, copied)
    try:
        connection = open_file(fresh)
        try:
            kept = all(fault.endswith(COMPUTED) for fault in database_faults(connection))
            connection.execute("DELETE FROM positions")
            connection.checkpoint()
        finally:
            connection.close()
    except (TouchstoneError, duckdb.Error):
        kept = False
    copied.unlink(missing_ok=True)
    if not kept:
        fresh.unlink(missing_ok=True)
    return kept


def add_archived(fresh: Path, archive: Store, say: Say, only: Collection[str] = ()) -> None:
    """Adds an archive's jobs to a database, which is created if there is none. Raises UnavailableError."""
    target = open_file(fresh, _scratch(fresh))
    try:
        restore_jobs(target, archive, _scratch(fresh), say, only)
        target.checkpoint()
    finally:
        target.close()


def _scratch(fresh: Path) -> Path:
    """Where files of an archive are copied to, before they are read."""
    return fresh.parent / "archived"


def _opened(damaged: Path, folder: Path, say: Say) -> Connection | None:
    """A copy of the database, without its log if that is the damaged part."""
    log = damaged.with_suffix(".duckdb.wal")
    copy = folder / "damaged.duckdb"
    for with_log in (True, False) if log.is_file() else (False,):
        for old in (copy, copy.with_suffix(".duckdb.wal")):
            old.unlink(missing_ok=True)
        if not damaged.is_file():
            say(f"{damaged} does not exist.")
            return None
        shutil.copyfile(damaged, copy)
        if with_log:
            shutil.copyfile(log, copy.with_suffix(".duckdb.wal"))
        try:
            return duckdb.connect(str(copy))
        except duckdb.Error as error:
            what = "with its log " if with_log else ""
            say(f"{damaged} {what}cannot be read: {str(error).splitlines()[0][:200].replace(str(copy), str(damaged))}")
    return None


def _take_whole(source: Connection, target: Connection, tables: tuple[str, ...], say: Say) -> None:
    try:
        found = {table: _table(source, f"FROM {table}") for table in tables}
    except duckdb.Error:
        say(f"{', '.join(tables)}: cannot be read; the next start rebuilds them.")
        return
    for table, rows in found.items():
        _insert(target, table, rows)
        if rows.num_rows:
            say(f"{table}: {rows.num_rows:,} rows")


def _take_imports(source: Connection, target: Connection) -> None:
    try:
        found = {table: _table(source, f"FROM {table}") for table in _IMPORTS}
    except duckdb.Error:
        return  # Those of the backup stay.
    for table, rows in found.items():
        target.execute(f"DELETE FROM {table}")
        _insert(target, table, rows)


def _take_part(source: Connection, target: Connection, table: str, say: Say) -> None:
    taken, lost = 0, 0
    for rows in _readable(source, table):
        if isinstance(rows, int):
            lost += rows
        else:
            if table == "items":
                target.register("taken", rows)
                add_items(target, "taken")
                target.unregister("taken")
            else:
                _insert(target, table, rows, "ON CONFLICT DO NOTHING")
            taken += rows.num_rows
    if taken or lost:
        say(f"{table}: {taken:,} rows" + (f", up to {lost:,} cannot be read" if lost else ""))


def _readable(source: Connection, table: str) -> Iterator[pa.Table | int]:
    """Rows by row group, or the number of unreadable ones."""
    try:
        ((last,),) = source.execute(f"SELECT coalesce(max(rowid), -1) FROM {table}").fetchall()
    except duckdb.Error:
        sized = source.execute("SELECT estimated_size FROM duckdb_tables() WHERE table_name = $t", {"t": table})
        found = sized.fetchall()
        last = found[0][0] - 1 if found else -1
    step = _RANGE * 60
    for start in range(0, int(last) + 1, step):
        try:
            yield _between(source, table, start, start + step)
        except duckdb.Error:
            for part in range(start, min(start + step, int(last) + 1), _RANGE):
                try:
                    yield _between(source, table, part, part + _RANGE)
                except duckdb.Error:
                    yield min(_RANGE, int(last) + 1 - part)


def _between(source: Connection, table: str, start: int, stop: int) -> pa.Table:
    return _table(source, f"FROM {table} WHERE rowid >= {start} AND rowid < {stop}")


def _table(source: Connection, sql: str) -> pa.Table:
    found = source.sql(sql)
    assert found is not None
    return found.to_arrow_table()


def _insert(target: Connection, table: str, rows: pa.Table, otherwise: str = "") -> None:
    target.register("taken", rows)
    target.execute(f"INSERT INTO {table} BY NAME FROM taken {otherwise}")
    target.unregister("taken")


def _take_files(target: Connection, jobs: Path, say: Say) -> None:
    before = _count(target)
    for path in sorted(jobs.glob("*.parquet")):
        name = str(path.absolute()).replace("'", "''")
        try:
            if is_whole(path):
                add_items(target, f"read_parquet('{name}')")
            else:
                say(f"{path} is damaged, so nothing is restored from it: its answers may be wrong.")
        except (duckdb.Error, OSError) as error:
            say(f"{path} cannot be read: {str(error).splitlines()[0][:200]}")
    archived_items.note_found(target, datetime.now(UTC).replace(tzinfo=None))
    # Their files may have outlived them.
    target.execute("DELETE FROM items WHERE job_id IN (SELECT job_id FROM deleted_jobs)")
    if (more := _count(target) - before) > 0:
        say(f"items: {more:,} rows from the files of finished jobs")


def _count(target: Connection) -> int:
    ((count,),) = target.execute("SELECT count(*) FROM items").fetchall()
    return int(count)
