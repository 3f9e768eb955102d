"""The bound of the answer store: when the texts of finished jobs take too much room, the oldest are dropped.

What metrics are computed from stays (statistics, outcomes, predictions, references, hashes), so every number can still
be computed again. An answer without its identity can no longer replace a call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from services.results.storage.database import Connection, Database, first_row, query
from services.results.storage.rounds import rounds
from services.results.storage.uses import Uses
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2

log = logging.getLogger(__name__)

_SHARE_LEFT = 0.9
"""Room is made for more than the next job: each checkpoint after a drop writes whole row groups again."""
_CHECK_S = 2.0
COLUMNS = ("prompt", "messages", "response", "reasoning", "tool_calls", "logprobs", "identity", "continuations")
"""Of items: they lose their content with the texts of a job."""
_WATCHED = timedelta(days=30)
"""A watch that has asked nothing for longer has ended."""
_COUNTED_AT_ONCE = 1000
_DROPPED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """A finished attempt of a job whose texts are stored."""

    job_id: str
    attempt: int
    bytes: int


def note_end(connection: Connection, event: job_pb2.JobEvent) -> None:
    """Part of storing an event: an attempt that has ended is to be counted."""
    if not is_finished(event.job):
        return
    connection.execute(
        "INSERT INTO answer_texts (job_id, attempt, ended_at) VALUES ($job_id, $attempt, $ended_at) "
        "ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, ended_at = excluded.ended_at, bytes = NULL "
        "WHERE excluded.attempt > answer_texts.attempt",
        {"job_id": event.job.job_id, "attempt": event.job.attempt, "ended_at": event.occurred_at.ToDatetime()},
    )


def dropped_attempt(connection: Connection, job_id: str) -> int:
    """Answers of a job up to this attempt have lost their texts; 0 where none have."""
    found = first_row(connection, "SELECT dropped_attempt FROM answer_texts WHERE job_id = $job_id", {"job_id": job_id})
    return int(found[0]) if found is not None else 0


def dropped_at(connection: Connection, job_id: str) -> str:
    """When texts of a job were dropped, as ISO 8601; "" while all are kept."""
    return all_dropped_at(connection, [job_id]).get(job_id, "")


def all_dropped_at(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """The same for several jobs; jobs that are left out keep all texts."""
    rows = connection.execute(
        "SELECT job_id, dropped_at FROM answer_texts "
        "WHERE job_id IN (SELECT unnest($job_ids::VARCHAR[])) AND dropped_at IS NOT NULL",
        {"job_ids": job_ids},
    ).fetchall()
    return {job_id: at.strftime("%Y-%m-%dT%H:%M:%SZ") for job_id, at in rows}


async def keep_bounded(database: Database, max_bytes: int) -> None:
    """Keeps the texts of finished jobs within `max_bytes`, until cancelled. 0 means no bound."""
    if not max_bytes:
        await asyncio.Event().wait()
    async for _ in rounds(database, _CHECK_S):
        await make_room(database, max_bytes)


async def make_room(database: Database, max_bytes: int) -> None:
    """Counts what has ended since the last time, and drops the excess. Each job takes a few short transactions, with
    room between them for storing results."""
    while waiting := await database.read(_uncounted):
        counted = await database.read(partial(_count, waiting=waiting))
        await database.write(partial(_store_counts, counted=counted))
    used = await database.read(_total)
    if used <= max_bytes:
        return
    before, dropped, found = used, 0, -1
    while used > max_bytes * _SHARE_LEFT and found != dropped:
        found = dropped
        for kept in await database.read(_oldest):
            if used > max_bytes * _SHARE_LEFT and await _drop(database, kept):
                used -= kept.bytes
                dropped += 1
    if dropped:
        log.info("dropped the texts of %d jobs: %d bytes of %d are left", dropped, used, before)


async def _drop(database: Database, kept: Kept) -> bool:
    """Sets the mark first, so that nobody takes an empty text for an answer, and the count last, so that an interrupted
    drop is repeated. False for a job that is needed again."""
    now = datetime.now(UTC).replace(tzinfo=None)
    if not await database.write(partial(_mark, kept=kept, now=now)):
        return False
    for task in await database.read(partial(_tasks, kept=kept)):
        await database.write(partial(_clear, kept=kept, task=task))
    await database.write(partial(_store_counts, counted=[Kept(kept.job_id, kept.attempt, 0)]))
    return True


def _uncounted(connection: Connection) -> list[Kept]:
    rows = connection.execute(
        # Jobs that ended one after the other are stored next to each other.
        "SELECT job_id, attempt FROM answer_texts WHERE bytes IS NULL ORDER BY ended_at LIMIT $most",
        {"most": _COUNTED_AT_ONCE},
    ).fetchall()
    return [Kept(job_id, attempt, 0) for job_id, attempt in rows]


def _count(connection: Connection, waiting: Sequence[Kept]) -> list[Kept]:
    job_ids = [kept.job_id for kept in waiting]
    sizes = dict(connection.execute(query("storage/text_bytes"), {"job_ids": job_ids}).fetchall())
    return [Kept(kept.job_id, kept.attempt, sizes.get(kept.job_id, 0)) for kept in waiting]


def _store_counts(connection: Connection, counted: Sequence[Kept]) -> None:
    connection.execute(
        "UPDATE answer_texts SET bytes = counted.bytes "
        "FROM (SELECT unnest($jobs::VARCHAR[]) job_id, unnest($attempts::INTEGER[]) attempt, "
        "unnest($bytes::BIGINT[]) bytes) counted "
        "WHERE answer_texts.job_id = counted.job_id AND answer_texts.attempt = counted.attempt",
        {
            "jobs": [kept.job_id for kept in counted],
            "attempts": [kept.attempt for kept in counted],
            "bytes": [kept.bytes for kept in counted],
        },
    )


def _total(connection: Connection) -> int:
    ((total,),) = connection.execute(
        "SELECT coalesce((SELECT sum(bytes) FROM answer_texts), 0)::BIGINT "
        # Answers that wait for a run to take them.
        "+ coalesce((SELECT sum(bytes) FROM imports), 0)::BIGINT "
        # Calls that wait for their run to be closed.
        "+ coalesce((SELECT sum(bytes) FROM recorded_calls), 0)::BIGINT"
    ).fetchall()
    return int(total)


def _oldest(connection: Connection) -> list[Kept]:
    needed, watches = _needed(connection, datetime.now(UTC).replace(tzinfo=None))
    where = {"needed": needed, "watches": watches, "most": _DROPPED_AT_ONCE}
    return [Kept(*row) for row in connection.execute(query("storage/oldest_texts"), where).fetchall()]


def _needed(connection: Connection, now: datetime) -> tuple[list[str], list[str]]:
    """Jobs whose texts stay, and schedules whose jobs' texts do. A watch compares texts as long as it asks: without
    them, an alarm would go."""
    watches, referred = Uses().watches(connection, now - _WATCHED)
    return [*live_sources(connection), *referred], watches


def live_sources(connection: Connection) -> list[str]:
    """Jobs whose answers a live job takes."""
    live = connection.execute(f"SELECT job FROM jobs WHERE state < {job_pb2.Job.STATE_COMPLETED}").fetchall()
    return [job_pb2.Job.FromString(blob).spec.reuse.job_id for (blob,) in live]


def _mark(connection: Connection, kept: Kept, now: datetime) -> bool:
    """False when the job is running again, or something needs its texts."""
    here = {"job_id": kept.job_id, "attempt": kept.attempt}
    ended = first_row(
        connection,
        "SELECT schedule_id FROM jobs WHERE job_id = $job_id AND attempt = $attempt "
        f"AND state >= {job_pb2.Job.STATE_COMPLETED}",
        here,
    )
    needed, watches = _needed(connection, now)
    if ended is None or kept.job_id in needed or ended[0] in watches:
        return False
    connection.execute(
        "UPDATE answer_texts SET dropped_at = $now, dropped_attempt = $attempt WHERE job_id = $job_id",
        here | {"now": now},
    )
    return True


def _tasks(connection: Connection, kept: Kept) -> list[str]:
    rows = connection.execute("SELECT DISTINCT task FROM items WHERE job_id = $job_id", {"job_id": kept.job_id})
    return [task for (task,) in rows.fetchall()]


def _clear(connection: Connection, kept: Kept, task: str) -> None:
    """Rows of a later attempt, which has begun meanwhile, keep their texts."""
    where = {"job_id": kept.job_id, "task": task, "attempt": kept.attempt}
    rows = "WHERE job_id = $job_id AND task = $task AND attempt <= $attempt"
    texts = "prompt = '', messages = '', response = '', reasoning = ''"
    connection.execute(f"UPDATE items SET {texts}, identity = NULL {rows}", where)
    few = "(tool_calls IS NOT NULL OR logprobs IS NOT NULL)"
    connection.execute(f"UPDATE items SET tool_calls = NULL, logprobs = NULL {rows} AND {few}", where)
    # Separate: a list cannot be changed in place, so this moves the rows.
    connection.execute(f"UPDATE items SET continuations = NULL {rows} AND continuations IS NOT NULL", where)
