"""The DuckDB file: opening, migrations, hardening, one writer thread and a few reader threads.

A write that the disk refuses leaves the file as it was, but the open database can no longer be trusted: `lost` is set,
the process ends, and the next one opens the file again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from services.errors import UnavailableError

log = logging.getLogger(__name__)

T = TypeVar("T")
Connection = duckdb.DuckDBPyConnection

READERS = 4
_FATAL = (duckdb.FatalException, duckdb.IOException, duckdb.InternalException)
# Only our own SQL runs here, so nothing outside the file is ever needed.
_HARDENED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


@cache
def query(name: str) -> str:
    """The text of `queries/<name>.sql`."""
    return (resources.files(__package__) / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def first_row(connection: Connection, sql: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """The first row, or None. Reads all: DuckDB keeps a connection busy until a result is read to its end."""
    rows = connection.execute(sql, parameters).fetchall()
    return rows[0] if rows else None


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration in schema.sql, in order."""
    text = (resources.files(__package__) / "schema.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- migration (\d+):.*$", text, flags=re.MULTILINE)
    return [(int(number), sql) for number, sql in zip(parts[1::2], parts[2::2], strict=True)]


def open_file(path: Path) -> Connection:
    """Opens or creates the database and brings it to the newest schema.

    Raises UnavailableError when another process has it open, the disk refuses, or a newer Touchstone wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(path), config=dict(_HARDENED))
        _migrate(connection)
        connection.checkpoint()
    except (duckdb.Error, OSError) as error:
        raise UnavailableError(
            f"The results database {path} cannot be opened: {error}. "
            "Check that no other results service uses it and that the disk has room."
        ) from error
    return connection


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
            connection.execute("INSERT INTO migrations VALUES ($number, now() AT TIME ZONE 'UTC')", {"number": number})
            connection.commit()
            log.info("applied migration %d", number)


class Database:
    """Runs functions against the database off the event loop: writes one at a time, reads side by side."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._writer = ThreadPoolExecutor(1, "writer")
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self.lost = asyncio.Event()

    async def write(self, change: Callable[[Connection], T]) -> T:
        """Runs `change` in a transaction and commits it to disk. Raises UnavailableError when the disk refuses."""
        return await self._run(self._writer, self._transaction, change)

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """Runs `ask` on a cursor of its own, on one snapshot of everything committed so far."""
        return await self._run(self._readers, self._snapshot, ask)

    async def close(self) -> None:
        """Waits for what is running, then closes the file."""
        for pool in (self._writer, self._readers):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
        with contextlib.suppress(duckdb.Error):
            self._connection.close()

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        how: Callable[[Callable[[Connection], T]], T],
        what: Callable[[Connection], T],
    ) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, how, what)
        except _FATAL as error:
            self.lost.set()
            raise UnavailableError(
                f"The results database is not usable: {error}. Make room on its disk; the service opens it again."
            ) from error

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

    def _snapshot(self, ask: Callable[[Connection], T]) -> T:
        with self._connection.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            try:
                return ask(cursor)
            finally:
                with contextlib.suppress(duckdb.Error):
                    cursor.rollback()
