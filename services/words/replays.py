"""Replays: some items of a completed job, asked again in the same way. Pure."""

from __future__ import annotations

from services.errors import InvalidRequestError
from touchstone.v1 import job_pb2

USUAL_ITEMS, MOST_ITEMS = 100, 100_000
NEVER_RANKS = "a replay never ranks"

_OWN = (
    *("reuse", "judging", "judges", "webhook_url", "schedule_id", "experiment_name", "max_model_b", "deciding"),
    *("watching", "provider_batch", "labels", "priority", "replays_job_id"),
)
"""What concerns the replayed job alone."""
_FREE = (*_OWN, "budget_usd", "time_limit_s", "project_id", "stream")
"""What may differ: none of it changes what is asked."""


def spec_of(source: job_pb2.Job, items: int = USUAL_ITEMS) -> job_pb2.JobSpec:
    """A replay of about this number of items of a completed job: as many of each task, always the same ones, drawn by
    the seed of its sample."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    for name in _OWN:
        spec.ClearField(name)
    spec.replays_job_id = source.job_id
    work = spec.dataset if spec.HasField("dataset") else spec.suite
    each = -(-items // max(1, len(source.plan)))
    work.limit = min(work.limit or each, each)
    return spec


def check(spec: job_pb2.JobSpec, source: job_pb2.Job) -> None:
    """Raises InvalidRequestError for a spec that does not replay this job."""
    field = "spec.replays_job_id"
    if source.spec.replays_job_id:
        raise InvalidRequestError(
            f"Job {source.job_id} is a replay. Replay job {source.spec.replays_job_id} again.", field
        )
    if source.spec.HasField("judging"):
        raise InvalidRequestError("A judge's job cannot be replayed. Let it judge again.", field)
    if source.spec.HasField("watching"):
        reference = source.spec.watching.reference_job_id
        raise InvalidRequestError(f"Job {source.job_id} is a run of a watch. Replay job {reference}.", field)
    if spec.HasField("reuse") or spec.judges or spec.HasField("judging"):
        raise InvalidRequestError("A replay asks again. Leave reuse, judges and judging out.", field)
    if _asked(spec) != _asked(source.spec):
        raise InvalidRequestError(
            f"A replay asks as job {source.job_id} did. Only limit and budget may differ from its spec.", field
        )


def _asked(spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
    """What is asked, whatever the number of items."""
    copy = job_pb2.JobSpec()
    copy.CopyFrom(spec)
    for name in _FREE:
        copy.ClearField(name)
    for name in ("suite", "dataset"):
        if copy.HasField(name):
            getattr(copy, name).ClearField("limit")
    return copy
