"""Items in the archive that one read needs and that do not come back: it has copies of them, without their texts. No
number is computed from those."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from services.results.storage import archived_items, text_retention
from services.results.storage.archived_items import Away
from services.results.storage.database import Connection
from services.results.storage.items_away import ItemsAwayError, Lend, LostItemsError

T = TypeVar("T")

Copies = Mapping[str, Path]
"""Parquet files, by job."""


async def with_copies(lend: Lend | None, read: Callable[[Copies], Awaitable[T]]) -> T:
    """What is read, again and again with copies of the items that were lacking. Raises as `read` and `Lent.add`."""
    if lend is None:
        return await read({})
    async with lend() as lent:
        asked, lost = set[str](), None
        while True:
            try:
                return await read(lent.copies)
            except ItemsAwayError as away:
                if asked.issuperset(away.job_ids):
                    raise lost or away from None
                asked.update(away.job_ids)
                try:
                    await lent.add(away.job_ids)
                except LostItemsError as error:
                    # The read may do without them.
                    lost = error


def name_of(away: Away) -> str:
    """The name of a copy: another file of the archive has another one."""
    return f"{away.job_id}.{away.file}"


def require(connection: Connection, copies: Copies, *job_ids: str) -> None:
    """Raises ItemsAwayError where the items of some of these jobs are away, and there are no copies of them."""
    archived_items.require(connection, *(set(job_ids) - {away.job_id for away in _lent(connection, copies, job_ids)}))


@contextmanager
def at_hand(connection: Connection, copies: Copies, *job_ids: str) -> Iterator[None]:
    """Whatever the connection reads of `items` within is of these jobs alone, whether they are away or not. Without
    copies nothing changes."""
    if lent := [away.job_id for away in _lent(connection, copies, job_ids)]:
        ((database,),) = connection.execute("SELECT current_database()").fetchall()
        stored = f'"{database}".main'
        here = _listed(job_id for job_id in job_ids if job_id not in lent)
        # Not a table: a transaction keeps those that it drops.
        connection.execute(
            f"CREATE TEMP VIEW items AS SELECT * EXCLUDE ({', '.join(text_retention.COLUMNS)}) FROM {stored}.items "
            f"WHERE job_id IN ({here}) "
            f"UNION ALL BY NAME FROM read_parquet([{_listed(str(copies[job_id]) for job_id in lent)}])"
        )
        connection.execute(
            f"CREATE TEMP VIEW archived_items AS FROM {stored}.archived_items WHERE job_id NOT IN ({_listed(lent)})"
        )
    try:
        yield
    finally:
        # A comparison may have put another one in its place.
        connection.execute("DROP VIEW IF EXISTS temp.items")
        connection.execute("DROP TABLE IF EXISTS temp.common_items")
        connection.execute("DROP VIEW IF EXISTS temp.archived_items")


def _listed(texts: Iterable[str]) -> str:
    """As a list in SQL: a view takes no parameters."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts) or "NULL"


def _lent(connection: Connection, copies: Copies, job_ids: tuple[str, ...]) -> list[Away]:
    """The jobs among these that are away as they were copied."""
    found = (archived_items.find(connection, job_id) for job_id in job_ids if job_id in copies)
    return [away for away in found if away is not None and copies[away.job_id].name == name_of(away)]
