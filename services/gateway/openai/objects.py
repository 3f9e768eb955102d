"""Datasets and jobs as the OpenAI API names them: files and batches, and pages of their lists. Pure."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from services.errors import InvalidRequestError, NotFoundError
from services.gateway.fields.schema import BOOLEAN, COUNT, OBJECT, STRING, Schema, about, array, enum, null, shape
from services.words.jobs import ENDED_EARLY, is_finished
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2

T = TypeVar("T")

MOST = 10_000
"""The most objects that are searched."""

Json = dict[str, Any]

CHAT = "/v1/chat/completions"
WINDOW = "24h"
LABEL = "openai.batch"
"""The label of a job that was created as a batch; users' metadata become further labels. Its value is `label`'s."""
CREATED = "created_at"
"""The only time from which files expire."""

_FILE = re.compile(r"file-(?P<kind>out-|err-)?(?P<digits>[0-9a-f]{32})")
_EXPIRING = re.compile(r"output_expires_after=(?P<seconds>[0-9]{1,9})")
_BATCH = re.compile(r"batch_(?P<digits>[0-9a-f]{32})")
_STATE = job_pb2.Job
_STATUS: Mapping[job_pb2.Job.State, str] = {
    _STATE.STATE_PENDING: "validating",
    _STATE.STATE_PLANNING: "validating",
    _STATE.STATE_RUNNING: "in_progress",
    _STATE.STATE_FINALIZING: "finalizing",
    _STATE.STATE_COMPLETED: "completed",
    _STATE.STATE_FAILED: "failed",
    _STATE.STATE_CANCELLED: "cancelled",
}
_ENDED = {
    _STATE.STATE_COMPLETED: "completed_at",
    _STATE.STATE_FAILED: "failed_at",
    _STATE.STATE_CANCELLED: "cancelled_at",
}


@dataclass(frozen=True, slots=True)
class FileId:
    """The meaning of a file's id: an uploaded `input` (a dataset), or a job's answers (`output`) or failures
    (`error`)."""

    kind: Literal["input", "output", "error"]
    id: str
    """The dataset's or the job's id."""


def listing(held: Schema, name: str, *, paged: bool = False) -> Schema:
    """The schema of a list of such objects."""
    members = {"object": about(enum("list"), "Always `list`."), "data": about(array(held), "The objects.")}
    if paged:
        members |= {
            "first_id": about(null(STRING), "The id of the first object on the page."),
            "last_id": about(null(STRING), "The id of the last one, for `after` of the next page."),
            "has_more": about(BOOLEAN, "Whether another page follows."),
        }
    return shape(members, name=name)


_UNIX = "in seconds since 1970"
FILE = shape(
    {
        "id": about(STRING, "The file's id."),
        "object": about(enum("file"), "Always `file`."),
        "bytes": about(COUNT, "The size of an uploaded file; 0 for the files of a batch."),
        "created_at": about(COUNT, f"When the file was made, {_UNIX}."),
        "expires_at": about(null(COUNT), f"When the file expires, {_UNIX}."),
        "filename": about(STRING, "The file's name."),
        "purpose": about(enum("batch", "batch_output"), "`batch` for an uploaded file."),
        "status": about(enum("processed"), "Always `processed`."),
        "status_details": about({"type": "null"}, "Always null."),
    },
    name="OpenAIFile",
)
_TIMES = ("created_at", "in_progress_at", "expires_at", "finalizing_at", "completed_at", "failed_at", "expired_at")
BATCH = shape(
    {
        "id": about(STRING, "The batch's id."),
        "object": about(enum("batch"), "Always `batch`."),
        "endpoint": about(STRING, "The address that the lines are for."),
        "model": about(STRING, "The model that answers the lines."),
        "errors": about(null(OBJECT), "Why the batch failed: `object` and `data`."),
        "input_file_id": about(STRING, "The uploaded file."),
        "completion_window": about(STRING, "Always `24h`."),
        "status": about(enum(*dict.fromkeys(_STATUS.values())), "How far the batch has come."),
        "output_file_id": about(null(STRING), "The file of its answers."),
        "error_file_id": about(null(STRING), "The file of requests that failed or were not run."),
        **{name: about(null(COUNT), f"The time of this step, {_UNIX}.") for name in _TIMES},
        "cancelling_at": about(null(COUNT), f"When it was cancelled, {_UNIX}."),
        "cancelled_at": about(null(COUNT), f"When it was cancelled, {_UNIX}."),
        "request_counts": about(
            shape(
                {
                    "total": about(COUNT, "All of the file's requests."),
                    "completed": about(COUNT, "Those with an answer."),
                    "failed": about(COUNT, "Those that failed."),
                }
            ),
            "How many requests have ended.",
        ),
        "usage": about(null(OBJECT), "The tokens, after the end."),
        "metadata": about(null(OBJECT), "The metadata that it was created with."),
    },
    name="OpenAIBatch",
)


def file_id(text: str) -> FileId:
    """Raises NotFoundError for an impossible id of a file."""
    found = _FILE.fullmatch(text)
    if found is None:
        raise NotFoundError(f"No such File object: {text[:80]}")
    digits = found["digits"]
    match found["kind"]:
        case "out-":
            return FileId("output", _hyphenated(digits))
        case "err-":
            return FileId("error", _hyphenated(digits))
        case _:
            return FileId("input", f"ds_{digits}")


def job_id(text: str) -> str:
    """The job of a batch's id. Raises NotFoundError for an impossible id."""
    found = _BATCH.fullmatch(text)
    if found is None:
        raise NotFoundError(f"No batch found with id {text[:80]!r}.")
    return _hyphenated(found["digits"])


def batch_id(job: job_pb2.Job) -> str:
    return f"batch_{_digits(job)}"


def input_file_id(dataset_id: str) -> str:
    return f"file-{dataset_id.removeprefix('ds_')}"


def input_file(dataset: dataset_pb2.Dataset) -> Json:
    """An uploaded dataset as a file object."""
    return {
        "id": input_file_id(dataset.dataset_id),
        "object": "file",
        "bytes": dataset.bytes,
        "created_at": dataset.uploaded_at.seconds,
        "expires_at": _seconds(dataset.expires_at),
        "filename": dataset.name,
        "purpose": "batch",
        "status": "processed",
        "status_details": None,
    }


def label(output_expires_after_s: int = 0) -> str:
    """The value of LABEL; 0 means that the files that the batch makes stay."""
    return f"output_expires_after={output_expires_after_s}" if output_expires_after_s else "1"


def _made_expires_at(job: job_pb2.Job) -> int | None:
    """When the job's files expire, in Unix seconds; None if they stay."""
    found = _EXPIRING.fullmatch(job.spec.labels.get(LABEL, ""))
    return _made_at(job) + int(found["seconds"]) if found else None


def _made_at(job: job_pb2.Job) -> int:
    return job.finished_at.seconds or job.created_at.seconds


def made_file(job: job_pb2.Job, kind: Literal["output", "error"]) -> Json:
    """A job's answers or failures as a file object. Its size is not known before it is read: 0."""
    return {
        "id": _made_id(job, kind),
        "object": "file",
        "bytes": 0,
        "created_at": _made_at(job),
        "expires_at": _made_expires_at(job),
        "filename": f"{batch_id(job)}_{kind}.jsonl",
        "purpose": "batch_output",
        "status": "processed",
        "status_details": None,
    }


def kept_kinds(job: job_pb2.Job, now: float) -> list[Literal["output", "error"]]:
    """`made_kinds`, or none once they have expired. `now` is in Unix seconds."""
    expires = _made_expires_at(job)
    return [] if expires is not None and expires <= now else made_kinds(job)


def made_kinds(job: job_pb2.Job) -> list[Literal["output", "error"]]:
    """The files of a finished job: one of answers if there are any, and one of requests that failed or were not run if
    there are any."""
    if not is_finished(job):
        return []
    failed = job.progress.items_failed
    kinds: list[Literal["output", "error"]] = ["output"] if job.progress.items_done > failed else []
    return [*kinds, "error"] if failed or has_not_run(job) else kinds


def has_not_run(job: job_pb2.Job) -> bool:
    """Whether a job ended before all its requests were run. One that ended before its plan ran none."""
    return job.state in ENDED_EARLY and not 0 < _requests(job) <= job.progress.items_done


def not_run(job: job_pb2.Job, custom_id: str) -> Json:
    """The line of an error file for a request that was not run."""
    cancelled = job.state == _STATE.STATE_CANCELLED
    why = "cancelled" if cancelled else "failed"
    return {
        "id": f"batch_req_{sha256(f'{job.job_id}/{custom_id}'.encode()).hexdigest()[:32]}",
        "custom_id": custom_id,
        "response": None,
        "error": {
            "code": f"batch_{why}",
            "message": f"The batch {'was ' if cancelled else ''}{why} before this request was run.",
        },
    }


def _requests(job: job_pb2.Job) -> int:
    """0 before the job has a plan."""
    return job.progress.items_total or sum(plan.items for plan in job.plan)


def is_batch(job: job_pb2.Job) -> bool:
    return LABEL in job.spec.labels


def batch(job: job_pb2.Job, result: metric_pb2.JobResult | None = None) -> Json:
    """A job over a file as a batch object; `result` is for an ended one."""
    made = made_kinds(job)
    metadata = {key: value for key, value in job.spec.labels.items() if key != LABEL}
    ended = _ENDED.get(job.state, "")
    return {
        "id": batch_id(job),
        "object": "batch",
        "endpoint": CHAT,
        "model": job.spec.model,
        "errors": _errors(job),
        "input_file_id": input_file_id(job.spec.dataset.dataset_id),
        "completion_window": WINDOW,
        "status": _STATUS.get(job.state, "validating"),
        "output_file_id": _made_id(job, "output") if "output" in made else None,
        "error_file_id": _made_id(job, "error") if "error" in made else None,
        "created_at": job.created_at.seconds,
        "in_progress_at": _seconds(job.started_at),
        "expires_at": None,
        "finalizing_at": None,
        "completed_at": None,
        "failed_at": None,
        "expired_at": None,
        "cancelling_at": _seconds(job.finished_at) if ended == "cancelled_at" else None,
        "cancelled_at": None,
        **({ended: _seconds(job.finished_at)} if ended else {}),
        "request_counts": {
            "total": _requests(job),
            "completed": job.progress.items_done - job.progress.items_failed,
            "failed": job.progress.items_failed,
        },
        "usage": _usage(result) if result is not None else None,
        "metadata": metadata or None,
    }


def _usage(result: metric_pb2.JobResult) -> Json | None:
    """Tokens of the answers that have them; None if none does."""
    counted = result.input_tokens + result.output_tokens
    if not counted:
        return None
    return {
        "input_tokens": result.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": result.output_tokens,
        "output_tokens_details": {"reasoning_tokens": result.reasoning_tokens},
        "total_tokens": counted,
    }


def _errors(job: job_pb2.Job) -> Json | None:
    if job.state != _STATE.STATE_FAILED:
        return None
    failure = {"code": "job_failed", "message": job.reason, "line": None, "param": None}
    return {"object": "list", "data": [failure]}


def _made_id(job: job_pb2.Job, kind: Literal["output", "error"]) -> str:
    return f"file-{'out' if kind == 'output' else 'err'}-{_digits(job)}"


def _digits(job: job_pb2.Job) -> str:
    return job.job_id.replace("-", "")


def _hyphenated(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _seconds(stamp: Timestamp) -> int | None:
    return stamp.seconds or None


async def newest(pages: AsyncIterator[Sequence[T]], wanted: Callable[[T], bool]) -> list[T]:
    """The matches among the newest objects, newest first."""
    found: list[T] = []
    seen = 0
    async for page in pages:
        found += [one for one in page if wanted(one)]
        seen += len(page)
        if seen >= MOST:
            break
    return found


def page(objects: Sequence[Json], after: str | None, limit: int) -> Json:
    """The objects after the one with this id. Raises InvalidRequestError for an id that is not in the list."""
    start = 0
    if after:
        places = [place for place, one in enumerate(objects) if one["id"] == after]
        if not places:
            raise InvalidRequestError(f"after is {after[:80]!r}, which is not in the list.", "after")
        start = places[0] + 1
    shown = objects[start : start + limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": start + limit < len(objects),
    }
