"""What the fake scheduler refuses and fills in: by the real scheduler's own rules, over the fake world."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from services import rpc
from services.errors import (
    ConflictError,
    LimitReachedError,
    NoRoomError,
    NotFoundError,
    PermissionDeniedError,
    TouchstoneError,
)
from services.scheduler.admission import dataset_rules, decision_rules, judging_rules
from services.scheduler.admission.validation import validate
from services.scheduler.jobs import reuse
from services.scheduler.jobs.fleet import Fleet
from services.scheduler.jobs.job import Job
from services.scheduler.settings import Limits
from services.scheduler.webhooks.address import AddressRule
from services.words import refusals, replays
from tests.gateway import fake_data
from tests.gateway.fake_world import World
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2, scoring_pb2

LIMITS = Limits()


def created(world: World, request_id: str, specs: Sequence[job_pb2.JobSpec]) -> list[job_pb2.Job]:
    """The jobs of a request: new ones, or those that it made before. Raises what the scheduler raises."""
    rpc.check_request_id(request_id)
    owner = rpc.identity().user
    checked = []
    for spec in specs:
        with _named(spec, len(specs)):
            checked.append(full(world, spec))
    made = [world.jobs[job_id] for job_id in world.requests.get((owner, request_id), [])]
    if made and [decision_rules.unlinked(job.spec) for job in made] != checked:
        what = f"job {made[0].job_id}" if len(made) == len(checked) else f"{len(made)} jobs"
        raise ConflictError(refusals.id_used(request_id, what))
    if made:
        return made
    require_room(world, owner, len(checked))
    jobs = [world.add(spec, owner, asked=asked) for spec, asked in zip(checked, specs, strict=True)]
    for job in jobs:
        if job.spec.reuse.job_id:
            reuse.begin(job, world.jobs[job.spec.reuse.job_id])
    if request_id:
        world.requests[owner, request_id] = [job.job_id for job in jobs]
    return jobs


def require_room(world: World, owner: str, jobs: int = 1) -> None:
    """Raises NoRoomError for a full disk, LimitReachedError for a full queue."""
    if world.notice:
        raise NoRoomError(world.notice, 30)
    if len(world.waiting(owner)) + jobs > LIMITS.pending_per_owner:
        raise LimitReachedError("Queue is full. Please try again later.", LIMITS.queue_retry_after_s)


def retried(world: World, job_id: str) -> job_pb2.Job:
    """The job in its next attempt. Raises what the scheduler raises."""
    message = find(world, job_id)
    job = Job(message)
    require_owner(message)
    if job.can_retry and message.spec.HasField("dataset") and message.spec.dataset.dataset_id not in world.datasets:
        raise ConflictError(dataset_rules.deleted(message.spec.dataset, job_id))
    if job.can_retry:
        require_room(world, message.owner)
    job.retry(time.time())
    return message


def find(world: World, job_id: str) -> job_pb2.Job:
    """Raises NotFoundError."""
    if job_id not in world.jobs or job_id in world.forgotten:
        raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    return world.jobs[job_id]


def require_owner(job: job_pb2.Job) -> None:
    """Raises PermissionDeniedError."""
    caller = rpc.identity()
    if not caller.is_admin and caller.user != job.owner:
        raise PermissionDeniedError(refusals.not_yours("Job", job.job_id, job.owner, "change it"))


def fleet() -> Fleet:
    """The fake evaluator, as the scheduler knows it."""
    known = Fleet(absent_after_s=LIMITS.absent_after_s)
    known.hear(fake_data.evaluator(), time.time())
    return known


def full(world: World, spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
    """The spec with its defaults filled in. Raises what the scheduler raises."""
    asked = job_pb2.JobSpec()
    asked.CopyFrom(spec)
    asked.ClearField("schedule_id")
    if asked.webhook_url:
        AddressRule().check_url(asked.webhook_url, "spec.webhook_url")
    dataset_rules.check_form(asked.dataset)
    judging_rules.check_form(asked)
    if asked.HasField("judging"):
        judging_rules.fill_in(asked, _to_judge(world, asked.judging))
    if asked.replays_job_id:
        replays.check(asked, find(world, asked.replays_job_id))
    source = _source(world, asked)
    dataset = world.datasets.get(asked.dataset.dataset_id)
    if source is not None and asked.HasField("dataset") and dataset is None:
        raise NotFoundError(dataset_rules.deleted(asked.dataset, source.job_id))
    return validate(asked, fleet(), LIMITS, time.time(), source, dataset)


def _to_judge(world: World, judging: job_pb2.Judging) -> dataset_pb2.Dataset:
    """The rows that ask to judge."""
    judged = find(world, judging.job_id)
    if judging.against_job_id:
        find(world, judging.against_job_id)
    if judged.state != job_pb2.Job.STATE_COMPLETED:
        raise ConflictError(f"Job {judged.job_id} has not completed. Judge its answers once it has.")
    dataset = dataset_pb2.Dataset(
        dataset_id=f"ds_{judged.job_id.replace('-', '')}",
        name=f"answers of {judged.job_id}",
        rows=max(1, judged.progress.items_total),
        owner=judged.owner,
        scoring=scoring_pb2.Scoring(scorer="judgement", rubric=judging.rubric),
        judging=judging,
    )
    dataset.judging.attempt, dataset.judging.repeats = judged.attempt, max(1, judging.repeats)
    world.datasets[dataset.dataset_id] = dataset
    asks = dataset_pb2.ChatMessage(role="user", content="Judge this answer.")
    world.rows[dataset.dataset_id] = [
        dataset_pb2.DatasetRow(custom_id=f"t/{number}/0", messages=[asks]) for number in range(dataset.rows)
    ]
    return dataset


def _source(world: World, spec: job_pb2.JobSpec) -> job_pb2.Job | None:
    job_id = spec.reuse.job_id
    if not job_id:
        return None
    if job_id not in world.jobs:
        raise NotFoundError(refusals.not_found("Benchmark job", job_id))
    source, result = world.jobs[job_id], world.results.get(job_id, metric_pb2.JobResult(job_id=job_id))
    reuse.check_mark(job_id, result)
    reuse.check_kept(job_id, result.texts_dropped)
    reuse.check_rerun(spec.reuse, source, result)
    return source


@contextmanager
def _named(spec: job_pb2.JobSpec, jobs: int) -> Iterator[None]:
    """Has a refusal say which of several jobs is meant."""
    try:
        yield
    except TouchstoneError as error:
        if jobs > 1:
            error.message = f"{spec.model}@{spec.endpoint}: {error.message}"
        raise
