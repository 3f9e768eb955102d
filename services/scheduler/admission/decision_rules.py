"""What a decision's jobs must have in common, and how they name each other. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from services.errors import ConflictError, InvalidRequestError
from services.scheduler.jobs.job import Job
from services.words import refusals
from services.words.decisions import DEFAULT_ERROR, LEAST_ERROR, MOST_ERROR, MOST_MODELS
from touchstone.v1 import job_pb2, schedule_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

_SAME = {"mode": "mode", "priority": "priority", "reading": "layers that read answers"}


def specs(request: pb.StartDecisionRequest) -> list[job_pb2.JobSpec]:
    """Those of all jobs, the baseline's first."""
    return [request.baseline, request.candidate, *request.further_candidates]


def sides(request: pb.StartDecisionRequest) -> list[job_pb2.Deciding]:
    """Those of all jobs, the baseline's first, which do not name each other yet. Raises InvalidRequestError."""
    asked = specs(request)
    if len(asked) > MOST_MODELS:
        raise InvalidRequestError(
            refusals.too_large("The decision", len(asked), MOST_MODELS, "models"), "further_candidates"
        )
    error = request.error or DEFAULT_ERROR
    if not LEAST_ERROR <= error <= MOST_ERROR:
        raise InvalidRequestError(refusals.between("error", LEAST_ERROR, MOST_ERROR), "error")
    if not (math.isfinite(request.margin) and 0 <= request.margin < 1):
        raise InvalidRequestError("margin must be at least 0 and below 1.", "margin")
    for field, spec in zip(_fields(len(asked)), asked, strict=True):
        if _items(spec) != _items(request.baseline):
            raise InvalidRequestError(
                "All jobs of a decision must ask the same items. Name one suite, or datasets with the same rows, with "
                "one limit and seed.",
                field,
            )
        for name, title in _SAME.items():
            if getattr(spec, name) != getattr(request.baseline, name):
                raise InvalidRequestError(f"All jobs of a decision must have the same {title}.", f"{field}.{name}")
        _check(field, spec)
    return [
        job_pb2.Deciding(candidate=place > 0, error=error, margin=request.margin, seed=request.seed)
        for place in range(len(asked))
    ]


def _fields(jobs: int) -> list[str]:
    return ["baseline", "candidate", *(f"further_candidates[{place}]" for place in range(jobs - 2))]


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
        "replays_job_id": "A replay is compared with the job that it replays.",
    }
    for name, why in refused.items():
        if spec.HasField("judging") if name == "judging" else getattr(spec, name):
            raise InvalidRequestError(f"{why} Leave {name} out.", f"{field}.{name}")
    if spec.reuse.job_id or spec.reuse.import_id:
        raise InvalidRequestError("A decision asks models. Of reuse, only any_job is possible.", f"{field}.reuse")
    if spec.suite.repeats > 1:
        raise InvalidRequestError(refusals.between("repeats", 0, 1), f"{field}.suite.repeats")


def next_jobs(schedule: schedule_pb2.Schedule) -> list[job_pb2.JobSpec]:
    """The specs of the next decision of a schedule. A time has one order, however often it is tried. Another time has
    another one: first items that happen to favour one model would favour it each time."""
    asked = []
    drawn = f"{schedule.spec.deciding.seed}:{schedule.schedule_id}:{schedule.next_at.ToSeconds()}"
    # Programs that read JSON know whole numbers of up to 53 bits.
    seed = int.from_bytes(hashlib.sha256(drawn.encode()).digest()[:8]) >> 11
    for spec in (schedule.spec, *schedule.candidates):
        one = job_pb2.JobSpec()
        one.CopyFrom(spec)
        one.deciding.seed = seed
        asked.append(one)
    return asked


def require_ended(job: Job, others: Sequence[Job]) -> None:
    """Raises ConflictError for a job that has ended while another one of its decision has not: if this one ran again or
    were deleted, the decision would lose what it has answered."""
    live = next((other for other in others if other.live and not job.live), None)
    if live is not None:
        raise ConflictError(f"Job {live.id} of the same decision has not ended. Wait until it has, or cancel it.")


def link(jobs: Sequence[Job]) -> None:
    """Makes new jobs name each other, if they are those of a decision."""
    if len(jobs) < 2 or not all(job.message.spec.HasField("deciding") for job in jobs):
        return
    baseline, *candidates = jobs
    for job in jobs:
        side = job.message.spec.deciding
        side.against_job_id = candidates[0].id if job is baseline else baseline.id
        if len(jobs) > 2:
            side.race_job_ids.extend(one.id for one in jobs)


def unlinked(spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
    """The spec as it was asked for, without the jobs of its decision."""
    copy = job_pb2.JobSpec()
    copy.CopyFrom(spec)
    if copy.HasField("deciding"):
        copy.deciding.ClearField("against_job_id")
        copy.deciding.ClearField("race_job_ids")
    return copy
