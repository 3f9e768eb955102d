"""What a decision's two jobs must have in common, and how they name each other. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.errors import ConflictError, InvalidRequestError
from services.scheduler.jobs.job import Job
from services.words import refusals
from services.words.decisions import DEFAULT_ERROR, LEAST_ERROR, MOST_ERROR
from touchstone.v1 import job_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

_SAME = {"mode": "mode", "priority": "priority", "reading": "layers that read answers"}


def sides(request: pb.StartDecisionRequest) -> tuple[job_pb2.Deciding, job_pb2.Deciding]:
    """The two sides, baseline first, which do not name each other yet. Raises InvalidRequestError."""
    baseline, candidate = request.baseline, request.candidate
    error = request.error or DEFAULT_ERROR
    if not LEAST_ERROR <= error <= MOST_ERROR:
        raise InvalidRequestError(refusals.between("error", LEAST_ERROR, MOST_ERROR), "error")
    if not (math.isfinite(request.margin) and 0 <= request.margin < 1):
        raise InvalidRequestError("margin must be at least 0 and below 1.", "margin")
    if _items(baseline) != _items(candidate):
        raise InvalidRequestError(
            "Both jobs of a decision must ask the same items. Name one suite, or datasets with the same rows, with one "
            "limit and seed.",
            "candidate",
        )
    for name, title in _SAME.items():
        if getattr(baseline, name) != getattr(candidate, name):
            raise InvalidRequestError(f"Both jobs of a decision must have the same {title}.", f"candidate.{name}")
    for field, spec in (("baseline", baseline), ("candidate", candidate)):
        _check(field, spec)
    made = [
        job_pb2.Deciding(candidate=is_candidate, error=error, margin=request.margin, seed=request.seed)
        for is_candidate in (False, True)
    ]
    return made[0], made[1]


def _items(spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
    """Which items the spec asks for, as far as that is known before it is planned: examples in prompts do not matter.
    Plans say whether two datasets have the same rows."""
    asked = job_pb2.JobSpec()
    work = spec.WhichOneof("work")
    if work == "suite":
        asked.suite.CopyFrom(spec.suite)
        asked.suite.ClearField("shots")
    elif work == "dataset":
        asked.dataset.CopyFrom(spec.dataset)
        for name in ("dataset_id", "name", "digest", "last_assistant"):
            asked.dataset.ClearField(name)
    return asked


def _check(field: str, spec: job_pb2.JobSpec) -> None:
    refused = {
        "provider_batch": "The answers of a provider's batch come all at once, so a decision saves none.",
        "judges": "A decision compares the scores of answers themselves.",
        "judging": "A decision compares the scores of answers themselves.",
    }
    for name, why in refused.items():
        if spec.HasField("judging") if name == "judging" else getattr(spec, name):
            raise InvalidRequestError(f"{why} Leave {name} out.", f"{field}.{name}")
    if spec.reuse.job_id or spec.reuse.import_id:
        raise InvalidRequestError("A decision asks models. Of reuse, only any_job is possible.", f"{field}.reuse")
    if spec.suite.repeats > 1:
        raise InvalidRequestError(refusals.between("repeats", 0, 1), f"{field}.suite.repeats")


def require_ended(job: Job, other: Job | None) -> None:
    """Raises ConflictError for a job that has ended while the other side of its decision has not: if this one ran again
    or were deleted, that one would run on alone."""
    if other is not None and other.live and not job.live:
        raise ConflictError(
            f"Job {other.id}, the other side of its decision, has not ended. Wait until it has, or cancel it."
        )


def link(jobs: Sequence[Job]) -> None:
    """Makes two new jobs name each other, if they are the sides of a decision."""
    if len(jobs) == 2 and all(job.message.spec.HasField("deciding") for job in jobs):
        for job, other in (jobs, jobs[::-1]):
            job.message.spec.deciding.against_job_id = other.id


def unlinked(spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
    """The spec as it was asked for, without the other side's job."""
    copy = job_pb2.JobSpec()
    copy.CopyFrom(spec)
    if copy.HasField("deciding"):
        copy.deciding.ClearField("against_job_id")
    return copy
