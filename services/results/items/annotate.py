"""What people say of answers: an annotation of one, and which of several jobs' answers to a row they prefer. Everything
that was said is kept; the newest applies.
"""

from __future__ import annotations

from datetime import UTC, datetime

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results.items import reads
from services.results.runs import job_reads
from services.results.storage import archived_items
from services.results.storage.database import Connection
from services.results.storage.item_rows import ERROR
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from services.words import refusals
from services.words.enums import PREFERENCES
from touchstone.v1 import results_service_pb2 as pb

ANSWER_BYTES = 64 * 1024
NOTE_LENGTH = 2_000

_CHOICE = pb.Preference
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


FEWEST_JOBS, MOST_JOBS = 2, 4


def judge_row(
    connection: Connection,
    request: pb.JudgeRowRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> pb.Preference:
    """Adds the caller's preference; repeating the one that applies changes nothing.

    Raises InvalidRequestError, NotFoundError for a job and an answer, and ConflictError for a row with a failed call.
    """
    _check_choice(request)
    for job_id in request.job_ids:
        job_reads.get_job(connection, job_id, visible)
    archived_items.require(connection, *request.job_ids)
    task, item, repeat, custom_id = _row_of(connection, request)
    row = {"jobs": ",".join(sorted(request.job_ids)), "task": task, "item": item, "repeat": repeat}
    said = (request.choice, request.preferred_job_id, request.blind)
    holds = connection.execute(
        "SELECT choice, preferred, blind, judged_at FROM present_preferences "
        "WHERE jobs = $jobs AND task = $task AND item = $item AND repeat = $repeat AND author = $author",
        row | {"author": caller.user},
    ).fetchone()
    if holds is not None and holds[:3] == said:
        now = holds[3]
    elif holds is not None or request.choice:
        connection.execute(
            "INSERT INTO preferences SELECT coalesce(max(number), 0) + 1, $jobs, $task, $item, $repeat, $custom_id, "
            "$choice, $preferred, $blind, $author, $now FROM preferences",
            row
            | dict(zip(("choice", "preferred", "blind"), (int(said[0]), *said[1:]), strict=True))
            | {"custom_id": custom_id, "author": caller.user, "now": now},
        )
    return preference_of(*said, caller.user, now)


def preference_of(
    choice: pb.Preference.Choice, preferred: str, blind: bool, author: str, judged_at: datetime
) -> pb.Preference:
    found = pb.Preference(choice=choice, preferred_job_id=preferred, blind=blind, author=author)
    found.judged_at.FromDatetime(judged_at.replace(tzinfo=UTC))
    return found


def _check_choice(request: pb.JudgeRowRequest) -> None:
    """Raises InvalidRequestError."""
    job_ids = request.job_ids
    if not FEWEST_JOBS <= len(job_ids) <= MOST_JOBS or len(set(job_ids)) < len(job_ids):
        raise InvalidRequestError(f"job_ids must name {FEWEST_JOBS} to {MOST_JOBS} different jobs.", "job_ids")
    if request.choice not in _CHOICE.Choice.values():
        raise InvalidRequestError(refusals.not_valid(request.choice, "choice", PREFERENCES), "choice")
    if (request.choice == _CHOICE.CHOICE_BETTER) != bool(request.preferred_job_id):
        raise InvalidRequestError(
            "preferred_job_id is required for the choice better and not allowed otherwise.", "preferred_job_id"
        )
    if request.preferred_job_id and request.preferred_job_id not in job_ids:
        raise InvalidRequestError("preferred_job_id must be one of job_ids.", "preferred_job_id")


def _row_of(connection: Connection, request: pb.JudgeRowRequest) -> tuple[str, int, int, str]:
    """The row's place in the job whose id is the first in order, and its own id. Raises NotFoundError where a job has
    no answer to it, and ConflictError where a call failed."""
    first = pb.GetItemRequest(job_id=request.job_ids[0], task=request.task, item=request.item, repeat=request.repeat)
    result = reads.get_item(connection, first).result
    rows = connection.execute(
        "SELECT job_id, task, item, repeat, outcome FROM items "
        "WHERE job_id IN (SELECT unnest($jobs::VARCHAR[])) AND CASE WHEN $custom_id <> '' THEN custom_id = $custom_id "
        "ELSE task = $task AND item = $item AND repeat = $repeat AND item_hash = $hash END ORDER BY job_id",
        {
            "jobs": list(request.job_ids),
            "custom_id": result.custom_id,
            "task": request.task,
            "item": request.item,
            "repeat": request.repeat,
            "hash": result.item_hash,
        },
    ).fetchall()
    found = {job_id: place for job_id, *place in rows}
    if missing := [job_id for job_id in request.job_ids if job_id not in found]:
        raise NotFoundError(f"Job {missing[0]} has no answer to item {request.item} of task {request.task!r}.")
    if any(place[-1] == ERROR for place in found.values()):
        raise ConflictError("A call for this row failed. Retry the job, then judge the row.")
    task, item, repeat, _ = found[min(found)]
    return task, item, repeat, result.custom_id
