"""The end of a job: the results service checks its items and computes its metrics, then the job is completed. Counts of
jobs that were cancelled or failed follow: answers that were under way are stored all the same.

Few seals are under way at once, in the order in which the jobs came to their end. So a seal is requested when the
results service has answered an earlier one, and none waits there longer than its caller. The counts are those of the
results service, in every interface.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from services.bus import heed_cancel, is_at_fault
from services.errors import DeadlineError, NotFoundError, TouchstoneError, UnavailableError
from services.scheduler.jobs.job import CANCELLED, FAILED, FINALIZING, Job
from services.scheduler.jobs.reuse import too_few_stored
from services.scheduler.jobs.units import Layout
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.start_jobs import refused
from services.scheduler.ports import Change, Results
from services.scheduler.results_client import until_answered
from services.words.jobs import calls_nobody, is_recorded
from touchstone.v1 import job_pb2

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
        if unanswered > share * planned and not is_recorded(job.message.spec):
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


_LOOK_S = 0.25
_PAUSE_S = 2.0
_MOST_TRIES = 5
"""How often the results service is asked about a job before the job keeps the scheduler's counts."""


class Settling:
    """Asks the results service about every job that ended early: after its end, after each late answer, and after a
    restart.

    `position` is the last RESULTS position that was handled.
    """

    def __init__(self, registry: JobRegistry, results: Results, position: Callable[[], int]) -> None:
        self._registry, self._results, self._position = registry, results, position
        self._late: dict[str, int] = {}
        """By job, the position of the last answer that came after its end."""
        self._settled: dict[str, tuple[int, int]] = {}
        """By job, the attempt and the late answer up to which its counts are right."""
        self._failures: Counter[str] = Counter()
        """By job, how often the results service has failed since its last answer."""
        self._news = asyncio.Event()
        registry.tell_of_moves(self._news.set)

    def late(self, job: Job, sequence: int) -> None:
        """Notes an answer of the job; it matters only if the job has ended early."""
        if job.state in (FAILED, CANCELLED):
            self._late[job.id] = sequence
            self._news.set()

    async def run(self) -> None:
        while True:
            heed_cancel()
            self._news.clear()
            again = False
            for job in self._registry.in_state(FAILED, CANCELLED):
                known = job.message.attempt, self._late.get(job.id, 0)
                if job.message.plan and self._settled.get(job.id) != known:
                    if await self._settle(job):
                        self._settled[job.id] = known
                    else:
                        again = True
            for job_id in self._settled.keys() - self._registry.jobs.keys():
                del self._settled[job_id]
                del self._failures[job_id]
                self._late.pop(job_id, None)
            await asyncio.sleep(_PAUSE_S if again else _LOOK_S)
            if not again:
                # A cancellation that a call has lost would never be heeded from here on.
                heed_cancel()
                await self._news.wait()

    async def _settle(self, job: Job) -> bool:
        """False when the results service does not know yet."""
        attempt = job.message.attempt
        try:
            # So that the next reply has every answer up to here.
            await self._results.stored(job.id, self._position())
            stored = await self._results.job(job.id)
        except (UnavailableError, DeadlineError, NotFoundError) as error:
            log.debug("job %s: what is stored is not known yet: %s", job.id, error.message)
            return False
        except TouchstoneError as error:
            log.warning("job %s: the results service cannot say what is stored: %s", job.id, error.message)
            self._failures[job.id] += 1
            return self._failures[job.id] % _MOST_TRIES == 0
        del self._failures[job.id]
        async with self._registry.lock:
            if job.state not in (FAILED, CANCELLED) or job.message.attempt != attempt:
                return True
            if (stored.attempt, stored.state) != (attempt, job.state):
                return False
            if _take_over(job.message.progress, stored.progress):
                await self._registry.save([Change(job)])
                self._registry.touch(job)
        return True


def _take_over(progress: job_pb2.Progress, stored: job_pb2.Progress) -> bool:
    """True when that changes a count."""
    before = job_pb2.Progress()
    before.CopyFrom(progress)
    progress.items_done, progress.items_failed = stored.items_done, stored.items_failed
    tasks = {task.task: task for task in stored.tasks}
    for task in progress.tasks:
        if (known := tasks.get(task.task)) is not None:
            task.items_done, task.items_failed = known.items_done, known.items_failed
    return progress != before
