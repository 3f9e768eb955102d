"""Taking and writing imports, each write inside the caller's transaction, and how long imported answers stay.

They stay until a complete run holds them; a week without one; within the store's bound.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa

from services.errors import InvalidRequestError
from services.results.imports.checks import MOST_BYTES, MOST_TASKS, check_answers, check_run
from services.results.storage.database import Connection, Database, first_row
from services.results.storage.rounds import rounds
from services.words import refusals
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersRequest, ImportAnswersResponse, ImportedAnswer, ImportedRun

_BETWEEN = "\x1e"
_CONTINUATION = pa.struct(
    [("text", pa.string()), ("loglikelihood", pa.float64()), ("tokens", pa.int32()), ("greedy", pa.bool_())]
)
_TOOL_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
_SCHEMA = pa.schema(
    [
        ("import_id", pa.string()),
        ("task", pa.string()),
        ("item", pa.int32()),
        ("repeat", pa.int32()),
        ("prompts", pa.uint64()),
        ("row", pa.string()),
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("finish_reason", pa.string()),
        ("continuations", pa.list_(_CONTINUATION)),
        ("latency_ms", pa.float64()),
        ("input_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("error", pa.string()),
        ("reasoning", pa.string()),
        ("tool_calls", pa.list_(_TOOL_CALL)),
        ("reasoning_tokens", pa.int32()),
        ("ttft_ms", pa.float64()),
        ("cost_usd", pa.float64()),
        ("served_model", pa.string()),
    ]
)
_PLAIN = tuple(
    name for name in _SCHEMA.names if name not in ("import_id", "prompts", "continuations", "tool_calls", "cost_usd")
)


@dataclass(frozen=True, slots=True)
class Known:
    """An import that a user has made before, and the newest job over it, "" without one."""

    import_id: str
    answers: int
    job_id: str
    repeats: int


def known(connection: Connection, owner: str, digest: str) -> Known | None:
    """The newest import that a job was made of or can still be made of. One whose job was deleted is not known: its
    answers are gone."""
    found = first_row(
        connection,
        "SELECT import_id, answers, job_id FROM imports "
        "WHERE owner = $owner AND digest = $digest AND whole AND (done OR dropped_at IS NULL) "
        "AND job_id NOT IN (SELECT job_id FROM deleted_jobs) "
        "ORDER BY created_at DESC, import_id LIMIT 1",
        {"owner": owner, "digest": digest},
    )
    if found is None:
        return None
    import_id, answers, job_id = found
    return Known(import_id, answers, job_id, repeats(connection, import_id))


def repeats(connection: Connection, import_id: str) -> int:
    """Answers per item; 1 also for an import whose answers are gone."""
    found = first_row(
        connection,
        'SELECT coalesce(max("repeat"), 0) + 1 FROM imported_answers WHERE import_id = $import_id',
        {"import_id": import_id},
    )
    return int(found[0]) if found else 1


def begin(connection: Connection, import_id: str, owner: str, run: ImportedRun, now: datetime) -> None:
    connection.execute(
        "INSERT INTO imports VALUES ($import_id, $owner, $digest, $now, $run, false, 0, 0, '', false, NULL)",
        {"import_id": import_id, "owner": owner, "digest": run.digest, "now": now, "run": run.SerializeToString()},
    )


def add(connection: Connection, import_id: str, answers: Sequence[ImportedAnswer]) -> None:
    columns = {name: [getattr(answer, name) for answer in answers] for name in _PLAIN}
    columns["import_id"] = [import_id] * len(answers)
    columns["prompts"] = [prompts_number(a.prompt, [c.text for c in a.continuations]) for a in answers]
    columns["continuations"] = [
        [{name: getattr(c, name) for name in _CONTINUATION.names} for c in answer.continuations] for answer in answers
    ]
    columns["tool_calls"] = [
        [{name: getattr(c, name) for name in _TOOL_CALL.names} for c in answer.tool_calls] for answer in answers
    ]
    columns["cost_usd"] = [answer.cost_usd if answer.HasField("cost_usd") else None for answer in answers]
    table = pa.table([pa.array(columns[field.name], field.type) for field in _SCHEMA], schema=_SCHEMA)
    connection.register("imported", table)
    connection.execute("INSERT INTO imported_answers FROM imported")
    connection.unregister("imported")


def finish(connection: Connection, import_id: str, answers: int, used: int) -> None:
    """Completes an import. Raises InvalidRequestError for an answer that is there twice, and for too many tasks."""
    where = {"import_id": import_id}
    counted = first_row(
        connection, "SELECT count(DISTINCT task) FROM imported_answers WHERE import_id = $import_id", where
    )
    if counted is not None and counted[0] > MOST_TASKS:
        raise InvalidRequestError(refusals.too_large("The import", counted[0], MOST_TASKS, "tasks"), "answers")
    twice = first_row(
        connection,
        'SELECT task, item, "repeat" FROM imported_answers WHERE import_id = $import_id '
        "GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1",
        where,
    )
    if twice is not None:
        task, item, repeat = twice
        raise InvalidRequestError(f"Item {item} of {task} has two answers with number {repeat}.", "answers")
    connection.execute(
        "UPDATE imports SET whole = true, answers = $answers, bytes = $used WHERE import_id = $import_id",
        where | {"answers": answers, "used": used},
    )


def discard(connection: Connection, import_id: str) -> None:
    """Removes an incomplete import."""
    for table in ("imported_answers", "imports"):
        connection.execute(f"DELETE FROM {table} WHERE import_id = $import_id", {"import_id": import_id})


def note_job(connection: Connection, job: job_pb2.Job) -> None:
    """Part of storing an event: which job an import became, and whether that now has all its answers."""
    if not job.spec.reuse.import_id:
        return
    connection.execute(
        "UPDATE imports SET job_id = $job_id, done = done OR $done WHERE import_id = $import_id AND job_id <= $job_id",
        {
            "job_id": job.job_id,
            "done": job.state == job_pb2.Job.STATE_COMPLETED and not job.incomplete,
            "import_id": job.spec.reuse.import_id,
        },
    )


def prompts_number(prompt: str, continuations: Sequence[str]) -> int:
    """As GetImportResponse.prompts says."""
    whole = _BETWEEN.join([prompt, *continuations])
    return int.from_bytes(hashlib.sha256(whole.encode()).digest()[:8], "big")


log = logging.getLogger(__name__)

_CHECK_S = 2.0
_KEPT = timedelta(days=7)


async def keep_tidy(database: Database, max_bytes: int) -> None:
    """Drops answers that are no longer needed, and does checkpoints that reads kept from being done, until cancelled.
    `max_bytes` bounds all waiting answers; 0 means no bound."""
    await forget_unfinished(database)
    async for _ in rounds(database, _CHECK_S):
        await database.catch_up()
        await tidy(database, max_bytes, datetime.now(UTC).replace(tzinfo=None))


async def forget_unfinished(database: Database) -> None:
    """At the start: nobody sends the rest of imports that a crash left unfinished."""
    for import_id in await database.read(_unfinished):
        await database.write(partial(discard, import_id=import_id))


async def tidy(database: Database, max_bytes: int, now: datetime) -> None:
    """One round; `now` is UTC without a zone."""
    for import_id in await database.read(partial(_over, max_bytes=max_bytes, now=now)):
        await database.write(partial(_drop, import_id=import_id, now=now))


def _unfinished(connection: Connection) -> list[str]:
    return [
        import_id for (import_id,) in connection.execute("FROM imports SELECT import_id WHERE NOT whole").fetchall()
    ]


def _over(connection: Connection, max_bytes: int, now: datetime) -> list[str]:
    """Imports to drop: finished ones, old ones, and the oldest ones beyond the limit. Never one that a live job
    takes."""
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


async def take(
    database: Database, requests: AsyncIterator[ImportAnswersRequest], owner: str, now: datetime
) -> ImportAnswersResponse:
    """Stores message after message, and drops them all when the stream breaks or one is wrong.

    Raises InvalidRequestError.
    """
    first = await anext(requests, None)
    if first is None:
        raise InvalidRequestError("The first message must describe the run. Set run.", "run")
    run = first.run
    check_run(run)
    if not first.again:
        before = await database.read(lambda c: known(c, owner, run.digest))
        if before is not None:
            return ImportAnswersResponse(
                import_id=before.import_id,
                answers=before.answers,
                known=True,
                job_id=before.job_id,
                repeats=before.repeats,
            )
    import_id = str(uuid.uuid4())
    await database.write(lambda c: begin(c, import_id, owner, run, now))
    try:
        answers = await _take_all(database, import_id, first, requests)
        # No stream holds an import.
        await database.checkpoint()
    except BaseException:
        # Also when the caller is gone, which cancels this.
        await asyncio.shield(database.write(lambda c: discard(c, import_id)))
        raise
    repeated = await database.read(lambda c: repeats(c, import_id))
    return ImportAnswersResponse(import_id=import_id, answers=answers, repeats=repeated)


async def _take_all(
    database: Database, import_id: str, first: ImportAnswersRequest, requests: AsyncIterator[ImportAnswersRequest]
) -> int:
    answers = used = 0
    message: ImportAnswersRequest | None = first
    while message is not None:
        check_answers(message.answers, answers, first.run.mode)
        answers += len(message.answers)
        used += message.ByteSize()
        if used > MOST_BYTES:
            raise InvalidRequestError(
                f"An import must have at most {MOST_BYTES // 1024**3} GB. Import fewer tasks at once.", "answers"
            )
        if message.answers:
            await database.write(partial(add, import_id=import_id, answers=message.answers))
        message = await anext(requests, None)
    if not answers:
        raise InvalidRequestError("The import has no answers.", "answers")
    await database.write(lambda c: finish(c, import_id, answers, used))
    return answers
