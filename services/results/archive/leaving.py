"""Lets items of finished jobs leave the database once the archive has them, by TOUCHSTONE_KEEP_ITEMS_DAYS.

A job's files are read back from the archive and compared with their checksums, and its items with the database's. Then
one transaction removes the items and notes where they are. After that, the file is read once more. Until it is
still the same, a checked copy stays on the local disk: so at any moment there is a good one, whatever is killed or
damaged.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from services import bus
from services.errors import InvalidRequestError, TouchstoneError
from services.results.archive import rows, versions
from services.results.archive.returning import LEAVING, Returning
from services.results.archive.versions import DamagedError, File, Version
from services.results.runs import job_reads
from services.results.scores import job_result
from services.results.storage import archived_items, text_retention
from services.results.storage.archived_items import Away
from services.results.storage.database import Connection, Database, query
from services.results.storage.uses import Uses
from services.results.stores.folder import sync_folder
from services.results.stores.store import Store, fetch, open_store, sha256_of
from services.telemetry import metrics
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR

log = logging.getLogger(__name__)

_LOOK_S, _REST = 30.0, 10.0
_JOBS_A_LOOK = 20
_TEXTS = ".texts.parquet"


@dataclass(frozen=True, slots=True)
class Checked:
    """A job's items in the archive are those in the database. `dropped` says which of their texts the archive lacks, as
    columns of answer_texts. `result` is what the items give, of a job that has no seal."""

    away: Away
    dropped: tuple[datetime | None, int]
    result: bytes | None


class Leaving:
    """Of one database, to the archive that `place` is: `days` after a job's end; 0 for never."""

    def __init__(
        self,
        database: Database,
        returning: Returning,
        place: str,
        s3_url: str,
        days: float,
        room: bus.Room,
    ) -> None:
        self._database, self._returning, self._place, self._url = database, returning, place, s3_url
        self._folder, self._kept_for, self._room = returning.folder, timedelta(days=days), room
        self._refused: set[str] = set()
        """Jobs whose items stay, as the archive does not have them as they are. They are tried again after a start."""
        self._uses = Uses()

    async def run(self) -> None:
        """Until cancelled."""
        delayed = False
        while True:
            more, began = False, time.monotonic()
            try:
                await self.confirm()
                if self._kept_for and self._room.level is bus.Level.ENOUGH:
                    store = await asyncio.to_thread(open_store, self._place, self._url)
                    more = await self.look(store, datetime.now(UTC).replace(tzinfo=None) - self._kept_for)
                delayed = False
            except (OSError, TouchstoneError) as error:
                if not delayed:
                    log.warning("items of finished jobs stay in the database for now: %s", error)
                delayed = True
            took_s = time.monotonic() - began
            await asyncio.sleep(_REST * took_s if more else max(_LOOK_S, _REST * took_s))

    async def look(self, store: Store, before: datetime) -> bool:
        """Lets the items of some jobs leave that ended before, UTC without a zone. Whether there may be more. Raises
        OSError when the store or the disk refuses, and as `Database.read`."""
        find = partial(_due, uses=self._uses, place=self._place, before=before, refused=sorted(self._refused))
        due = await self._database.read_long(find)
        for job_id, signature in due:
            try:
                await self._leave(store, job_id, signature, before)
            except DamagedError as error:
                self._refuse(job_id, str(error))
        return len(due) == _JOBS_A_LOOK

    async def confirm(self) -> None:
        """Compares the archive's files of items that have left once more, and only then gives up the local copies.
        Items whose file is not as it was come back. Raises OSError when a store refuses, and as `Database.read`."""
        for kept in await asyncio.to_thread(lambda: sorted(self._folder.glob(f"*{LEAVING}"))):
            job_id = kept.name.removesuffix(LEAVING)
            away = await self._database.read(partial(archived_items.find, job_id=job_id))
            if away is not None and not await asyncio.to_thread(self._is_there, away):
                file = f"{away.place}/{versions.folder_of(job_id)}/{away.file}"
                if await asyncio.to_thread(versions.digest_of, kept) != away.sha256:
                    raise OSError(f"{file} is missing or damaged, and so is {kept}")
                await self._returning.put(away, kept)
                self._refuse(job_id, f"{file} is missing or damaged.")
            await asyncio.to_thread(kept.unlink)

    def _is_there(self, away: Away) -> bool:
        """Raises OSError."""
        store = open_store(away.place, self._url)
        try:
            return sha256_of(store, f"{versions.folder_of(away.job_id)}/{away.file}") == away.sha256
        except FileNotFoundError:
            return False

    def _refuse(self, job_id: str, why: str) -> None:
        self._refused.add(job_id)
        log.error("the items of job %s stay in the database: %s", job_id, why)

    async def _leave(self, store: Store, job_id: str, signature: str, before: datetime) -> None:
        """Raises DamagedError if the archive does not have the items as they are."""
        kept, texts = (self._folder / f"{job_id}{suffix}" for suffix in (LEAVING, _TEXTS))
        try:
            version = await asyncio.to_thread(self._fetch, store, job_id, kept, texts)
            compare = partial(_checked, version=version, place=self._place, kept=kept, texts=texts)
            checked = await self._database.read_long(compare)
            await asyncio.to_thread(self._sync, kept)
            now = datetime.now(UTC).replace(tzinfo=None)
            leave = partial(
                _leave, uses=self._uses, checked=checked, kept=kept, signature=signature, before=before, now=now
            )
            left = await self._database.write(leave, of_jobs=False)
        finally:
            await asyncio.to_thread(texts.unlink, missing_ok=True)
        await self.confirm()
        if left:
            metrics.ITEMS_LEFT.add(by=checked.away.items)
            log.info("%d items of job %s are in the archive alone", checked.away.items, job_id)

    def _fetch(self, store: Store, job_id: str, kept: Path, texts: Path) -> Version:
        """The newest version of the job, whose files are all whole. Raises DamagedError and OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = store.names(versions.folder_of(job_id))
        manifest = next(iter(versions.manifests(names)), "")
        if not manifest:
            raise DamagedError(f"The archive {store.place} has no whole version of the job.")
        version = versions.read(store, job_id, manifest)
        if version.job_id != job_id or version.of(rows.ITEMS) is None:
            raise DamagedError(f"{store.place}/{versions.folder_of(job_id)}/{manifest} has no items of this job.")
        targets = {rows.ITEMS: kept, "answer_texts": texts}
        for file in version.files:
            _compare(store, job_id, file, targets.get(file.table))
        return version

    def _sync(self, kept: Path) -> None:
        """Until the copy is on disk, nothing leaves. From then on, a lost database is noticed by the marker."""
        with kept.open("rb") as file:
            os.fsync(file.fileno())
        archived_items.mark(self._database.path, self._place)
        sync_folder(self._folder)


def _compare(store: Store, job_id: str, file: File, target: Path | None) -> None:
    """Reads a file of the archive, and copies it to `target`. Raises DamagedError and OSError."""
    name = f"{versions.folder_of(job_id)}/{file.file}"
    try:
        found = sha256_of(store, name) if target is None else fetch(store, name, target)
    except FileNotFoundError as error:
        raise versions.missing(store, name) from error
    if found != file.sha256:
        raise versions.damaged(store, name)


def _due(
    connection: Connection, uses: Uses, place: str, before: datetime, only: str = "", refused: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Jobs whose items may leave, with their signatures as of archiving. `only`: none but this one."""
    text = query("archive/leaving").format(finished=query("archive/finished"))
    watches, referred = uses.watches(connection, before)
    used = [*text_retention.live_sources(connection), *uses.decided(connection), *referred]
    where = {"place": place, "before": before, "used": used, "watches": watches, "only": only}
    where |= {"refused": list(refused), "most": _JOBS_A_LOOK}
    return connection.execute(text, where).fetchall()


def _checked(connection: Connection, version: Version, place: str, kept: Path, texts: Path) -> Checked:
    """Raises DamagedError if the file `kept` does not have the items that the database has."""
    job_id, file = version.job_id, version.of(rows.ITEMS)
    assert file is not None
    answers = rows.answers(connection, job_id)
    if answers != version.answers:
        raise DamagedError(f"The archive has other answers than the database ({version.answers}, not {answers}).")
    taken = rows.parquet(kept)
    columns = _columns(connection, rows.ITEMS)
    if lacking := sorted(set(columns) - set(_columns(connection, taken))):
        raise DamagedError(f"The archive lacks {', '.join(lacking)}. An earlier version wrote it.")
    if text_retention.dropped_attempt(connection, job_id):
        columns = [name for name in columns if name not in text_retention.COLUMNS]
    here = _digest(connection, f"{rows.ITEMS} WHERE job_id = $job_id", columns, job_id)
    if here != _digest(connection, f"{taken} WHERE job_id = $job_id", columns, job_id) or here[0] != file.rows:
        raise DamagedError(f"{place}/{versions.folder_of(job_id)}/{file.file} has other items than the database.")
    return Checked(
        Away(job_id, place, file.file, file.sha256, file.rows, answers),
        _dropped(connection, version, texts),
        _unsealed_result(connection, job_id),
    )


def _dropped(connection: Connection, version: Version, texts: Path) -> tuple[datetime | None, int]:
    dropped: tuple[datetime | None, int] = (None, 0)
    if version.of("answer_texts") is not None:
        (dropped,) = connection.execute(f"SELECT dropped_at, dropped_attempt FROM {rows.parquet(texts)}").fetchall()
    return dropped


def _unsealed_result(connection: Connection, job_id: str) -> bytes | None:
    job = job_reads.get_job(connection, job_id)
    if job_reads.sealed_result(connection, job_id, job.attempt) is None:
        # One that cannot be computed is none with the items, either.
        with suppress(InvalidRequestError):
            return job_result.compute(connection, job, seal=False).result.SerializeToString()
    return None


def _columns(connection: Connection, table: str) -> list[str]:
    return [name for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]


def _digest(connection: Connection, of: str, columns: Sequence[str], job_id: str) -> tuple[int, ...]:
    """Of rows in any order."""
    row = f"hash({', '.join(f'{chr(34)}{name}{chr(34)}' for name in columns)})"
    sql = f"SELECT count(*), bit_xor({row}), sum({row}::HUGEINT) FROM {of}"
    ((count, *digests),) = connection.execute(sql, {"job_id": job_id}).fetchall()
    return (count, *digests)


def _leave(
    connection: Connection,
    uses: Uses,
    checked: Checked,
    kept: Path,
    signature: str,
    before: datetime,
    now: datetime,
) -> bool:
    """Whether the items have left. False for a job that has changed or is in use again."""
    away, (dropped_at, dropped_attempt) = checked.away, checked.dropped
    if _due(connection, uses, away.place, before, away.job_id) != [(away.job_id, signature)]:
        return False
    if rows.answers(connection, away.job_id) != away.answers:
        return False
    where = {"job_id": away.job_id}
    connection.execute(
        f"INSERT INTO archived_identities SELECT job_id, identity FROM {rows.parquet(kept)} "
        f"WHERE identity IS NOT NULL AND outcome <> {OUTCOME_INFRASTRUCTURE_ERROR}"
    )
    connection.execute("DELETE FROM items WHERE job_id = $job_id", where)
    connection.execute(
        "UPDATE answer_texts SET bytes = 0, dropped_at = $at, dropped_attempt = $attempt WHERE job_id = $job_id",
        where | {"at": dropped_at, "attempt": dropped_attempt},
    )
    archived_items.note_left(connection, away, now, checked.result, job_result.RULES)
    return True
