"""The last step of a job: the results service checks its items and computes its metrics, then the job is completed.

Few seals are under way at once, in the order in which the jobs came to their end. So a seal is requested when the
results service has answered an earlier one, and none waits there longer than its caller.
"""

from __future__ import annotations

import asyncio
import logging

from services.bus import heed_cancel, is_at_fault
from services.errors import TouchstoneError
from services.scheduler.jobs.job import FINALIZING, Job
from services.scheduler.jobs.reuse import too_few_stored
from services.scheduler.jobs.units import Layout
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.start_jobs import refused
from services.scheduler.ports import Results
from services.scheduler.results_client import until_answered
from services.words.jobs import calls_nobody

log = logging.getLogger(__name__)

_AT_ONCE = 4


class Sealing:
    """Completes the jobs of one registry."""

    def __init__(self, registry: JobRegistry, results: Results) -> None:
        self._registry, self._results = registry, results
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()
        self._taken: set[str] = set()

    def take(self, job: Job) -> None:
        """Seals a job that is in its last step. Calling it again changes nothing."""
        if job.id not in self._taken:
            self._taken.add(job.id)
            self._waiting.put_nowait(job)

    async def run(self) -> None:
        """Until cancelled. Raises LeadershipLostError."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._seal_one_after_the_other())

    async def _seal_one_after_the_other(self) -> None:
        while True:
            heed_cancel()
            job = await self._waiting.get()
            await self._seal(job)
            self._taken.discard(job.id)

    async def _seal(self, job: Job) -> None:
        try:
            sealed = await until_answered(
                job,
                lambda: job.state == FINALIZING,
                lambda: self._results.seal(self._registry.view(job), job.finalizing_sequence),
            )
            if sealed is None:
                return
            async with self._registry.lock:
                if job.state == FINALIZING:
                    await self._complete(job, sealed.missing + sealed.infrastructure_errors)
        except TouchstoneError as error:
            if not is_at_fault(error):
                raise
            await refused(self._registry, job, error)

    async def _complete(self, job: Job, unanswered: int) -> None:
        planned = Layout(job.message.plan).items
        share = self._registry.limits.error_share
        if unanswered > share * planned:
            reason = (
                f"{unanswered:,} of {planned:,} items have no answer after all retries, which is more than "
                f"{share:.0%}. The others are kept; a retry runs the missing ones."
            )
            if calls_nobody(job.message.spec):
                reason = too_few_stored(job.message.spec, unanswered, planned, share)
            await self._registry.fail(job, reason)
            return
        job.complete(incomplete=unanswered > 0, now=self._registry.now())
        await self._registry.finish(job, "scheduler", "completed")
