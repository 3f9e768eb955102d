"""Seals that the database has lost, or that follow older rules. A seal is written on the scheduler's call and is not in
any stream; it can be recomputed from the job's end, which AUDIT has, and from the stored items.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC
from functools import partial

from services import bus
from services.errors import ConflictError, InvalidRequestError, NotFoundError, UnavailableError
from services.results.intake import writes
from services.results.intake.feeds import Feed
from services.results.intake.ordered_stream import NATS_TROUBLE
from services.results.runs import job_reads
from services.results.scores.job_result import RULES, Computed, compute
from services.results.storage import run_scores
from services.results.storage.database import Connection, Database, first_row
from touchstone.v1 import job_pb2

log = logging.getLogger(__name__)

_FIRST_S, _PAUSE_S = 0.5, 10.0
_NOT_LOST = "j.job_id NOT IN (SELECT job_id FROM archived_items WHERE returned_at IS NULL AND lost)"
"""A seal is computed from items, which the archive has lost of some jobs."""


async def reseal_lost(connection: bus.Bus, database: Database, items: Feed, events: Feed) -> None:
    """Seals completed jobs without a seal of the present rules, whenever the streams are fully stored, until
    cancelled."""
    pause = _FIRST_S
    while True:
        if await _caught_up(connection, items, events):
            await reseal(database)
            pause = _PAUSE_S
        await asyncio.sleep(pause)


async def _caught_up(connection: bus.Bus, items: Feed, events: Feed) -> bool:
    try:
        for stream, feed in ((bus.AUDIT, events), (bus.RESULTS, items)):
            if feed.position < (await connection.js.stream_info(stream)).state.last_seq:
                return False
    except NATS_TROUBLE:
        return False
    return True


async def reseal(database: Database) -> int:
    """How many jobs were sealed."""
    lost = await database.read(_lost)
    for job_id in lost:
        job = await _sealed(database, job_id)
        if job is not None:
            log.warning("the result of job %s was lost with the database and computed again", job_id)
    outdated = await database.read(_outdated)
    renewed = [job_id for job_id in outdated if await _sealed(database, job_id) is not None]
    if renewed:
        log.info("%d results of older rules were computed again", len(renewed))
    return len(lost) + len(renewed)


async def _sealed(database: Database, job_id: str) -> job_pb2.Job | None:
    """The job, once its result is computed and stored; None where that is impossible."""
    try:
        job = await database.read(partial(job_reads.get_job, job_id=job_id))
        computed = await database.read_long(partial(compute, job=job, seal=True))
    except (InvalidRequestError, ConflictError, UnavailableError) as error:
        # Its items may be in an archive that does not give them back now.
        log.error("the result of job %s cannot be computed: %s", job_id, error.message)
        return None
    except NotFoundError:
        # Deleted meanwhile.
        return None
    await database.write(partial(_store, job=job, computed=computed))
    return job


def _store(connection: Connection, job: job_pb2.Job, computed: Computed) -> None:
    now = first_row(
        connection,
        "SELECT j.attempt, s.attempt, s.sealed_at FROM jobs j LEFT JOIN seals s ON s.job_id = j.job_id "
        "WHERE j.job_id = $job_id",
        {"job_id": job.job_id},
    )
    if now is None or now[0] != job.attempt:
        # Retried meanwhile.
        return
    sealed_before = now[1] == job.attempt
    at = now[2].replace(tzinfo=UTC) if sealed_before else job.finished_at.ToDatetime(UTC)
    writes.write_seal(connection, job, computed, at)
    # The run may be marked already.
    run_scores.refresh(connection, job.job_id)


def _lost(connection: Connection) -> list[str]:
    rows = connection.execute(
        "SELECT j.job_id FROM jobs j LEFT JOIN seals s ON s.job_id = j.job_id AND s.attempt = j.attempt "
        f"WHERE j.state = $completed AND j.planned IS NOT NULL AND s.job_id IS NULL AND {_NOT_LOST} ORDER BY j.job_id",
        {"completed": int(job_pb2.Job.STATE_COMPLETED)},
    ).fetchall()
    return [job_id for (job_id,) in rows]


def _outdated(connection: Connection) -> list[str]:
    """Completed jobs sealed by older rules, newest first, as boards show those. A job whose seal cannot be computed
    keeps the old one."""
    rows = connection.execute(
        "SELECT j.job_id FROM jobs j JOIN seals s ON s.job_id = j.job_id AND s.attempt = j.attempt "
        f"WHERE j.state = $completed AND s.rules < $rules AND {_NOT_LOST} ORDER BY s.sealed_at DESC, j.job_id",
        {"completed": int(job_pb2.Job.STATE_COMPLETED), "rules": RULES},
    ).fetchall()
    return [job_id for (job_id,) in rows]
