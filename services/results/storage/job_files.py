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
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from services import bus
from services.results.storage.database import Connection, Database, writing_elsewhere

log = logging.getLogger(__name__)

_CHECK_S = 5.0
_REST = 3.0
"""Times as long as a file took, its writer pauses: after an upgrade, there may be a million to write."""
_ROUND_S = 60.0
"""Then jobs that were deleted, and those that have ended meanwhile, come first again."""
_LATE = timedelta(seconds=30)
"""Answers that were under way at a job's end arrive within this time."""
_LATEST_S = 300.0
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
        self._files: dict[str, str] = {}
        """Names by job."""
        self._done: dict[datetime, tuple[int, int]] = {}
        """By day, what `_days` said of the jobs whose files are up to date."""

    async def run(self) -> None:
        """Keeps the files up to date, until cancelled. It waits while something is stored, up to five minutes:
        the file of 5,000 items takes a third of a second, which held up the ends of running jobs."""
        looked, version, over_at = False, -1, 0.0
        while True:
            try:
                if not looked:
                    await asyncio.to_thread(self._look)
                    looked = True
            except OSError as error:
                log.warning("writing the files of finished jobs is delayed: %s", error)
            rests, version = self._database.version == version, self._database.version
            due = rests or time.monotonic() > over_at
            if looked and due and self._room.level is bus.Level.ENOUGH:
                over_at = time.monotonic() + _LATEST_S
                await self.bring_up_to_date(datetime.now(UTC).replace(tzinfo=None) - _LATE)
            await asyncio.sleep(_CHECK_S)

    async def bring_up_to_date(self, ended_by: datetime) -> None:
        """Writes the files of jobs that had ended by then, UTC without a zone, and are not there as they are now.
        Removes those of jobs that were deleted or whose items are in the archive alone. Ends after _ROUND_S seconds,
        the newest jobs first."""
        over_at = time.monotonic() + _ROUND_S
        for job_id in await self._database.read(_gone):
            if job_id in self._files:
                await asyncio.to_thread(self._forget, job_id)
        for day, jobs in (await self._database.read(partial(_days, ended_by=ended_by))).items():
            if self._done.get(day) == jobs:
                continue
            for job_id, name in await self._database.read(partial(_wanted, day=day, ended_by=ended_by)):
                if self._files.get(job_id, "").startswith(f"{name}."):
                    continue
                began = time.monotonic()
                if began > over_at:
                    return
                try:
                    await self._write(job_id, name)
                except OSError as error:
                    log.warning("writing the file of job %s is delayed: %s", job_id, error)
                    return
                await asyncio.sleep(_REST * (time.monotonic() - began))
            self._done[day] = jobs

    async def _write(self, job_id: str, name: str) -> None:
        fresh = self._folder / f"{name}{_FRESH}"
        await self._database.read_long(partial(_copy, job_id=job_id, path=fresh))
        await asyncio.to_thread(self._put, fresh, job_id, name)

    def _put(self, fresh: Path, job_id: str, name: str) -> None:
        os.chmod(fresh, 0o600)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        place = f"{name}.{_digest(fresh)}{_SUFFIX}"
        fresh.replace(self._folder / place)
        old = self._files.get(job_id)
        self._files[job_id] = place
        if old is not None and old != place:
            (self._folder / old).unlink(missing_ok=True)

    def _forget(self, job_id: str) -> None:
        (self._folder / self._files[job_id]).unlink(missing_ok=True)
        del self._files[job_id]

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
                oldest = min((self._folder / self._files[job_id], path), key=lambda each: each.stat().st_mtime_ns)
                _remove(oldest)
                if oldest == path:
                    continue
            self._files[job_id] = path.name


def _remove(path: Path) -> None:
    """Removes the file, or anything else that has its name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


_AWAY = "SELECT job_id FROM archived_items WHERE returned_at IS NULL"


def _gone(connection: Connection) -> list[str]:
    """Jobs of which there is no file: their answers were deleted, or the archive has them."""
    return [job_id for (job_id,) in connection.execute(f"SELECT job_id FROM deleted_jobs UNION {_AWAY}").fetchall()]


def _days(connection: Connection, ended_by: datetime) -> dict[datetime, tuple[int, int]]:
    """The days on which jobs ended, the newest first, each with the number and a digest of what their files hold: of a
    million jobs, only those of days that have changed are looked at."""
    rows = connection.execute(
        "SELECT date_trunc('day', ended_at) AS day, count(*), bit_xor(hash(job_id, attempt, dropped_attempt)) "
        f"FROM answer_texts WHERE ended_at <= $ended_by AND job_id NOT IN ({_AWAY}) GROUP BY day ORDER BY day DESC",
        {"ended_by": ended_by},
    ).fetchall()
    return {day: (count, digest) for day, count, digest in rows}


def _wanted(connection: Connection, day: datetime, ended_by: datetime) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT job_id, attempt, dropped_attempt FROM answer_texts "
        "WHERE ended_at >= $day AND ended_at < $day + INTERVAL 1 DAY AND ended_at <= $ended_by "
        f"AND job_id NOT IN ({_AWAY}) ORDER BY ended_at DESC",
        {"day": day, "ended_by": ended_by},
    ).fetchall()
    return [(job_id, f"{job_id}.{attempt}.{dropped}") for job_id, attempt, dropped in rows]


def _copy(connection: Connection, job_id: str, path: Path) -> None:
    job, file = (str(text).replace("'", "''") for text in (job_id, path))
    with writing_elsewhere():
        connection.execute(
            f"COPY (FROM items WHERE job_id = '{job}') TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()
