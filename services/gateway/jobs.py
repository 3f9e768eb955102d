"""Jobs as the outside sees them: status words, where a job is found, when it happened."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from services import rpc
from services.errors import NotFoundError, UnavailableError
from services.gateway.backend import Backend
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2

STATUS: dict[job_pb2.Job.State, str] = {
    job_pb2.Job.STATE_UNSPECIFIED: "pending",
    job_pb2.Job.STATE_PENDING: "pending",
    job_pb2.Job.STATE_PLANNING: "running",
    job_pb2.Job.STATE_RUNNING: "running",
    job_pb2.Job.STATE_FINALIZING: "running",
    job_pb2.Job.STATE_COMPLETED: "completed",
    job_pb2.Job.STATE_FAILED: "failed",
    job_pb2.Job.STATE_CANCELLED: "cancelled",
}
"""The API's words. What it calls running has a `current_step`."""
STATUSES = ("pending", "running", "completed", "failed", "cancelled")
_BENCHMARK = re.compile(r"bm_[0-9a-fA-F]{32}")
_DATASET = re.compile(r"ds_[0-9a-f]{32}")


def states(status: str) -> list[job_pb2.Job.State]:
    """The states behind a status word."""
    return [state for state, word in STATUS.items() if word == status and state != job_pb2.Job.STATE_UNSPECIFIED]


def short_id(job_id: str) -> str:
    """Its last eight characters: the first ones are a time, which jobs of one minute share."""
    return job_id[-8:]


def benchmark_id(job_id: str) -> str:
    """A job's id as /admin/benchmarks says it: bm_ and its UUID without hyphens."""
    return f"bm_{job_id.replace('-', '')}"


def is_benchmark(name: str) -> bool:
    """Whether the name is what `benchmark_id` makes."""
    return _BENCHMARK.fullmatch(name) is not None


def is_dataset(name: str) -> bool:
    """Whether the name of what a job ran is a dataset's id."""
    return _DATASET.fullmatch(name) is not None


def checked_dataset(dataset_id: str) -> str:
    """The id. Raises NotFoundError for what can be no id."""
    if not is_dataset(dataset_id):
        raise NotFoundError(f"Dataset {dataset_id[:80]} not found")
    return dataset_id


def is_finished(job: job_pb2.Job) -> bool:
    return job.state in (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)


def can_retry(job: job_pb2.Job) -> bool:
    return is_finished(job) and (job.state != job_pb2.Job.STATE_COMPLETED or job.incomplete)


def may_change(job: job_pb2.Job, caller: rpc.Identity) -> bool:
    return caller.is_admin or job.owner == caller.user


def is_rescore(spec: job_pb2.JobSpec) -> bool:
    """Whether stored answers are scored again, without a call."""
    return bool(spec.reuse.job_id) and not spec.reuse.rerun


def suite_of(job: job_pb2.Job) -> str:
    """What the job runs: a suite's, dataset's or experiment's name."""
    work = job.spec.WhichOneof("work")
    if work == "suite":
        return job.spec.suite.suite
    if work == "dataset":
        return job.spec.dataset.dataset_id
    if work == "experiment":
        return job.spec.experiment.experiment
    return work or ""


def items_of(job: job_pb2.Job) -> int:
    """Items that the job was planned to run; 0 before that."""
    return sum(plan.items for plan in job.plan)


def moment(stamp: Timestamp) -> datetime | None:
    """None for a time that is not set, or that no calendar has."""
    try:
        return stamp.ToDatetime(tzinfo=UTC) if stamp.seconds or stamp.nanos else None
    except (ValueError, OverflowError):
        return None


def iso(stamp: Timestamp) -> str | None:
    """ISO-8601 in UTC with milliseconds and Z."""
    when = moment(stamp)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if when else None


def not_found(job_id: str) -> NotFoundError:
    return NotFoundError(f"Benchmark job {job_id[:80]} not found")


def checked_id(job_id: str) -> str:
    """The id in its stored form, of a UUID or of what `benchmark_id` makes. Raises NotFoundError for other texts."""
    if is_benchmark(job_id):
        return str(uuid.UUID(job_id[3:]))
    try:
        canonical = str(uuid.UUID(job_id))
    except ValueError:
        raise not_found(job_id) from None
    if canonical != job_id.lower():
        raise not_found(job_id)
    return canonical


async def find(backend: Backend, job_id: str, caller: rpc.Identity) -> job_pb2.Job:
    """A job of any age: live ones from the scheduler, old ones from results.

    Raises NotFoundError. While the scheduler is silent, finished jobs are still found; for others UnavailableError.
    """
    job_id = checked_id(job_id)
    silence: UnavailableError | None = None
    try:
        request = scheduler_service_pb2.GetJobRequest(job_id=job_id)
        return (await backend.ask(backend.scheduler.GetJob, request, caller)).job
    except NotFoundError:
        pass
    except UnavailableError as error:
        silence = error
    try:
        stored = results_service_pb2.ResultsServiceGetJobRequest(job_id=job_id)
        job = (await backend.ask(backend.results.GetJob, stored, caller)).job
    except NotFoundError:
        raise silence or not_found(job_id) from None
    if silence and not is_finished(job):
        raise silence
    return job


async def result_of(backend: Backend, job_id: str, caller: rpc.Identity) -> metric_pb2.JobResult:
    """What the job has measured so far; an empty result while nothing is stored."""
    request = results_service_pb2.GetJobResultRequest(job_id=job_id)
    try:
        return (await backend.ask(backend.results.GetJobResult, request, caller)).result
    except NotFoundError:
        return metric_pb2.JobResult(job_id=job_id)
