"""From a plan to a running job. A plan that cannot be used ends its job with the reason, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from services.bus import heed_cancel, is_at_fault, of_job
from services.errors import ConflictError, TouchstoneError
from services.scheduler.jobs import budget
from services.scheduler.jobs.job import PLANNING, Job
from services.scheduler.jobs.units import layout_of
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.scheduler.results_client import until_answered
from services.words import refusals
from touchstone.v1 import job_pb2, unit_pb2

log = logging.getLogger(__name__)

_MOST_RECORD = 800_000
"""Bytes of a job as it is stored: NATS takes a megabyte, and counts and reasons are added while the job runs."""
_UNUSABLE = (
    "The plan of this job cannot be used ({}). The scheduler's log has the details, and an admin can find the plan "
    "among the messages that were set aside. Retry the job."
)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A plan for one attempt of a job, from this position of RESULTS."""

    job: Job
    attempt: int
    plan: unit_pb2.Plan
    sequence: int


class Starting:
    """Starts the jobs of one registry. Plans of retries wait until `run` asks what is stored."""

    def __init__(self, registry: JobRegistry, results: Results) -> None:
        self._registry, self._results = registry, results
        self._retries: asyncio.Queue[_Answer] = asyncio.Queue()

    async def take(self, job: Job, attempt: int, plan: unit_pb2.Plan, sequence: int) -> None:
        """Starts the job, or fails it. If no job could use the plan, the error is also raised."""
        if job.state != PLANNING or job.message.attempt != attempt or job.plan_answered == attempt:
            return
        job.plan_answered = attempt
        answer = _Answer(job, attempt, plan, sequence)
        if attempt > 1 and not plan.error:
            # The results service may be down for long; other jobs' messages must not wait for it.
            self._retries.put_nowait(answer)
        else:
            await self._start(answer, None)

    async def run(self) -> None:
        """Starts retries, also those whose plan came before this was called. Raises LeadershipLostError."""
        async with asyncio.TaskGroup() as group:
            while True:
                heed_cancel()
                group.create_task(self._retry(await self._retries.get()))

    async def _retry(self, answer: _Answer) -> None:
        job = answer.job
        try:
            stored = await until_answered(
                job,
                lambda: job.state == PLANNING and job.message.attempt == answer.attempt,
                lambda: self._results.stored(job.id, answer.sequence),
            )
        except TouchstoneError as error:
            await refused(self._registry, job, error)
            return
        if stored is None:
            return
        try:
            await self._start(answer, stored)
        except Exception as error:
            if not is_at_fault(error):
                raise
            log.exception("job %s: its plan cannot be used", job.id, extra=of_job(job.id))

    async def _start(self, answer: _Answer, stored: Mapping[str, set[int]] | None) -> None:
        job, plan = answer.job, answer.plan
        async with self._registry.lock:
            if job.state != PLANNING or job.message.attempt != answer.attempt:
                return
            if plan.error or not plan.tasks:
                await self._registry.fail(
                    job, plan.error or "No items were found. Choose other tasks or a higher limit."
                )
                return
            before = job_pb2.Job()
            before.CopyFrom(job.message)
            try:
                self._apply(answer, stored)
            except Exception as error:
                if not is_at_fault(error):
                    raise
                job.message.CopyFrom(before)
                job.ledger = None
                if isinstance(error, TouchstoneError):
                    await self._registry.fail(job, error.message)
                    return
                await self._registry.fail(job, _UNUSABLE.format(type(error).__name__), str(error))
                raise
            await self._registry.commit(job, "scheduler", "running")

    def _apply(self, answer: _Answer, stored: Mapping[str, set[int]] | None) -> None:
        """Changes the job in memory; also tries once what every read and every write of it will do."""
        job, tasks = answer.job, answer.plan.tasks
        budget.check_plan(job.message.spec, tasks)
        missing = None
        if stored is not None:
            missing = layout_of(tasks, job.message.spec).missing([stored.get(task.task, set()) for task in tasks])
        job.start(answer.plan, missing, answer.sequence, self._registry.now())
        self._compare_with_published(job)
        self._registry.view(job)
        if (size := job.record().ByteSize()) > _MOST_RECORD:
            raise ConflictError(
                f"{refusals.too_large('The plan', size, _MOST_RECORD, 'bytes')} Choose fewer tasks at once."
            )

    def _compare_with_published(self, job: Job) -> None:
        """Fewer items than the published suite make the run a subset."""
        suites = self._registry.fleet.suites(self._registry.now())
        suite = next((s for s in suites if s.suite == job.message.spec.suite.suite), None)
        published = {task.task: task.published_items for task in suite.tasks} if suite else {}
        published |= {task.task: task.published_items or task.items for task in job.message.plan}
        job.message.published_items = sum(published.values())
        limit = job.message.spec.suite.limit
        # The size of an open suite's task may be unknown; if there are as many items as the limit allows, they count as
        # a part.
        cut = any(not task.published_items and 0 < limit <= task.items for task in job.message.plan)
        job.message.subset = cut or sum(task.items for task in job.message.plan) < job.message.published_items


async def refused(registry: JobRegistry, job: Job, error: TouchstoneError) -> None:
    """The results service refuses permanently; waiting would never end."""
    async with registry.lock:
        if job.live:
            await registry.fail(job, f"The results service cannot take the job: {error.message}")
