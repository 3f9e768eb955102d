"""Callers' requests to the scheduler: create, read, watch, cancel, retry and delete jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress

from services.errors import (
    ConflictError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
    PermissionDeniedError,
    TouchstoneError,
    UnavailableError,
    UnsupportedError,
)
from services.rpc import Identity, check_request_id
from services.scheduler.admission import dataset_rules, decision_rules, judging_rules
from services.scheduler.admission.validation import usual_priority, validate
from services.scheduler.jobs import budget, reuse
from services.scheduler.jobs.job import FINALIZING, HOLDS_SLOT, PENDING, Job, new_job_id, seconds, stamp
from services.scheduler.lifecycle.deciding import joins, others
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.scheduler.requests.spec_context import Context, Contexts, clear_set
from services.scheduler.requests.visibility import Reads
from services.scheduler.webhooks.address import AddressRule
from services.telemetry import metrics
from services.words import refusals
from services.words.enums import PRIORITIES
from services.words.jobs import MOST_AT_ONCE, calls_nobody, require_project, state_name
from touchstone.v1 import job_pb2, queue_pb2

_WATCH_INTERVAL_S = 0.25
_FORGETTING_LOOKS, _FORGETTING_S = 40, 0.05


_JUST_S = 10.0
"""For this long after its end a job is still in the queue's answer."""

_Asked = tuple[job_pb2.JobSpec, Context]


class Desk:
    """Requests against one registry."""

    def __init__(
        self, registry: JobRegistry, results: Results, reads: Reads | None = None, urls: AddressRule | None = None
    ) -> None:
        self._registry, self._results = registry, results
        self._reads, self._urls = reads or Reads(), urls or AddressRule()
        self._contexts = Contexts(registry, results, self._reads)

    async def create(self, caller: Identity, request_id: str, spec: job_pb2.JobSpec) -> job_pb2.Job:
        """Queues a job. The same request id returns the same job.

        Raises InvalidRequestError, UnsupportedError, LimitReachedError, PermissionDeniedError, NoRoomError; for a job
        whose answers are to be taken also NotFoundError, ConflictError and, if only the results service knows it,
        UnavailableError.
        """
        (job,) = await self.create_all(caller, request_id, [spec])
        return job

    async def create_all(
        self,
        caller: Identity,
        request_id: str,
        specs: Sequence[job_pb2.JobSpec],
        sides: Sequence[job_pb2.Deciding] = (),
    ) -> list[job_pb2.Job]:
        """Queues jobs, all or none: of a decision, if there are `sides`. The same request id returns the same jobs.
        Raises as `create`."""
        check_request_id(request_id)
        if not 1 <= len(specs) <= MOST_AT_ONCE:
            raise InvalidRequestError(
                f"specs must hold between 1 and {MOST_AT_ONCE} jobs; it holds {len(specs)}.", "specs"
            )
        asked: list[_Asked] = []
        for number, spec in enumerate(specs):
            with _told(spec, len(specs)):
                one = await self._contexts.with_rows(caller, self._asked(caller, spec))
                if sides:
                    one.deciding.CopyFrom(sides[number])
                asked.append((one, await self._contexts.of(caller, one)))
        return await self._registry.finish_anyway(self._create(caller, request_id, asked))

    async def check(self, caller: Identity, spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
        """The spec of jobs that will be created on a schedule. Raises as `create`, except for a full queue."""
        scheduled = self._asked(caller, spec)
        if scheduled.HasField("judging"):
            raise InvalidRequestError("A schedule cannot judge one job again and again. Set judges.", "spec.judging")
        scheduled.priority = scheduled.priority or job_pb2.PRIORITY_LOW
        _require_priority(caller, scheduled, job_pb2.PRIORITY_LOW)
        full = self._full(scheduled, await self._contexts.of(caller, scheduled))
        if full.HasField("dataset"):
            # Its jobs use the dataset's present scoring, and its list shows the dataset's name.
            scheduled.dataset.CopyFrom(full.dataset)
        return scheduled

    async def create_scheduled(
        self, owner: Identity, request_id: str, specs: Sequence[job_pb2.JobSpec]
    ) -> list[job_pb2.Job]:
        """As `create_all`, for specs that `check` has given. No user can choose a `request_id` with spaces."""
        asked = [(spec, await self._contexts.of(owner, spec)) for spec in specs]
        return await self._registry.finish_anyway(self._create(owner, request_id, asked))

    async def create_judge(self, owner: Identity, request_id: str, spec: job_pb2.JobSpec) -> job_pb2.Job:
        """As `create`, for a judge of one attempt of a completed job. No user can choose a `request_id` with spaces."""
        asked = await self._contexts.with_rows(owner, self._asked(owner, spec))
        if asked.judging.attempt != spec.judging.attempt:
            raise ConflictError(f"Job {spec.judging.job_id} has run again. Its answers get a new judge.")
        asked.max_model_b = spec.max_model_b
        context = await self._contexts.of(owner, asked)
        (job,) = await self._registry.finish_anyway(self._create(owner, request_id, [(asked, context)]))
        return job

    def _full(self, spec: job_pb2.JobSpec, context: Context) -> job_pb2.JobSpec:
        registry, source = self._registry, context.source
        if source is not None and spec.WhichOneof("work") == "dataset" and context.dataset is None:
            raise NotFoundError(dataset_rules.deleted(spec.dataset, source.job_id))
        return validate(spec, registry.fleet, registry.limits, registry.now(), source, context.dataset)

    def _asked(self, caller: Identity, spec: job_pb2.JobSpec) -> job_pb2.JobSpec:
        """A copy of a caller's spec, checked as far as possible without the fleet."""
        asked = job_pb2.JobSpec()
        asked.CopyFrom(spec)
        if asked.schedule_id and not asked.reuse.job_id:
            raise InvalidRequestError("schedule_id is set by the scheduler. Leave it out.", "spec.schedule_id")
        # Fields that were copied from the source job describe that one.
        asked.ClearField("schedule_id")
        clear_set(asked)
        if asked.webhook_url:
            self._urls.check_url(asked.webhook_url, "spec.webhook_url")
        # Here, where the loop runs between the jobs of one request, instead of under the lock.
        dataset_rules.check_form(asked.dataset)
        judging_rules.check_form(asked)
        _require_priority(caller, asked, usual_priority(asked))
        return asked

    async def _create(self, caller: Identity, request_id: str, asked: Sequence[_Asked]) -> list[job_pb2.Job]:
        registry = self._registry
        async with registry.lock:
            if request_id:
                known = await registry.store.find_request(caller.user, request_id)
                if gone := [job_id for job_id in known if job_id in registry.deleted]:
                    raise ConflictError(
                        f"request_id {request_id} was already used for job {gone[0]}, which was deleted. Use a new id."
                    )
                if known and all(job_id in registry.jobs for job_id in known):
                    made = [registry.jobs[job_id] for job_id in known]
                    self._require_same(request_id, made, asked)
                    return registry.views(made)
            jobs = self.made(caller.user, asked, request_id)
            # All jobs of a decision take one slot.
            self.require_room(caller.user, 1 if asked[0][0].HasField("deciding") else len(jobs))
            registry.jobs |= {job.id: job for job in jobs}
            await registry.commit_all(jobs, caller.user, "created")
            return registry.views(jobs)

    def made(self, owner: str, asked: Sequence[_Asked], request_id: str = "") -> list[Job]:
        """New jobs, not queued yet. Raises as `create`."""
        registry = self._registry
        now = registry.now()
        specs = []
        for spec, context in asked:
            with _told(spec, len(asked)):
                if context.source is not None and context.source.job_id in registry.deleted:
                    registry.find(context.source.job_id)
                specs.append(self._full(spec, context))
        # Ids of the same moment have no order; jobs of one request start in its order.
        ids = sorted(new_job_id(now) for _ in specs)
        jobs = []
        for job_id, full, (_, context) in zip(ids, specs, asked, strict=True):
            message = job_pb2.Job(job_id=job_id, owner=owner, spec=full, state=PENDING, attempt=1)
            if context.source is not None:
                reuse.begin(message, context.source)
                message.baseline = context.source.baseline
            elif not calls_nobody(full):
                message.baseline = registry.fleet.endpoint(full.endpoint, now).baseline
            stamp(message.created_at, now)
            message.progress.time_limit_s = full.time_limit_s
            jobs.append(Job(message, request_id=request_id, waiting_since=now))
        decision_rules.link(jobs)
        return jobs

    def _require_same(self, request_id: str, made: Sequence[Job], asked: Sequence[_Asked]) -> None:
        """Raises ConflictError if the request has already made other jobs."""
        if len(made) != len(asked):
            raise ConflictError(refusals.id_used(request_id, f"{len(made)} job{'' if len(made) == 1 else 's'}"))
        for job, (spec, context) in zip(made, asked, strict=True):
            # Of a judge, a further call of an experiment may have changed the budget.
            if spec.schedule_id or judging_rules.asked_for(request_id):
                continue
            # A spec that can no longer be checked, because its endpoint or dataset has gone, may well be the same call
            # repeated.
            with suppress(InvalidRequestError, NotFoundError):
                if decision_rules.unlinked(job.message.spec) != self._full(spec, context):
                    raise ConflictError(refusals.id_used(request_id, f"job {job.id}"))

    def require_room(self, owner: str, jobs: int = 1) -> None:
        """Raises NoRoomError, and LimitReachedError where the owner may not have that many more waiting."""
        self._registry.room.require()
        limits = self._registry.limits
        room = max(0, limits.pending_per_owner - self._registry.pending_by_owner()[owner])
        if room >= jobs:
            return
        metrics.REFUSALS.add("pending_jobs")
        if jobs == 1 or not room:
            raise LimitReachedError("Queue is full. Please try again later.", limits.queue_retry_after_s)
        raise LimitReachedError(
            f"The queue has room for {room} more of your jobs, not for {jobs}. None was queued. Start fewer, or try "
            "again later.",
            limits.queue_retry_after_s,
        )

    async def visible(self, caller: Identity, job_id: str) -> job_pb2.Job:
        """A job of any age. Raises NotFoundError for one that does not exist or that the caller may not see."""
        job = await self._contexts.any_age(job_id)
        self._reads.check(caller, job)
        return job

    def get(self, job_id: str) -> job_pb2.Job:
        return self._registry.view(self._registry.find(job_id))

    def list(self, owner: str, project_id: int = 0) -> list[job_pb2.Job]:
        """Live and recently finished jobs of one owner and project, or of all for an empty one and 0, newest first."""
        require_project(project_id)
        found = [
            job for job in self._registry.jobs.values() if owner in ("", job.message.owner) and _of(job, project_id)
        ]
        found.sort(key=lambda job: (seconds(job.message.created_at), job.id), reverse=True)
        return self._registry.views(found)

    async def cancel(self, caller: Identity, job_id: str) -> job_pb2.Job:
        """Raises ConflictError when the job is finished, PermissionDeniedError when it is somebody else's."""
        return await self._registry.finish_anyway(self._cancel(caller, job_id))

    async def _cancel(self, caller: Identity, job_id: str) -> job_pb2.Job:
        registry = self._registry
        async with registry.lock:
            job = registry.find(job_id)
            self._require_owner(caller, job)
            await registry.close_job(job)
            job.cancel(caller.user, registry.now())
            await registry.finish(job, caller.user, "cancelled")
            return registry.view(job)

    async def delete(self, caller: Identity, job_id: str) -> None:
        """Deletes a finished job of any age. Returns when the results service has forgotten it, too, or a moment later:
        it reads that from the audit trail.

        Raises NotFoundError, PermissionDeniedError for somebody else's, ConflictError for one that is not finished or
        whose answers another job takes, and UnavailableError if only the results service knows it and is silent.
        """
        old = None if self._known(job_id) else await self._results.job(job_id)
        await self._registry.finish_anyway(self._delete(caller, job_id, old))
        for _ in range(_FORGETTING_LOOKS):
            try:
                await self._results.job(job_id)
            except TouchstoneError:
                return
            await asyncio.sleep(_FORGETTING_S)

    async def _delete(self, caller: Identity, job_id: str, old: job_pb2.Job | None) -> None:
        registry = self._registry
        async with registry.lock:
            job = self._present(job_id, old)
            self._require_owner(caller, job)
            decision_rules.require_ended(job, others(registry, job))
            for other in registry.jobs.values():
                if other.live and other.message.spec.reuse.job_id == job_id:
                    raise ConflictError(
                        f"Job {other.id} takes answers of job {job_id}. Cancel it or wait, then delete this one."
                    )
            await registry.delete(job, caller.user)

    def _known(self, job_id: str) -> bool:
        return job_id in self._registry.jobs or job_id in self._registry.deleted

    def _present(self, job_id: str, old: job_pb2.Job | None) -> Job:
        """The job, `old` being what the results service said before. Raises NotFoundError, also for a deleted one, of
        which the results service may not know yet."""
        if old is None or self._known(job_id):
            return self._registry.find(job_id)
        return Job(old)

    async def set_priority(self, caller: Identity, job_id: str, priority: job_pb2.Priority) -> job_pb2.Job:
        """Gives a waiting job another priority. Raises InvalidRequestError, and ConflictError once it has started."""
        if priority not in PRIORITIES.values():
            raise InvalidRequestError(refusals.not_valid(str(priority), "priority", PRIORITIES), "priority")
        return await self._registry.finish_anyway(self._set_priority(caller, job_id, priority))

    async def _set_priority(self, caller: Identity, job_id: str, priority: job_pb2.Priority) -> job_pb2.Job:
        registry = self._registry
        async with registry.lock:
            job = registry.find(job_id)
            if job.state != PENDING:
                raise ConflictError(
                    f"Job {job_id} is {state_name(job.state)}. Only a waiting job can change its place."
                )
            if job.message.spec.priority != priority:
                job.message.spec.priority = priority
                await registry.commit(job, caller.user, "reordered")
            return registry.view(job)

    def _require_owner(self, caller: Identity, job: Job) -> None:
        self._reads.check(caller, job.message)
        if not caller.is_admin and caller.user != job.message.owner:
            owner = job.message.owner
            raise PermissionDeniedError(refusals.not_yours("Job", job.id, owner, "change it"))

    async def retry(self, caller: Identity, job_id: str) -> job_pb2.Job:
        """Queues the next attempt. Raises ConflictError when nothing is missing, or the job's dataset was deleted."""
        # Only the results service knows a job that finished long ago. It is asked before taking the lock, as it may be
        # silent.
        old = None if self._known(job_id) else await self._results.job(job_id)
        job = self._present(job_id, old)
        if job.can_retry and job.message.spec.WhichOneof("work") == "dataset":
            self._require_owner(caller, job)
            if await self._contexts.dataset(job.message.spec) is None:
                raise ConflictError(dataset_rules.deleted(job.message.spec.dataset, job_id))
        return await self._registry.finish_anyway(self._retry(caller, job_id, old))

    async def _retry(self, caller: Identity, job_id: str, old: job_pb2.Job | None) -> job_pb2.Job:
        registry = self._registry
        async with registry.lock:
            job = self._present(job_id, old)
            self._require_owner(caller, job)
            decision_rules.require_ended(job, others(registry, job))
            if job.can_retry:
                budget.check_retry(job.message)
                self.require_room(job.message.owner)
            job.retry(registry.now())
            registry.jobs[job_id] = job
            await registry.commit(job, caller.user, "retried")
            return registry.view(job)

    async def watch(self, job_id: str) -> AsyncIterator[job_pb2.Job]:
        """The job now, then after changes, until it is finished. Raises UnavailableError when leadership ends."""
        while True:
            if self._registry.closed:
                raise UnavailableError("The scheduler is restarting. Try again.")
            job = self._registry.find(job_id)
            changed = self._registry.changed(job)
            yield self._registry.view(job)
            if not job.live:
                return
            await asyncio.sleep(_WATCH_INTERVAL_S)
            await changed.wait()

    def queue(self, project_id: int = 0) -> queue_pb2.Queue:
        """Jobs of one project, or of all for 0. Positions in the queue count all jobs."""
        require_project(project_id)
        registry = self._registry
        holding = registry.in_state(*HOLDS_SLOT)
        running = [job for job in holding if _of(job, project_id)]
        scoring = [job for job in registry.in_state(FINALIZING) if _of(job, project_id)]
        for listed in (running, scoring):
            listed.sort(key=lambda job: (seconds(job.message.created_at), job.id))
        return queue_pb2.Queue(
            running=registry.views(running),
            pending=registry.views(job for w in registry.waiting() if _of(job := registry.jobs[w.job_id], project_id)),
            # Jobs that use a provider's batch API, and second ones of decisions, run in addition to the others.
            slots=registry.limits.running_jobs
            + sum(one.message.spec.provider_batch or joins(registry, one) for one in holding),
            scoring=registry.views(scoring),
            pending_per_owner=registry.limits.pending_per_owner,
            evaluators=len(registry.fleet.live(registry.now())),
            notice=registry.room.sentence,
            ended=registry.views(self._just_ended(project_id)),
        )

    def _just_ended(self, project_id: int) -> Iterator[Job]:
        since = self._registry.now() - _JUST_S
        for job in self._registry.jobs.values():
            ended = job.message.finished_at
            if job.message.HasField("finished_at") and seconds(ended) >= since and _of(job, project_id):
                yield job


def _of(job: Job, project_id: int) -> bool:
    return project_id in (0, job.message.spec.project_id)


def _require_priority(caller: Identity, spec: job_pb2.JobSpec, usual: job_pb2.Priority) -> None:
    if usual < spec.priority <= job_pb2.PRIORITY_HIGH and not caller.is_admin:
        raise PermissionDeniedError(f"Only an admin may give such jobs a priority above {PRIORITIES.of(usual)}.")


@contextmanager
def _told(spec: job_pb2.JobSpec, jobs: int) -> Iterator[None]:
    """Makes a refusal name the job that it is about."""
    try:
        yield
    except (InvalidRequestError, UnsupportedError, NotFoundError, ConflictError) as error:
        if jobs > 1:
            error.message = f"{spec.model}@{spec.endpoint}: {error.message}"
        raise
