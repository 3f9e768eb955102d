"""Finished jobs as files of their own beside the database: a Parquet file of each job's items. With the streams they
are what `touchstone repair` builds a lost database from.

A file's name says which attempt it holds and up to which attempt texts were dropped, so what is missing or out of date
shows without a look inside; a file is written whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from services import bus
from services.results.database import Connection, Database, writing_elsewhere

log = logging.getLogger(__name__)

_CHECK_S = 5.0
_LATE = timedelta(seconds=30)
"""Answers that were under way at a job's end come within so long."""


class JobFiles:
    """The files of one database."""

    def __init__(self, database: Database, folder: Path, room: bus.Room) -> None:
        self._database, self._folder, self._room = database, folder.absolute(), room
        self._there: dict[str, str] = {}
        """Name by job."""

    async def run(self) -> None:
        """Keeps the files up to date, until cancelled."""
        await asyncio.to_thread(self._look)
        while True:
            if self._room.level is bus.Level.ENOUGH:
                await self.bring_up_to_date(datetime.now(UTC).replace(tzinfo=None) - _LATE)
            await asyncio.sleep(_CHECK_S)

    async def bring_up_to_date(self, ended_by: datetime) -> None:
        """Writes the files of jobs that had ended by then, UTC without a zone, and are not there as they are now."""
        for job_id, name in await self._database.read(partial(_wanted, ended_by=ended_by)):
            if self._there.get(job_id) == name:
                continue
            try:
                await self._write(job_id, name)
            except OSError as error:
                log.warning("the file of job %s waits: %s", job_id, error)
                return

    async def _write(self, job_id: str, name: str) -> None:
        fresh = self._folder / f"{name}.new"
        await self._database.read_long(partial(_copy, job_id=job_id, path=fresh))
        await asyncio.to_thread(self._put, fresh, job_id, name)

    def _put(self, fresh: Path, job_id: str, name: str) -> None:
        os.chmod(fresh, 0o600)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(self._folder / name)
        if old := self._there.get(job_id):
            (self._folder / old).unlink(missing_ok=True)
        self._there[job_id] = name

    def _look(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob("*.new"):
            path.unlink()
        for path in sorted(self._folder.glob("*.parquet")):
            job_id = path.name.split(".")[0]
            if job_id in self._there:
                # A crash came between a new file and the end of the old one.
                oldest = min((self._folder / self._there[job_id], path), key=lambda each: each.stat().st_mtime_ns)
                oldest.unlink()
                if oldest == path:
                    continue
            self._there[job_id] = path.name


def _wanted(connection: Connection, ended_by: datetime) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT job_id, attempt, dropped_attempt FROM answer_texts WHERE ended_at <= $ended_by ORDER BY ended_at",
        {"ended_by": ended_by},
    ).fetchall()
    return [(job_id, f"{job_id}.{attempt}.{dropped}.parquet") for job_id, attempt, dropped in rows]


def _copy(connection: Connection, job_id: str, path: Path) -> None:
    job, file = (str(text).replace("'", "''") for text in (job_id, path))
    with writing_elsewhere():
        connection.execute(
            f"COPY (FROM items WHERE job_id = '{job}') TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()
