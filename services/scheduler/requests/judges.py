"""Starts the judges of completed jobs: those of an experiment's jobs once none of its jobs waits or runs.

Each judge's job is created by a request whose id names the judged attempt, so that it is created once, whatever
crashes: a finished job is looked at again until its judges have started. If the job runs again first, a judge that
still waits is cancelled: the new attempt is judged as a whole.
"""

from __future__ import annotations

import asyncio
import logging

from services.bus import heed_cancel, of_job
from services.errors import BusyError, DeadlineError, LimitReachedError, TouchstoneError, UnavailableError
from services.rpc import Identity
from services.scheduler.admission import judging_rules
from services.scheduler.jobs.job import Job
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import LeadershipLostError
from services.scheduler.requests.job_requests import Desk
from touchstone.v1 import job_pb2, token_pb2

log = logging.getLogger(__name__)

_LOOK_S, _RETRY_S = 0.5, 5.0
_PASSING = (BusyError, DeadlineError, LimitReachedError, UnavailableError)


class Judges:
    """The judges of one registry's jobs."""

    def __init__(self, registry: JobRegistry, desk: Desk) -> None:
        self._registry, self._desk = registry, desk
        self._settled: set[tuple[str, int, int]] = set()
        """Job, attempt and place of judges that have started, or cannot."""
        self._told: set[tuple[str, int, int]] = set()
        self._moved = asyncio.Event()
        registry.tell_of_moves(self._moved.set)

    async def run(self) -> None:
        """Runs until cancelled. Raises LeadershipLostError."""
        while True:
            heed_cancel()
            self._moved.clear()
            await self._drop_replaced()
            waits = False
            answering = self._registry.answering()
            for job in list(self._registry.jobs.values()):
                spec = job.message.spec
                ended = job.state == job_pb2.Job.STATE_COMPLETED and spec.experiment_name not in answering
                if spec.judges and ended:
                    waits |= not await self._start_all(job)
            await asyncio.sleep(_RETRY_S if waits else _LOOK_S)
            if not waits:
                # A cancellation that a call has lost would never be heeded from here on.
                heed_cancel()
                await self._moved.wait()

    async def _drop_replaced(self) -> None:
        """Cancels judges that wait while the answers that they were to judge are replaced: the next attempt is judged
        as a whole. A judge that was replaced before a crash is found again here, and never starts in between."""
        registry = self._registry
        if not registry.replaced_judges():
            return
        async with registry.lock:
            for judge in registry.replaced_judges():
                judged = judge.message.spec.judging.job_id
                why = f"Job {judged} runs again. Its answers get a new judge once it has completed."
                judge.cancel("scheduler", registry.now(), why)
                await registry.finish(judge, "scheduler", "cancelled")

    async def _start_all(self, job: Job) -> bool:
        """Whether all have started, or cannot."""
        done = True
        for place, judge in enumerate(job.message.spec.judges):
            key = (job.id, job.message.attempt, place)
            if not _is_whole(job, job.message.attempt):
                # It has begun again meanwhile.
                return True
            if place >= job.earlier_judges and key not in self._settled:
                done &= await self._start(job, judge, key)
        return done

    async def _start(self, job: Job, judge: job_pb2.Judge, key: tuple[str, int, int]) -> bool:
        owner = Identity(job.message.owner, token_pb2.ROLE_USER)
        request_id = judging_rules.request_id(*key)
        named = f"judge {judge.model} of {judge.endpoint}"
        try:
            made = await self._desk.create_judge(owner, request_id, judging_rules.as_job(judge, job.message))
        except LeadershipLostError:
            raise
        except TouchstoneError as error:
            if not _is_whole(job, key[1]):
                return True
            # A plain error is one that the results service did not expect.
            if not isinstance(error, _PASSING) and type(error) is not TouchstoneError:
                log.warning("job %s: %s cannot start: %s", job.id, named, error.message, extra=of_job(job.id))
                self._settled.add(key)
                return True
            if key not in self._told:
                self._told.add(key)
                log.warning("job %s: %s waits: %s", job.id, named, error.message, extra=of_job(job.id))
            return False
        log.info("job %s: %s judges in job %s", job.id, named, made.job_id, extra=of_job(job.id))
        self._settled.add(key)
        return True


def _is_whole(job: Job, attempt: int) -> bool:
    """Whether the answers are those of this attempt, and complete."""
    return job.state == job_pb2.Job.STATE_COMPLETED and job.message.attempt == attempt
