"""Finished jobs as separate files next to the database: a Parquet file of each job's items. `touchstone repair`
rebuilds a lost database from them and the streams.

A file's name says which attempt it holds, up to which attempt texts were dropped, and the digest of its bytes:
`<job>.<attempt>.<dropped>.<digest>.parquet`. So a missing or outdated file shows by its name and a damaged one by its
digest: Parquet itself reads many wrong bytes as other answers. A file is written whole or not at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from services import bus
from services.results.storage.database import Connection, Database, deleted_among, writing_elsewhere

log = logging.getLogger(__name__)

_CHECK_S = 5.0
_LATE = timedelta(seconds=30)
"""Answers that were under way at a job's end arrive within this time."""
_DIGITS = 16
_SUFFIX, _FRESH = ".parquet", ".parquet.new"


def is_whole(path: Path) -> bool:
    """Whether the file has the bytes that were written. Names from earlier versions do not say. Raises OSError."""
    *_, digest, _ = path.name.split(".")
    return len(digest) < _DIGITS or _digest(path) == digest


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


class JobFiles:
    """The files of one database."""

    def __init__(self, database: Database, folder: Path, room: bus.Room) -> None:
        self._database, self._folder, self._room = database, folder.absolute(), room
        self._there: dict[str, str] = {}
        """What the file holds by job: its name without the digest."""
        self._files: dict[str, Path] = {}

    async def run(self) -> None:
        """Keeps the files up to date, until cancelled."""
        looked = False
        while True:
            try:
                if not looked:
                    await asyncio.to_thread(self._look)
                    looked = True
            except OSError as error:
                log.warning("writing the files of finished jobs is delayed: %s", error)
            if looked and self._room.level is bus.Level.ENOUGH:
                await self.bring_up_to_date(datetime.now(UTC).replace(tzinfo=None) - _LATE)
            await asyncio.sleep(_CHECK_S)

    async def bring_up_to_date(self, ended_by: datetime) -> None:
        """Writes the files of jobs that had ended by then, UTC without a zone, and are not there as they are now.
        Removes those of deleted jobs."""
        for job_id in await self._database.read(partial(deleted_among, job_ids=list(self._files))):
            await asyncio.to_thread(self._forget, job_id)
        for job_id, name in await self._database.read(partial(_wanted, ended_by=ended_by)):
            if self._there.get(job_id) == name:
                continue
            try:
                await self._write(job_id, name)
            except OSError as error:
                log.warning("writing the file of job %s is delayed: %s", job_id, error)
                return

    async def _write(self, job_id: str, name: str) -> None:
        fresh = self._folder / f"{name}{_FRESH}"
        await self._database.read_long(partial(_copy, job_id=job_id, path=fresh))
        await asyncio.to_thread(self._put, fresh, job_id, name)

    def _put(self, fresh: Path, job_id: str, name: str) -> None:
        os.chmod(fresh, 0o600)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        place = self._folder / f"{name}.{_digest(fresh)}{_SUFFIX}"
        fresh.replace(place)
        old = self._files.get(job_id)
        self._there[job_id], self._files[job_id] = name, place
        if old is not None and old != place:
            old.unlink(missing_ok=True)

    def _forget(self, job_id: str) -> None:
        self._files[job_id].unlink(missing_ok=True)
        del self._files[job_id], self._there[job_id]

    def _look(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.glob("*.new"):
            _remove(path)
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if not path.is_file() or not path.stat().st_size:
                log.warning("%s is not the file of a job; writing it again", path)
                _remove(path)
                continue
            job_id = path.name.split(".")[0]
            if job_id in self._files:
                # A crash came between a new file and the end of the old one.
                oldest = min((self._files[job_id], path), key=lambda each: each.stat().st_mtime_ns)
                _remove(oldest)
                if oldest == path:
                    continue
            self._files[job_id] = path
            self._there[job_id] = ".".join(path.name.split(".")[:3])


def _remove(path: Path) -> None:
    """Removes the file, or anything else that has its name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _wanted(connection: Connection, ended_by: datetime) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT job_id, attempt, dropped_attempt FROM answer_texts WHERE ended_at <= $ended_by ORDER BY ended_at",
        {"ended_by": ended_by},
    ).fetchall()
    return [(job_id, f"{job_id}.{attempt}.{dropped}") for job_id, attempt, dropped in rows]


def _copy(connection: Connection, job_id: str, path: Path) -> None:
    job, file = (str(text).replace("'", "''") for text in (job_id, path))
    with writing_elsewhere():
        connection.execute(
            f"COPY (FROM items WHERE job_id = '{job}') TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()
