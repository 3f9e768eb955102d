"""Writes finished jobs to the archive, and removes those that were deleted, whatever happens to the store meanwhile.

The table archived_jobs says what the archive has of each job. It is written after the job's manifest: what a crash cuts
off in between is found in the archive and not written twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import services
from services import bus
from services.errors import ConflictError, TouchstoneError
from services.results.archive import rows, versions
from services.results.archive.versions import DamagedError, File, Version
from services.results.storage import archived_items
from services.results.storage.archived_items import Away
from services.results.storage.database import Connection, Database, query
from services.results.stores.store import Store, open_store, put, write_bytes

log = logging.getLogger(__name__)

_LOOK_S, _LONGEST_S = 5.0, 300.0
_LATE = timedelta(seconds=30)
"""Answers that were under way at a job's end arrive within this time. Later ones make another version."""
_SETTLES_S = 60.0
"""After the last change of a job, looks find nothing new. Late answers alone come with the next of those at
_SELDOM_S."""
_SELDOM_S = 300.0
_REST = 10.0
"""Times as long as a look took, there is none. Most of it is waiting for the store."""
_JOBS_A_LOOK = 20
_DELETED = "deleted"
"""The signature of a job that was removed."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The rows of a job at one moment: by table, how many are in the file of its name. Tables that the newest version
    has as they are were not copied."""

    answers: str
    schema: int
    rows: dict[str, int]


class Archiving:
    """One database's jobs in one archive. `scratch` is a folder for one job at a time, into which the database may
    write."""

    def __init__(self, database: Database, place: str, s3_url: str, scratch: Path, room: bus.Room) -> None:
        self._database, self._place, self._url, self._room = database, place, s3_url, room
        self._scratch = scratch.absolute()
        self._seen, self._settles_at, self._looked_at = -1, 0.0, 0.0
        self._refused: list[str] = []
        """Jobs whose items are in an archive alone that does not give them back."""

    async def run(self) -> None:
        """Until cancelled."""
        if not self._place:
            await asyncio.Event().wait()
        store = await asyncio.to_thread(open_store, self._place, self._url)
        wait_s = _LOOK_S
        while True:
            more, began = False, time.monotonic()
            try:
                if self._is_due(began, failed=wait_s > _LOOK_S):
                    more = await self.look(store, datetime.now(UTC).replace(tzinfo=None) - _LATE)
                    self._looked_at = began
                    if wait_s > _LOOK_S:
                        log.info("the archive %s answers again", self._place)
                    wait_s = _LOOK_S
            except (OSError, TouchstoneError) as error:
                if wait_s == _LOOK_S:
                    log.warning("archiving finished jobs in %s is delayed: %s", self._place, _first_line(error))
                wait_s = min(2 * wait_s, _LONGEST_S)
            if not more:
                await asyncio.sleep(max(wait_s, _REST * (time.monotonic() - began)))

    def _is_due(self, now: float, *, failed: bool) -> bool:
        """Whether there may be something to archive and room for it: a look goes through all finished jobs."""
        if self._room.level is not bus.Level.ENOUGH:
            return False
        if self._database.jobs_version != self._seen:
            self._seen, self._settles_at = self._database.jobs_version, now + _SETTLES_S
        return failed or now < self._settles_at or now > self._looked_at + _SELDOM_S

    async def look(self, store: Store, before: datetime) -> bool:
        """Removes jobs that were deleted, and archives some of those that ended before, UTC without a zone. Whether
        there may be more. Raises OSError when the store or the disk refuses, and as `Database.read`."""
        for job_id, said in await self._database.read(partial(_deleted, place=self._place)):
            await asyncio.to_thread(remove, store, job_id, said)
            await self._note(job_id, _DELETED)
        find = partial(_due, place=self._place, before=before, refused=self._refused)
        due = await self._database.read_long(find)
        for job_id, signature in due:
            try:
                await self._archive(store, job_id)
            except ConflictError as error:
                log.error("job %s cannot be archived: %s", job_id, error)
                self._refused.append(job_id)
            else:
                await self._note(job_id, signature)
        return len(due) == _JOBS_A_LOOK

    async def _archive(self, store: Store, job_id: str) -> None:
        names = await asyncio.to_thread(store.names, versions.folder_of(job_id))
        newest = await asyncio.to_thread(_newest, store, job_id, names)
        if newest is not None and await self._database.read(partial(_lacks, version=newest)):
            # The database was repaired without the archive.
            log.warning("the items of job %s are in the archive alone", job_id)
            find = partial(_note_away, version=newest, place=self._place, now=datetime.now(UTC).replace(tzinfo=None))
            await self._database.write(find, of_jobs=False)
        await asyncio.to_thread(_empty, self._scratch)
        try:
            known = newest.answers if newest is not None else ""
            copied = await self._database.read_long(partial(_copy, job_id=job_id, folder=self._scratch, known=known))
            await asyncio.to_thread(_upload, store, job_id, names, self._scratch, copied, newest)
        finally:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    async def _note(self, job_id: str, signature: str) -> None:
        now = datetime.now(UTC).replace(tzinfo=None)
        note = partial(_note, job_id=job_id, place=self._place, signature=signature, now=now)
        await self._database.write(note, of_jobs=False)


def remove(store: Store, job_id: str, said: Mapping[str, str]) -> None:
    """Leaves of a job only that it was deleted, by whom and when. That is written first, so that nothing of the job is
    restored where the rest is interrupted. Raises OSError."""
    folder = versions.folder_of(job_id)
    if store.names(folder):
        write_bytes(store, versions.deletion_of(job_id), json.dumps(dict(said), indent=1).encode())
    store.remove_folder(folder)


def _newest(store: Store, job_id: str, names: Sequence[str]) -> Version | None:
    """The newest version, if it can be read and its files are there."""
    for manifest in versions.manifests(names)[:1]:
        try:
            version = versions.read(store, job_id, manifest)
        except DamagedError as error:
            log.warning("%s", error)
            continue
        if {file.file for file in version.files} <= set(names):
            return version
    return None


def _lacks(connection: Connection, version: Version) -> bool:
    """Whether the database has fewer items of the same attempt than the archive, and does not know that."""
    (attempt, here, _), (same, there, _) = (
        answers.split(".") for answers in (rows.answers(connection, version.job_id), version.answers)
    )
    away = archived_items.find(connection, version.job_id)
    return away is None and attempt == same and int(here) < int(there)


def _note_away(connection: Connection, version: Version, place: str, now: datetime) -> None:
    file = version.of(rows.ITEMS)
    assert file is not None
    away = Away(version.job_id, place, file.file, file.sha256, file.rows, version.answers)
    archived_items.note_left(connection, away, now)


def _copy(connection: Connection, job_id: str, folder: Path, known: str) -> Copied:
    answers = rows.answers(connection, job_id)
    if answers != known:
        archived_items.require(connection, job_id)
    wanted = [table for table in rows.TABLES if answers != known or table not in rows.ANSWERS]
    counts = {table: rows.copy(connection, job_id, table, folder / table) for table in wanted}
    ((schema,),) = connection.execute("SELECT max(number) FROM migrations").fetchall()
    return Copied(answers, int(schema), {table: count for table, count in counts.items() if count})


def _upload(
    store: Store, job_id: str, names: Sequence[str], scratch: Path, copied: Copied, newest: Version | None
) -> None:
    files = []
    if newest is not None and newest.answers == copied.answers:
        files = [file for file in newest.files if file.table in rows.ANSWERS]
    for table, count in copied.rows.items():
        path = scratch / table
        digest = versions.digest_of(path)
        name = f"{table}.{digest[: versions.DIGITS]}.parquet"
        files.append(File(table, name, count, path.stat().st_size, digest))
        if name not in names:
            put(store, f"{versions.folder_of(job_id)}/{name}", path)
    if newest is not None and versions.is_same(files, newest.files):
        return
    number = max(map(versions.number_of, versions.manifests(names)), default=0) + 1
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = Version(job_id, number, services.__version__, copied.schema, now, copied.answers, files)
    versions.write(store, made)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _deleted(connection: Connection, place: str) -> list[tuple[str, dict[str, str]]]:
    """Jobs that were deleted and may be in the archive, with what is said of that."""
    found = connection.execute(
        "SELECT d.job_id, d.owner, d.deleted_by, d.deleted_at FROM deleted_jobs d "
        "LEFT JOIN archived_jobs a ON a.job_id = d.job_id AND a.place = $place "
        "WHERE a.signature IS DISTINCT FROM $deleted ORDER BY d.job_id",
        {"place": place, "deleted": _DELETED},
    ).fetchall()
    return [
        (job_id, {"owner": owner, "deleted_by": deleted_by, "deleted_at": at.isoformat()})
        for job_id, owner, deleted_by, at in found
    ]


def _due(connection: Connection, place: str, before: datetime, refused: Sequence[str]) -> list[tuple[str, str]]:
    text = query("archive/due").format(finished=query("archive/finished"))
    where = {"place": place, "before": before, "refused": refused, "most": _JOBS_A_LOOK}
    return connection.execute(text, where).fetchall()


def _note(connection: Connection, job_id: str, place: str, signature: str, now: datetime) -> None:
    connection.execute(
        "INSERT INTO archived_jobs VALUES ($job_id, $place, $signature, $now) ON CONFLICT (job_id) DO UPDATE SET "
        "place = excluded.place, signature = excluded.signature, archived_at = excluded.archived_at",
        {"job_id": job_id, "place": place, "signature": signature, "now": now},
    )
