"""How long imported answers stay: until a complete run holds them; a week without one; within the store's bound."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from functools import partial

from services.results.imports import store
from services.results.storage.database import Connection, Database
from touchstone.v1 import job_pb2

log = logging.getLogger(__name__)

_CHECK_S = 2.0
_KEPT = timedelta(days=7)


async def keep_tidy(database: Database, max_bytes: int) -> None:
    """Drops what is not needed any more, until cancelled. `max_bytes` bounds all waiting answers; 0 means no bound."""
    await forget_unfinished(database)
    while True:
        await tidy(database, max_bytes, datetime.now(UTC).replace(tzinfo=None))
        await asyncio.sleep(_CHECK_S)


async def forget_unfinished(database: Database) -> None:
    """At the start: of what a crash left unfinished, nobody sends the rest."""
    for import_id in await database.read(_unfinished):
        await database.write(partial(store.discard, import_id=import_id))


async def tidy(database: Database, max_bytes: int, now: datetime) -> None:
    """One round; `now` is UTC without a zone."""
    for import_id in await database.read(partial(_over, max_bytes=max_bytes, now=now)):
        await database.write(partial(_drop, import_id=import_id, now=now))


def _unfinished(connection: Connection) -> list[str]:
    return [
        import_id for (import_id,) in connection.execute("FROM imports SELECT import_id WHERE NOT whole").fetchall()
    ]


def _over(connection: Connection, max_bytes: int, now: datetime) -> list[str]:
    """Imports to drop: done with, too old, and the oldest ones beyond the bound. Never one that a live job takes."""
    rows = connection.execute(
        "SELECT import_id, done OR created_at < $oldest, bytes FROM imports WHERE whole AND dropped_at IS NULL "
        "ORDER BY created_at DESC, import_id",
        {"oldest": now - _KEPT},
    ).fetchall()
    if not rows:
        return []
    taken = _taken(connection)
    used, found = 0, []
    for import_id, over, size in rows:
        used += size
        if import_id not in taken and (over or (max_bytes and used > max_bytes)):
            found.append(import_id)
            used -= size
    return found


def _taken(connection: Connection) -> set[str]:
    live = connection.execute(f"SELECT job FROM jobs WHERE state < {job_pb2.Job.STATE_COMPLETED}").fetchall()
    return {job_pb2.Job.FromString(blob).spec.reuse.import_id for (blob,) in live}


def _drop(connection: Connection, import_id: str, now: datetime) -> None:
    where = {"import_id": import_id}
    connection.execute(
        "UPDATE imports SET dropped_at = $now, bytes = 0 WHERE import_id = $import_id", where | {"now": now}
    )
    connection.execute("DELETE FROM imported_answers WHERE import_id = $import_id", where)
    log.info("dropped the answers of import %s", import_id)
