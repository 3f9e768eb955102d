"""The scheduler's ports. Each has a NATS or gRPC adapter and a fake in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.bus import ResultHeaders
from services.errors import UnavailableError
from services.scheduler.jobs.job import Job
from touchstone.v1 import (
    dataset_pb2,
    decision_pb2,
    digest_pb2,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    schedule_pb2,
    unit_pb2,
    watch_pb2,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A job to store, with the audit event of the change; None for a progress checkpoint."""

    job: Job
    event: job_pb2.JobEvent | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A message on RESULTS about a unit, without its body."""

    unit: int
    headers: ResultHeaders
    sequence: int


class Store(Protocol):
    """The JOBS bucket under one leadership."""

    async def commit(self, changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        """Stores all or nothing (up to a hundred jobs), fenced by the leader's epoch. Raises LeadershipLostError when
        that has moved on, and also when the outcome is unknown: the state must be read again then."""
        ...

    async def forget(self, job: Job) -> None:
        """Removes a finished job that the results service keeps."""
        ...

    async def set_floor(self, sequence: int) -> None:
        """Records that RESULTS up to this position is no longer needed here."""
        ...

    async def find_request(self, owner: str, request_id: str) -> Sequence[str]:
        """Ids of the jobs that this request made before, in its order; empty for none."""
        ...

    async def last_told(self, job_id: str) -> job_pb2.JobEvent | None:
        """The job's last event on the audit trail; None without one."""
        ...

    async def tell(self, event: job_pb2.JobEvent) -> None:
        """Publishes an event that the audit trail has lost. Raises LeadershipLostError."""
        ...


class Schedules(Protocol):
    """Schedules under one leadership. Raises LeadershipLostError when that has moved on or a write's outcome is
    unknown."""

    async def load(self) -> list[schedule_pb2.Schedule]: ...

    async def put(self, schedule: schedule_pb2.Schedule) -> None: ...

    async def remove(self, schedule_id: str) -> None: ...


class Work(Protocol):
    """The WORK stream. Delivery to evaluators is at least once."""

    async def release(self, endpoint: str, priority: int, unit: unit_pb2.Unit) -> bool:
        """Offers a unit; False if it is already offered. Raises LeadershipLostError."""
        ...

    async def withdraw(self, job_id: str) -> None:
        """Removes a job's units."""
        ...

    async def released(self) -> set[tuple[str, int]]:
        """(job id, unit) of everything that is offered or with an evaluator."""
        ...

    async def close(self, job_id: str, attempt: int, units: Sequence[int], after: int) -> Sequence[Told]:
        """Takes the units from their evaluators, with a message on RESULTS after which their calls can no longer begin.

        Returns all messages of the job on RESULTS after that position, up to the last of these. Does nothing if RESULTS
        has no room for them. Raises LeadershipLostError.
        """
        ...

    async def results_position(self) -> int:
        """Last position of the RESULTS stream now."""
        ...


class Datasets(Protocol):
    """Uploaded datasets. Raises UnavailableError while they cannot be read."""

    async def get_manifest(self, dataset_id: str) -> dataset_pb2.DatasetManifest | None:
        """None for a dataset that does not exist."""
        ...


class Results(Protocol):
    """The results service. Raises UnavailableError while it does not answer."""

    async def seal(self, job: job_pb2.Job, sequence: int) -> results_service_pb2.SealJobResponse: ...

    async def stored(self, job_id: str, sequence: int) -> dict[str, set[int]]:
        """Positions with a final outcome by task, once RESULTS is stored up to `sequence`."""
        ...

    async def job(self, job_id: str) -> job_pb2.Job:
        """A job of any age. Raises NotFoundError."""
        ...

    async def live(self) -> list[job_pb2.Job]:
        """Jobs that are not finished, as far as the results service knows."""
        ...

    async def imported(self, import_id: str) -> results_service_pb2.GetImportResponse:
        """The model whose answers an import holds, and its tasks. Raises NotFoundError."""
        ...

    async def prepare_judging(self, judging: job_pb2.Judging) -> dataset_pb2.Dataset:
        """The rows that ask to judge a completed job's answers. Raises NotFoundError, ConflictError."""
        ...

    async def prepare_experiment(self, owner: str, definition: str, check_only: bool = False) -> dataset_pb2.Dataset:
        """The rows of an experiment, made unless there are some. With `check_only` nothing is made, and an empty id
        means that there are none. Raises InvalidRequestError, and ConflictError for other rows under the same name."""
        ...

    async def jobs_over(self, dataset_id: str) -> list[job_pb2.Job]:
        """Jobs of any age over a dataset, newest first."""
        ...

    async def evidence(self, jobs: Sequence[job_pb2.Job], sequence: int) -> decision_pb2.Decision:
        """What the answers to a decision's jobs say, once RESULTS is stored up to `sequence`."""
        ...

    async def choose_canaries(self, watching: job_pb2.Watching, owner: str) -> job_pb2.Watching:
        """The watch with its canaries. Raises NotFoundError, and ConflictError for answers that cannot be a
        reference."""
        ...

    async def alarm(self, job_id: str) -> watch_pb2.Watch | None:
        """The watch if this run of it has raised the alarm. Raises UnavailableError also while its end is not
        stored."""
        ...

    async def ended_decision(self, job_id: str) -> decision_pb2.Decision | None:
        """The decision whose jobs have all ended, this one last. Raises as `alarm`."""
        ...

    async def digest(self, request: results_service_pb2.GetDigestRequest, owner: str) -> digest_pb2.Digest:
        """What changed in a time, of what the owner may read."""
        ...

    async def result(self, job_id: str) -> metric_pb2.JobResult:
        """What a job has measured so far. Raises NotFoundError."""
        ...


class LeadershipLostError(UnavailableError):
    """Another scheduler leads, or a write's outcome is unknown: forget everything and start again as a standby."""
