"""Copies of items for reads that need those of many jobs for a moment: brought back, they would make the database grow.

Of each file in the archive, only what comparisons read is kept, and only until the read has its answer.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from services.results.archive import rows
from services.results.archive.returning import Returning
from services.results.storage import archived_items, lent_items, text_retention
from services.results.storage.archived_items import Away
from services.results.storage.database import Connection, Database, writing_elsewhere
from services.results.storage.items_away import LostItemsError

_FOLDER = "lent"


class Lent:
    """The copies of one read."""

    def __init__(self, database: Database, returning: Returning, folder: Path) -> None:
        self._database, self._returning, self._folder = database, returning, folder
        self.copies: dict[str, Path] = {}

    async def add(self, job_ids: Sequence[str]) -> None:
        """Raises as `Returning.bring_back`, after all others were copied."""
        ended = await asyncio.gather(*map(self._copy, job_ids), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _copy(self, job_id: str) -> None:
        if await self._database.read(partial(_has_late_ones, job_id=job_id)):
            # Both together are what a read should find.
            await self._returning.bring_back([job_id])
            return
        async with self._returning.fetching(job_id) as away:
            if away is None:
                return
            whole, copy = self._folder / f"{job_id}.whole", self._folder / lent_items.name_of(away)
            try:
                await asyncio.to_thread(self._returning.fetch, away, whole)
                await self._database.read_long(partial(_shorten, away=away, whole=whole, copy=copy))
            finally:
                await asyncio.to_thread(whole.unlink, missing_ok=True)
            self.copies[job_id] = copy


class Lending:
    """Of one database."""

    def __init__(self, database: Database, returning: Returning) -> None:
        self._database, self._returning = database, returning
        self._folder = returning.folder / _FOLDER

    async def tidy(self) -> None:
        """Removes what an earlier process left behind."""
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Lent]:
        folder = self._folder / uuid.uuid4().hex
        try:
            yield Lent(self._database, self._returning, folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _has_late_ones(connection: Connection, job_id: str) -> bool:
    return archived_items.find(connection, job_id) is not None and bool(rows.stored(connection, job_id))


def _shorten(connection: Connection, away: Away, whole: Path, copy: Path) -> None:
    """Copies a file of items without their texts, with the columns that it lacks. Raises OSError, and LostItemsError if
    it has fewer than it had."""
    taken = rows.parquet(whole)
    there = {name for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {taken}").fetchall()}
    columns = connection.execute(
        "SELECT column_name, coalesce(column_default, 'NULL'), data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND table_name = 'items' ORDER BY column_index"
    ).fetchall()
    chosen = ", ".join(
        f'"{name}"' if name in there else f'({default})::{kind} AS "{name}"'
        for name, default, kind in columns
        if name not in text_retention.COLUMNS
    )
    with writing_elsewhere():
        connection.execute(
            f"COPY (SELECT {chosen} FROM {taken}) TO '{str(copy).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)"
        ).fetchall()
    ((count,),) = connection.execute(f"SELECT count(*) FROM {rows.parquet(copy)}").fetchall()
    if count < away.items:
        raise LostItemsError(f"The file of job {away.job_id} in the archive has {count:,} of {away.items:,} items.")
