"""Runs taken out of rankings with a reason, and back in. Every mark is kept with its author and time."""

from __future__ import annotations

import logging
from datetime import datetime

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results.runs import job_reads
from services.results.storage import run_scores
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from services.words import phrases, refusals
from services.words.enums import MARKS
from touchstone.v1 import results_service_pb2 as pb

log = logging.getLogger(__name__)

REASON_LENGTH = 500


def mark_run(
    connection: Connection,
    request: pb.MarkRunRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> None:
    """Marks a finished run. From this transaction on, it no longer represents its configuration, or does so again. The
    same applies to runs with its answers when it is invalidated, and when that is withdrawn.

    Raises InvalidRequestError, NotFoundError, ConflictError for a run that is not finished, and PermissionDeniedError
    for another user's.
    """
    reason = request.reason.strip()
    if request.mark not in MARKS.values():
        raise InvalidRequestError("mark must be valid, invalidated or superseded.", "mark")
    if len(reason) > REASON_LENGTH or not (reason or request.mark == pb.RUN_MARK_VALID):
        raise InvalidRequestError(f"reason must have between 1 and {REASON_LENGTH} characters.", "reason")
    job = job_reads.get_job(connection, request.job_id, visible)
    if not caller.is_admin and caller.user != job.owner:
        raise PermissionDeniedError(refusals.not_yours("Job", job.job_id, job.owner, "mark it"))
    if job_reads.sealed_result(connection, job.job_id, job.attempt) is None:
        if job.state in phrases.ENDED_EARLY:
            how = phrases.ENDED_EARLY[job.state]
            raise ConflictError(f"Job {job.job_id} {how}, so no leaderboard shows it and there is nothing to mark.")
        raise ConflictError(f"Job {job.job_id} is not finished. Mark it when it is.")
    _check_successor(connection, request, visible)
    connection.execute(
        "INSERT INTO marks SELECT coalesce(max(number), 0) + 1, $job_id, $mark, $reason, $by, $actor, $now FROM marks",
        {
            "job_id": job.job_id,
            "mark": int(request.mark),
            "reason": reason,
            "by": request.superseded_by,
            "actor": caller.user,
            "now": now,
        },
    )
    for job_id in (job.job_id, *job_reads.built_on(connection, job.job_id)):
        run_scores.refresh(connection, job_id)
    log.info("%s marked job %s as %s", caller.user, job.job_id, MARKS.of(request.mark))


def _check_successor(connection: Connection, request: pb.MarkRunRequest, visible: Visibility) -> None:
    by = request.superseded_by
    if request.mark != pb.RUN_MARK_SUPERSEDED:
        if by:
            raise InvalidRequestError("Only the mark superseded takes a run that replaces it.", "superseded_by")
        return
    if not by or by == request.job_id:
        raise InvalidRequestError("Name the run that replaces it.", "superseded_by")
    try:
        successor = job_reads.get_job(connection, by, visible)
    except NotFoundError as error:
        raise InvalidRequestError(f"{error.message}. Name a finished run.", "superseded_by") from error
    if job_reads.sealed_result(connection, by, successor.attempt) is None:
        raise InvalidRequestError(f"Job {by} is not finished. Name a finished run.", "superseded_by")
    # So no chain of successors leads back to where it began.
    for mark in job_reads.uncounted(connection, [by]).values():
        raise InvalidRequestError(f"Job {by} is itself not counted: {mark.words}. Name another run.", "superseded_by")
