"""Jobs whose items are in the archive alone: what reads items says of which jobs. So they are brought back first, and a
job never looks as if it had none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from services.results.storage.database import Connection, first_row, query
from services.results.storage.items_away import ItemsAwayError
from services.results.visibility import Visibility


@dataclass(frozen=True, slots=True)
class Away:
    """Items that are in the file `file` of the job's folder in the archive `place`."""

    job_id: str
    place: str
    file: str
    sha256: str
    items: int
    answers: str


def require(connection: Connection, *job_ids: str) -> None:
    """Raises ItemsAwayError where the items of some of these jobs are away."""
    rows = connection.execute(
        "SELECT job_id FROM archived_items WHERE returned_at IS NULL "
        "AND job_id IN (SELECT unnest($job_ids::VARCHAR[])) ORDER BY job_id",
        {"job_ids": list(job_ids)},
    ).fetchall()
    if rows:
        raise ItemsAwayError([job_id for (job_id,) in rows])


def require_identities(connection: Connection, identities: Sequence[str], visible: Visibility) -> None:
    """The same for visible jobs that alone have an answer with one of these identities."""
    where = {"identities": identities, **visible.parameters}
    rows = connection.execute(query("storage/archived_identities"), where).fetchall()
    require(connection, *(job_id for (job_id,) in rows))


def find(connection: Connection, job_id: str) -> Away | None:
    """None while the job's items are in the database."""
    row = first_row(
        connection,
        "SELECT job_id, place, file, sha256, items, answers FROM archived_items "
        "WHERE job_id = $job_id AND returned_at IS NULL",
        {"job_id": job_id},
    )
    return Away(*row) if row is not None else None


def all_away(connection: Connection) -> list[Away]:
    """None in a file of an earlier version, which has no table of them."""
    known = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'archived_items'").fetchall()
    if not known:
        return []
    rows = connection.execute(
        "SELECT job_id, place, file, sha256, items, answers FROM archived_items WHERE returned_at IS NULL "
        "ORDER BY job_id"
    )
    return [Away(*row) for row in rows.fetchall()]


def note_left(connection: Connection, away: Away, now: datetime, result: bytes | None = None, rules: int = 0) -> None:
    """`now` is in UTC without a zone. `result` is what the items give by these `rules`, of a job that keeps it nowhere
    else."""
    connection.execute(
        "INSERT OR REPLACE INTO archived_items "
        "VALUES ($job_id, $place, $file, $sha256, $items, $answers, $now, NULL, $result, $rules, false)",
        {
            "job_id": away.job_id,
            "place": away.place,
            "file": away.file,
            "sha256": away.sha256,
            "items": away.items,
            "answers": away.answers,
            "now": now,
            "result": result,
            "rules": rules,
        },
    )


def result_of(connection: Connection, job_id: str, attempt: int, rules: int) -> bytes | None:
    """What the items of this attempt gave by these rules when they left; None if they are here, if some came late, and
    where that was not kept."""
    row = first_row(
        connection,
        "SELECT result FROM archived_items WHERE job_id = $job_id AND returned_at IS NULL AND rules = $rules "
        "AND starts_with(answers, $attempt) AND NOT EXISTS (SELECT 1 FROM items WHERE job_id = $job_id)",
        {"job_id": job_id, "rules": rules, "attempt": f"{attempt}."},
    )
    return row[0] if row is not None else None


def note_returned(connection: Connection, job_id: str, now: datetime) -> None:
    """`now` is in UTC without a zone."""
    where = {"job_id": job_id}
    connection.execute("UPDATE archived_items SET returned_at = $now WHERE job_id = $job_id", where | {"now": now})
    forget_identities(connection, job_id)
    # Their texts are to be counted.
    connection.execute("UPDATE answer_texts SET bytes = NULL WHERE job_id = $job_id", where)


def note_found(connection: Connection, now: datetime) -> None:
    """Notes that items are back of which a copy was found elsewhere, such as in a backup."""
    rows = connection.execute(
        "SELECT a.job_id FROM archived_items a JOIN items i ON i.job_id = a.job_id WHERE a.returned_at IS NULL "
        "GROUP BY a.job_id HAVING count(*) >= any_value(a.items)"
    ).fetchall()
    for (job_id,) in rows:
        note_returned(connection, job_id, now)


def forget(connection: Connection, job_id: str) -> None:
    """The job was deleted."""
    connection.execute("DELETE FROM archived_items WHERE job_id = $job_id", {"job_id": job_id})
    forget_identities(connection, job_id)


def forget_identities(connection: Connection, job_id: str) -> None:
    """The job's answers can replace no calls any more."""
    connection.execute("DELETE FROM archived_identities WHERE job_id = $job_id", {"job_id": job_id})


def note_lost(connection: Connection, job_id: str) -> None:
    """The archive has no whole file of the items. Calls are made again, then."""
    connection.execute("UPDATE archived_items SET lost = true WHERE job_id = $job_id", {"job_id": job_id})
    forget_identities(connection, job_id)


def lost_among(connection: Connection, job_ids: Sequence[str]) -> set[str]:
    """The jobs among these whose items the archive did not have when they were needed last. What can do without them
    leaves them out."""
    rows = connection.execute(
        "SELECT job_id FROM archived_items WHERE returned_at IS NULL AND lost "
        "AND job_id IN (SELECT unnest($job_ids::VARCHAR[]))",
        {"job_ids": list(job_ids)},
    ).fetchall()
    return {job_id for (job_id,) in rows}


def mark(database: Path, place: str) -> None:
    """Leaves a file next to the database, which says where items of its jobs are should it be lost. Raises OSError."""
    marker = marker_of(database)
    if not marker.is_file() or marker.read_text() != place:
        fresh = marker.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(place)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(marker)


def marker_of(database: Path) -> Path:
    return database.with_name("items-in-archive")
