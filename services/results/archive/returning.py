"""Brings the items of a job back that are in the archive alone: whatever needs them waits for that."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from services import bus
from services.errors import UnavailableError
from services.results.archive import rows, versions
from services.results.intake import writes
from services.results.storage import archived_items
from services.results.storage.archived_items import Away
from services.results.storage.database import Connection, Database, deleted_among
from services.results.storage.items_away import LostItemsError
from services.results.stores.store import fetch, open_store, path_of
from services.telemetry import metrics

log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 5_000
"""Between parts, answers of running jobs are stored."""
_AT_ONCE = 2
LEAVING, _RETURNING = ".leaving.parquet", ".returning.parquet"


class Returning:
    """Of one database. `place` is where the archive is now; items are also looked for where it was when they left.
    `folder` has copies of files on their way, and the database may read it."""

    def __init__(self, database: Database, place: str, s3_url: str, folder: Path, room: bus.Room) -> None:
        self._database, self._place, self._url, self._room = database, place, s3_url, room
        self.folder = folder.absolute()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def bring_back(self, job_ids: Sequence[str]) -> None:
        """Raises LostItemsError for a job whose file is missing or damaged, UnavailableError if the archive cannot be
        reached, and NoRoomError. A caller that gives up does not end the work."""
        ended = await asyncio.gather(
            *(asyncio.shield(self._task(job_id)) for job_id in job_ids), return_exceptions=True
        )
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def _task(self, job_id: str) -> asyncio.Task[None]:
        if job_id not in self._under_way:
            self._under_way[job_id] = task = asyncio.create_task(self._one(job_id))
            task.add_done_callback(lambda _: self._under_way.pop(job_id))
        return self._under_way[job_id]

    async def _one(self, job_id: str) -> None:
        async with self.fetching(job_id) as away:
            if away is None:
                return
            path = self.folder / f"{job_id}{_RETURNING}"
            try:
                await asyncio.to_thread(self.fetch, away, path)
                await self.put(away, path)
            finally:
                await asyncio.to_thread(path.unlink, missing_ok=True)
        log.info("brought %d items of job %s back from the archive", away.items, job_id)

    @asynccontextmanager
    async def fetching(self, job_id: str) -> AsyncIterator[Away | None]:
        """A turn in which the job's file may be fetched; None if its items are in the database. Notes that the archive
        has lost them where that shows within."""
        async with self._turns:
            away = await self._database.read(partial(archived_items.find, job_id=job_id))
            if away is not None:
                # Of a full disk, the open database would be lost.
                self._room.require()
            try:
                yield away
            except LostItemsError:
                await self._database.write(partial(archived_items.note_lost, job_id=job_id), of_jobs=False)
                raise

    async def put(self, away: Away, path: Path) -> None:
        """Takes the items from a file that has been checked. If it is cut off, they stay away, and the next time adds
        the rest."""
        for first in range(0, away.items, _ROWS_AT_ONCE):
            await self._database.write(partial(_add, away=away, path=path, first=first), of_jobs=False)
        now = datetime.now(UTC).replace(tzinfo=None)
        if await self._database.write(partial(_end, away=away, now=now), of_jobs=False):
            metrics.ITEMS_RETURNED.add(by=away.items)

    def fetch(self, away: Away, path: Path) -> None:
        """Copies the file to `path`. Raises as `bring_back`."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            # Items that have just left.
            shutil.copyfile(self.folder / f"{away.job_id}{LEAVING}", path)
            if versions.digest_of(path) == away.sha256:
                return
        problem = ""
        for place in dict.fromkeys(filter(None, (away.place, self._place))):
            store = open_store(place, self._url)
            name = f"{versions.folder_of(away.job_id)}/{away.file}"
            try:
                if fetch(store, name, path) == away.sha256:
                    return
                problem = f"{path_of(store, name)} is damaged"
            except FileNotFoundError:
                problem = problem or f"{path_of(store, name)} is missing"
            except OSError as error:
                raise UnavailableError(
                    f"The items of job {away.job_id} are in the archive {place}, which cannot be read now: {error}"
                ) from error
        raise LostItemsError(
            f"The items of job {away.job_id} are in the archive, but {problem}. Put a good copy of the file there, "
            "then try again."
        )


def _add(connection: Connection, away: Away, path: Path, first: int) -> None:
    if archived_items.find(connection, away.job_id) is None or deleted_among(connection, [away.job_id]):
        return
    taken = (
        f"(SELECT * EXCLUDE (file_row_number) FROM {rows.parquet(path, 'file_row_number = true')} "
        f"WHERE file_row_number >= {first} AND file_row_number < {first + _ROWS_AT_ONCE})"
    )
    if rows.stored(connection, away.job_id) == first:
        connection.execute(f"INSERT INTO items BY NAME FROM {taken} ON CONFLICT DO NOTHING")
    else:
        # Some came late, or an earlier return was cut off.
        rows.add_items(connection, taken)


def _end(connection: Connection, away: Away, now: datetime) -> bool:
    """Whether they are back now and were not before. Raises LostItemsError if the file has fewer than it had."""
    if archived_items.find(connection, away.job_id) is None:
        return False
    stored = rows.stored(connection, away.job_id)
    if stored < away.items:
        raise LostItemsError(f"The file of job {away.job_id} in the archive has {stored:,} of {away.items:,} items.")
    archived_items.note_returned(connection, away.job_id, now)
    if stored > away.items:
        # Some came late.
        writes.count_late(connection, [away.job_id])
    return True
