"""Adding a person's annotation to an answer. Every annotation is kept; the newest applies."""

from __future__ import annotations

from datetime import datetime

from services.errors import ConflictError, InvalidRequestError, PermissionDeniedError
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage.database import Connection
from services.results.storage.item_rows import ERROR
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from services.words import refusals
from touchstone.v1 import results_service_pb2 as pb

ANSWER_BYTES = 64 * 1024
NOTE_LENGTH = 2_000

_GOLDEN, _FIX = pb.Annotation.VERDICT_GOLDEN, pb.Annotation.VERDICT_FIX


def annotate(
    connection: Connection,
    request: pb.AnnotateItemRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> None:
    """Adds an annotation; repeating the annotation that applies changes nothing.

    Raises InvalidRequestError, NotFoundError for the job and the item, PermissionDeniedError for other users' jobs, and
    ConflictError for an item without an answer.
    """
    _check(request)
    job = job_reads.get_job(connection, request.job_id, visible)
    if not caller.is_admin and caller.user != job.owner:
        raise PermissionDeniedError(refusals.not_yours("Job", job.job_id, job.owner, "annotate its answers"))
    wanted = pb.GetItemRequest(job_id=job.job_id, task=request.task, item=request.item, repeat=request.repeat)
    stored = reads.get_item(connection, wanted, visible)
    _require_answer(request, stored)
    said, holds = (request.verdict, request.corrected_answer, request.note), stored.annotation
    if said == (holds.verdict, holds.corrected_answer, holds.note) and holds.author in (caller.user, ""):
        return
    connection.execute(
        "INSERT INTO annotations SELECT coalesce(max(number), 0) + 1, $job_id, $task, $item, $repeat, $verdict, "
        "$answer, $note, $author, $now FROM annotations",
        {
            "job_id": job.job_id,
            "task": request.task,
            "item": request.item,
            "repeat": request.repeat,
            "verdict": int(request.verdict),
            "answer": request.corrected_answer,
            "note": request.note,
            "author": caller.user,
            "now": now,
        },
    )


def _check(request: pb.AnnotateItemRequest) -> None:
    """Raises InvalidRequestError."""
    if request.verdict not in pb.Annotation.Verdict.values():
        raise InvalidRequestError("verdict must be golden, fix or wrong, or none to remove one.", "verdict")
    if request.verdict == _FIX and not request.corrected_answer.strip():
        raise InvalidRequestError("Set answer to what the answer should have been.", "corrected_answer")
    if request.verdict != _FIX and request.corrected_answer:
        raise InvalidRequestError("Only the verdict fix takes a corrected answer.", "corrected_answer")
    if (size := len(request.corrected_answer.encode())) > ANSWER_BYTES:
        raise InvalidRequestError(
            refusals.too_large("The corrected answer", size, ANSWER_BYTES, "bytes"), "corrected_answer"
        )
    if len(request.note) > NOTE_LENGTH:
        raise InvalidRequestError(refusals.too_large("The note", len(request.note), NOTE_LENGTH, "characters"), "note")


def _require_answer(request: pb.AnnotateItemRequest, stored: pb.StoredItem) -> None:
    """Raises ConflictError."""
    if not request.verdict:
        return
    which = f"item {request.item} of task {request.task!r}"
    if stored.result.outcome == ERROR:
        raise ConflictError(f"The calls for {which} failed. Retry the job, then annotate the answer.")
    if request.verdict in (_GOLDEN, _FIX) and not stored.result.prompt:
        raise ConflictError(f"The texts of {which} were dropped because the answer store was full. Run the job again.")
    if request.verdict == _GOLDEN and not (stored.result.response or stored.result.tool_calls):
        raise ConflictError(f"There is no answer to {which}. Use fix with the answer that it should have.")
