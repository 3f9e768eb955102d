"""What a job's spec must satisfy before it is queued. Pure. Every message says what may be given instead."""

from __future__ import annotations

import re

from services.errors import InvalidRequestError, NotFoundError, UnsupportedError
from services.scheduler.fleet import Fleet
from touchstone.v1 import job_pb2, suite_pb2

_RANGES: tuple[tuple[str, float, float], ...] = (
    ("temperature", 0.0, 2.0),
    ("top_p", 0.0, 1.0),
    ("top_k", 0, 100),
    ("max_tokens", 1, 1_000_000),
    ("context_length", 1, 10_000_000),
    ("repeat_penalty", 0.0, 2.0),
)
_MOST_SPEC_BYTES = 16 * 1024
"""The spec travels with every unit and every audit event; a NATS message holds 1 MB."""
_REQUEST_ID = re.compile(r"[\x21-\x7e]{0,64}")


def validate(request_id: str, spec: job_pb2.JobSpec, fleet: Fleet, job_time_s: int, now: float) -> job_pb2.JobSpec:
    """The spec with its defaults filled in. Raises InvalidRequestError or UnsupportedError."""
    if not _REQUEST_ID.fullmatch(request_id):
        raise InvalidRequestError("request_id may have up to 64 printable ASCII characters.", "request_id")
    full = job_pb2.JobSpec()
    full.CopyFrom(spec)
    try:
        fleet.endpoint(full.endpoint, now)
    except NotFoundError as error:
        raise InvalidRequestError(error.message, "spec.endpoint") from error
    if not full.model or len(full.model) > 300 or not full.model.isprintable():
        raise InvalidRequestError("Name a model of the endpoint, at most 300 characters.", "spec.model")
    for name, low, high in _RANGES:
        value = getattr(full.sampling, name)
        # Written so that NaN fails, too.
        if full.sampling.HasField(name) and not low <= value <= high:
            raise InvalidRequestError(f"{name} is {value:g}; it may be {low:g} to {high:g}.", f"spec.sampling.{name}")
    if full.ByteSize() > _MOST_SPEC_BYTES:
        raise InvalidRequestError(
            f"The job's description has {full.ByteSize():,} bytes; it may have {_MOST_SPEC_BYTES:,}. "
            "Shorten sampling.extra or the list of tasks.",
            "spec",
        )
    if not 0 <= full.time_limit_s <= job_time_s:
        raise InvalidRequestError(f"time_limit_s may be 0 to {job_time_s}.", "spec.time_limit_s")
    full.time_limit_s = full.time_limit_s or job_time_s
    full.mode = full.mode or suite_pb2.MODE_GENERATE
    work = full.WhichOneof("work")
    if work is None:
        raise InvalidRequestError("Say what to run: set suite.", "spec.work")
    if work != "suite":
        raise UnsupportedError(f"This installation runs suites; {work} jobs are not available in it.")
    full.priority = full.priority or job_pb2.PRIORITY_HIGH
    _suite(full, fleet.suite(full.suite.suite, now))
    return full


def _suite(spec: job_pb2.JobSpec, suite: suite_pb2.Suite) -> None:
    work = spec.suite
    tasks = {task.task: task for task in suite.tasks}
    for name in work.tasks:
        if name not in tasks:
            listed = ", ".join(tasks)
            raise InvalidRequestError(f"{suite.title} has no task {name!r}. Tasks: {listed}.", "spec.suite.tasks")
    if len(set(work.tasks)) != len(work.tasks):
        raise InvalidRequestError("A task is named twice.", "spec.suite.tasks")
    if work.limit < 0:
        raise InvalidRequestError("limit may be 0 (all items) or more.", "spec.suite.limit")
    if work.repeats not in (0, 1):
        raise InvalidRequestError("repeats may be 0 or 1: one answer per item.", "spec.suite.repeats")
    for task in (tasks[name] for name in work.tasks or tasks):
        if spec.mode not in task.modes:
            mode = suite_pb2.Mode.Name(spec.mode).removeprefix("MODE_").lower()
            raise InvalidRequestError(f"{task.title} cannot run in {mode} mode.", "spec.mode")
        if not 0 <= work.shots <= task.max_shots:
            raise InvalidRequestError(f"{task.title} takes 0 to {task.max_shots} shots.", "spec.suite.shots")
