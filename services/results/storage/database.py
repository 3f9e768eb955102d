"""The open DuckDB file: one writer thread and a few reader threads, with separate ones for quick and for long reads.

A write that the disk refuses leaves the file as it was, but the open database can no longer be trusted: `lost` is set,
the process ends, and the next one opens the file again.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import duckdb

from services import numbers
from services.errors import DamagedFilesError, UnavailableError
from services.results.storage.items_away import BringBack, Lend, with_items
from services.telemetry import metrics
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2

_NUMBERS: dict[str, int] = {
    name: number
    for enum in (item_result_pb2.Outcome, job_pb2.Job.State, results_service_pb2.RunMark, suite_pb2.Weighting)
    for name, number in enum.items()
}
_NAME = re.compile(r"\b(?:OUTCOME|STATE|RUN_MARK|WEIGHTING)_[A-Z_]+\b")
T = TypeVar("T")
Connection = duckdb.DuckDBPyConnection

READERS, LONG_READERS = 4, 3
STREAMERS = 2
_CHECKPOINT_S, _CHECKPOINT_AGAIN_S = 2.0, 0.02
FATAL = (duckdb.FatalException, duckdb.IOException, duckdb.InternalException)
_DAMAGE = re.compile(r"corrupt|checksum|not a valid DuckDB|Could not read enough bytes|replaying WAL|serializ", re.I)
_OTHERS_READ = re.compile(r"Cannot CHECKPOINT: there are other")
_PASSING = re.compile(r"No space left|Could not set lock|Permission denied|Too many open files", re.I)


_MAGIC, _MAGIC_AT = b"DUCK", 8
_KNOWN_USD = re.compile(r"known_usd\((\w+)\)")


def with_numbers(sql: str) -> str:
    """The SQL with the stored numbers for names of enum values, as in `outcome <> OUTCOME_REFUSED`. Raises KeyError for
    a name of these enums that the protos do not have."""
    return _NAME.sub(lambda found: str(_NUMBERS[found[0]]), sql)


@cache
def query(name: str) -> str:
    """The text of `queries/<name>.sql`, with numbers for the names of enum values. A name begins with the folder of the
    modules that use the query. `known_usd(column)` in it is written out: DuckDB would keep such a macro in the file,
    whose version it then depends on."""
    text = (resources.files(__package__) / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return with_numbers(_KNOWN_USD.sub(lambda found: known_usd(found[1]), text))


def known_usd(column: str) -> str:
    """SQL of an answer's cost, NULL for an impossible one: earlier versions stored whatever a provider said."""
    return f"CASE WHEN {column} BETWEEN 0 AND {numbers.MOST_USD} THEN {column} END"


def first_row(connection: Connection, sql: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """The first row, or None. Reads all rows: DuckDB keeps a connection busy until a result is read to its end."""
    rows = connection.execute(sql, parameters).fetchall()
    return rows[0] if rows else None


def deleted_among(connection: Connection, job_ids: Iterable[str]) -> set[str]:
    """The jobs among these that were deleted."""
    rows = connection.execute(
        "SELECT job_id FROM deleted_jobs WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[]))",
        {"job_ids": list(job_ids)},
    ).fetchall()
    return {job_id for (job_id,) in rows}


def path_of(connection: Connection) -> Path:
    """The file that the connection has open."""
    found = first_row(connection, "SELECT path FROM duckdb_databases() WHERE database_name = current_database()", {})
    return Path(found[0] if found and found[0] else "results")


@contextlib.contextmanager
def writing_elsewhere() -> Iterator[None]:
    """Makes a disk that refuses another file raise OSError: the database itself is unchanged."""
    try:
        yield
    except duckdb.IOException as error:
        raise OSError(errno.EIO, str(error).splitlines()[0]) from error


def damage(error: Exception, path: Path) -> DamagedFilesError | None:
    """The message for a DuckDB error that a damaged file causes; None for any other error."""
    text = " ".join(str(error).split())
    if not isinstance(error, duckdb.Error) or _PASSING.search(text) or not _DAMAGE.search(text):
        return None
    return damaged(path, text[:300].rstrip("."))


def not_a_database(path: Path) -> str:
    """Why the file, or its log, cannot be opened as a DuckDB database; empty where it can. For a file of another
    database, such as SQLite, DuckDB would look for an extension."""
    for place in (path, path.with_suffix(f"{path.suffix}.wal")):
        if os.path.lexists(place) and not place.is_file():
            return f"{place} is not a file"
    if path.is_file():
        with path.open("rb") as file:
            if file.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] != _MAGIC:
                return f"{path} is not a DuckDB file"
    return ""


def damaged(path: Path, why: str) -> DamagedFilesError:
    """The sentence that says so, with the commands that help."""
    state = path.parent.parent
    return DamagedFilesError(
        f"The results database {path} is damaged: {why}. Stop Touchstone, then run "
        f"`touchstone restore BACKUP --state-dir {state}` with a backup, or `touchstone repair --state-dir {state}` "
        "without one. Both keep the damaged files."
    )


class Reads(Protocol):
    """What can be asked of a database, and of a copy of one: see `Database`."""

    @property
    def version(self) -> int: ...

    @property
    def jobs_version(self) -> int: ...

    @property
    def bring_back(self) -> BringBack | None: ...

    @property
    def lend(self) -> Lend | None: ...

    async def read(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T: ...

    async def read_long(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T: ...

    def stream(self, make: Callable[[Connection], Iterator[T]]) -> AsyncGenerator[T]: ...


class Database:
    """Runs functions against the database off the event loop: writes one at a time, reads side by side."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.path = path_of(connection)
        self._writer = ThreadPoolExecutor(1, "writer")
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._long_readers = ThreadPoolExecutor(LONG_READERS, "long reader")
        self._streamers = ThreadPoolExecutor(STREAMERS, "streamer")
        self._copier = ThreadPoolExecutor(1, "copier")
        self._copying: Connection | None = None
        self._operations = {
            self._writer: metrics.WRITE,
            self._readers: metrics.READ,
            self._long_readers: metrics.LONG_READ,
        }
        self.lost = asyncio.Event()
        self.damage: DamagedFilesError | None = None
        """Why the file cannot be trusted, if the database was lost for that reason."""
        self.version = 0
        """Counts the changes that are stored."""
        self.jobs_version = 0
        """Counts those of them that boards, trends and lists of configurations may show."""
        self.behind = False
        """Whether a checkpoint is still to be done."""
        self.bring_back: BringBack | None = None
        """Brings items of these jobs back, which a read or a change needs and which are in the archive alone."""
        self.lend: Lend | None = None
        """Copies such items instead, for one read that needs those of many jobs."""

    async def write(self, change: Callable[[Connection], T], *, of_jobs: bool = True) -> T:
        """Runs `change` in a transaction and commits it to disk; not `of_jobs` are answers and calls alone, which no
        board shows before their job is sealed. Raises UnavailableError when the disk refuses."""
        work = partial(self._run, self._writer, partial(self._counted, change, of_jobs))
        return await with_items(self.bring_back, work)

    async def checkpoint(self) -> None:
        """Moves what was committed so far from the log into the file: for data that exists nowhere else, which a lost
        log would otherwise take along. DuckDB refuses it while a read is open that began before the last changed row.
        After two seconds of refusals, `catch_up` does it later. Raises as `write`."""
        self.behind = True
        until = time.monotonic() + _CHECKPOINT_S
        while True:
            if await self.catch_up() or time.monotonic() > until:
                return
            await asyncio.sleep(_CHECKPOINT_AGAIN_S)

    async def catch_up(self) -> bool:
        """Tries a checkpoint that is still to be done. Returns whether none is. Raises as `write`."""
        if self.behind:
            self.behind = not await self._run(self._writer, self._checkpoint)
        return not self.behind

    async def read(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T:
        """Runs `ask` on its own cursor, on one snapshot of everything committed so far. Unless it `waits` for items
        that it lacks, raises ItemsAwayError."""
        work = partial(self._run, self._readers, partial(self._snapshot, ask))
        return await with_items(self.bring_back if waits else None, work)

    async def read_long(self, ask: Callable[[Connection], T], *, waits: bool = True) -> T:
        """As `read`, for reads that may take seconds: quick reads wait only for each other, never for these."""
        work = partial(self._run, self._long_readers, partial(self._snapshot, ask))
        return await with_items(self.bring_back if waits else None, work)

    async def stream(self, make: Callable[[Connection], Iterator[T]]) -> AsyncGenerator[T]:
        """What `make` yields, on one snapshot. Each step takes its own thread, so a slow reader holds none. The file is
        not tidied up meanwhile, so the reader must come to an end. Raises as `read`."""
        snapshot, found = await with_items(self.bring_back, partial(self._begun, make))
        try:
            while found is not None:
                yield found[0]
                found = await self._run(self._streamers, snapshot.step)
        finally:
            await self._end(snapshot)

    async def _begun(self, make: Callable[[Connection], Iterator[T]]) -> tuple[_Snapshot[T], tuple[T] | None]:
        """With the first value: what a read lacks shows there."""
        snapshot = _Snapshot(self._connection, make)
        try:
            return snapshot, await self._run(self._streamers, snapshot.step)
        except BaseException:
            await self._end(snapshot)
            raise

    async def _end(self, snapshot: _Snapshot[T]) -> None:
        # At shutdown there are no threads any more, and the file closes with its cursors.
        with contextlib.suppress(RuntimeError):
            await asyncio.get_running_loop().run_in_executor(self._streamers, snapshot.close)

    async def copy(self, path: Path) -> None:
        """Writes everything committed so far to a new file, on one snapshot, while writes continue. Reads every block,
        so that a damaged one is noticed. `close` gives it up. Raises as `read`, and OSError when the new file cannot be
        written."""
        await self._run(self._copier, partial(self._copy, path))

    async def close(self) -> None:
        """Waits for what is running, then closes the file."""
        if (copying := self._copying) is not None:
            with contextlib.suppress(duckdb.Error):  # it has just ended
                copying.interrupt()
        for pool in (self._writer, self._readers, self._long_readers, self._streamers, self._copier):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
        with contextlib.suppress(duckdb.Error):
            self._connection.close()

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work)
        except duckdb.Error as error:
            if (found := damage(error, self.path)) is not None:
                self.damage = found
                self.lost.set()
                raise found from error
            if not isinstance(error, FATAL):
                raise
            self.lost.set()
            raise UnavailableError(
                f"The results database cannot be used: {error}. Free some disk space; the service then opens it again."
            ) from error
        finally:
            if (operation := self._operations.get(pool)) is not None:
                metrics.DATABASE_SECONDS.observe(time.monotonic() - began, operation)

    def _counted(self, change: Callable[[Connection], T], of_jobs: bool) -> T:
        """Counts after the commit, in the writer's thread: a caller that goes away does not end the transaction."""
        try:
            return self._transaction(change)
        finally:
            self.version += 1
            self.jobs_version += of_jobs

    def _transaction(self, change: Callable[[Connection], T]) -> T:
        connection = self._connection
        connection.begin()
        try:
            result = change(connection)
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                connection.rollback()
            raise
        try:
            connection.commit()
        except duckdb.Error as error:
            # DuckDB answers a full disk here with a plain TransactionException.
            raise duckdb.IOException(str(error)) from error
        return result

    def _checkpoint(self) -> bool:
        """Whether DuckDB did it."""
        try:
            self._connection.checkpoint()
        except duckdb.TransactionException as error:
            if not _OTHERS_READ.search(str(error)):
                raise duckdb.IOException(str(error)) from error
            return False
        return True

    def _copy(self, path: Path) -> None:
        with self._connection.cursor() as cursor:
            name = str(path).replace("'", "''")
            (source,) = cursor.execute("SELECT current_database()").fetchall()[0]
            self._copying = cursor
            try:
                with writing_elsewhere():
                    cursor.execute(f"ATTACH '{name}' AS copied")
                    try:
                        cursor.execute(f'COPY FROM DATABASE "{source}" TO copied')
                        cursor.execute("CHECKPOINT copied")
                    finally:
                        cursor.execute("DETACH copied")
            except duckdb.InterruptException as error:
                raise UnavailableError("The copy was given up, as the results service ends.") from error
            finally:
                self._copying = None

    def _snapshot(self, ask: Callable[[Connection], T]) -> T:
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                return ask(cursor)
            finally:
                with contextlib.suppress(duckdb.Error):
                    cursor.rollback()


class _Snapshot(Generic[T]):
    """One read in steps, each possibly in another thread."""

    def __init__(self, connection: Connection, make: Callable[[Connection], Iterator[T]]) -> None:
        self._connection = connection
        self._make = make
        self._lock = Lock()
        self._cursor: Connection | None = None
        self._values: Iterator[T] = iter(())
        self._closed = False

    def step(self) -> tuple[T] | None:
        """The next value; None at the end, and after `close`."""
        with self._lock:
            if self._closed:
                return None
            if self._cursor is None:
                self._cursor = self._connection.cursor()
                self._cursor.execute("BEGIN TRANSACTION READ ONLY")
                self._values = self._make(self._cursor)
            for value in self._values:
                return (value,)
            return None

    def close(self) -> None:
        """Waits for the step under way, if any."""
        with self._lock:
            self._closed = True
            self._values = iter(())
            if self._cursor is not None:
                with contextlib.suppress(duckdb.Error):
                    self._cursor.rollback()
                self._cursor.close()
