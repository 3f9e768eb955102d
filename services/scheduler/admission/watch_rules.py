"""What a watch asks, and which job each of its times makes. Pure."""

from __future__ import annotations

import math

from services import further_fields
from services.errors import ConflictError, InvalidRequestError
from services.words import refusals
from services.words.jobs import is_import, is_rescore
from services.words.watches import DEFAULT_ERROR, DEFAULT_ITEMS, MOST_ERROR, MOST_ITEMS
from touchstone.v1 import job_pb2, schedule_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

_OF_ONE_JOB = (
    *("reuse", "judges", "judging", "deciding", "watching", "experiment_name", "max_model_b", "schedule_id"),
    *("priority", "provider_batch", "webhook_url", "replays_job_id"),
)
"""What a run of a watch does not take over from the reference."""


def watching_of(request: pb.StartWatchRequest) -> job_pb2.Watching:
    """Without canaries. Raises InvalidRequestError."""
    error = request.error or DEFAULT_ERROR
    if not (math.isfinite(error) and 0 < error <= MOST_ERROR):
        raise InvalidRequestError(f"error must be above 0 and at most {MOST_ERROR}.", "error")
    if not 0 <= request.items <= MOST_ITEMS:
        raise InvalidRequestError(refusals.between("items", 1, MOST_ITEMS), "items")
    if not request.reference_job_id:
        raise InvalidRequestError("Name the job whose answers are the reference.", "reference_job_id")
    if request.again_job_id == request.reference_job_id:
        raise InvalidRequestError(
            "The second run must be another job than the reference. Leave it out if there is none.", "again_job_id"
        )
    return job_pb2.Watching(
        reference_job_id=request.reference_job_id,
        again_job_id=request.again_job_id,
        items=request.items or DEFAULT_ITEMS,
        error=error,
        seed=request.seed,
    )


def spec_of(reference: job_pb2.Job, request: pb.StartWatchRequest) -> job_pb2.JobSpec:
    """The job of every run, without its canaries. Raises ConflictError for a judge's job, for a reference that was not
    asked of a model unless the request says where to ask, and for one that cannot be asked once in the same way."""
    if reference.spec.HasField("judging"):
        # Its runs would be judges of the judged job, each with a few answers.
        raise ConflictError(f"Job {reference.job_id} is a judge's. Watch with a job whose answers are not judgements.")
    _require_same_temperature(reference)
    spec = job_pb2.JobSpec()
    spec.CopyFrom(reference.spec)
    asks_nobody = is_rescore(spec) or is_import(spec)
    if asks_nobody and not (request.endpoint and request.model):
        raise ConflictError(
            f"Job {reference.job_id} took its answers from the store or a file. Name the endpoint and the model to ask."
        )
    for name in _OF_ONE_JOB:
        spec.ClearField(name)
    spec.endpoint, spec.model = request.endpoint or spec.endpoint, request.model or spec.model
    # The canaries say which items, and each is asked once.
    if spec.HasField("suite"):
        spec.suite.limit = spec.suite.repeats = 0
    else:
        spec.dataset.limit = 0
    return spec


def _require_same_temperature(reference: job_pb2.Job) -> None:
    """Without a temperature, several answers are asked for at the provider's own one, and a single answer at 0. An
    unchanged model would answer otherwise."""
    sampling = reference.spec.sampling
    if reference.spec.suite.repeats > 1 and not further_fields.samples(sampling, further_fields.fields(sampling)):
        raise ConflictError(
            f"Job {reference.job_id} asked each item several times, at its provider's own temperature. A watch asks "
            "once, at temperature 0. Name a job that asked once, or that sets a temperature."
        )


def next_run(schedule: schedule_pb2.Schedule) -> job_pb2.JobSpec:
    """The spec of the next run: the canaries after those that were asked, up to the last one. After that they begin
    again."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(schedule.spec)
    watching, start = spec.watching, schedule.canaries_asked
    first = start % watching.total
    chosen = list(watching.canaries[first : first + watching.items])
    del watching.canaries[:]
    watching.canaries.extend(chosen)
    watching.start = start
    # Of a task by name, as of an open suite, there is only the one.
    if spec.HasField("suite") and ":" not in spec.suite.suite:
        del spec.suite.tasks[:]
        spec.suite.tasks.extend(sorted({canary.task for canary in chosen}))
    return spec
