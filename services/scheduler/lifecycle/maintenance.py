"""Effects of time on jobs: limits, checkpoints, forgotten units, old jobs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from services.bus import PLAN_UNIT, Level, heed_cancel, of_job
from services.errors import DeadlineError, TouchstoneError, UnavailableError
from services.scheduler.jobs.fleet import route
from services.scheduler.jobs.job import PLANNING, RUNNING, Job, seconds
from services.scheduler.jobs.reuse import too_few_stored
from services.scheduler.lifecycle.deciding import others
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.losses import stop_without_dataset, tell_losses
from services.scheduler.ports import Change, Results
from services.words import plugins
from services.words.jobs import calls_nobody, is_recorded
from services.words.refusals import OVER_LIMIT, counted

log = logging.getLogger(__name__)

_TICK_S, _REST_TICK_S = 0.5, 2.0
"""While a job is live, and while none is."""
_CHECKPOINT_S = 5.0
_LOST_AFTER_S = 15.0
_MOST_LOST = 10
"""How often a unit is released again. Each time needs a loss in NATS or a process that ends between two steps."""
_LOST_TOO_OFTEN = (
    "{} was lost from the queue {} times without an answer. See the logs of the evaluators and of NATS. Answers so "
    "far are kept; a retry runs the rest."
)


class Upkeep:
    """Keeps time for one registry. `position` is the last RESULTS position that was handled."""

    def __init__(self, registry: JobRegistry, results: Results) -> None:
        self._registry, self._results = registry, results
        self.position = 0
        self._floor = 0
        self._checked = 0.0
        self._heard: dict[str, float] = {}
        self._moved = asyncio.Event()
        registry.tell_of_moves(self._moved.set)
        self._lacking: dict[str, float] = {}
        """Since when evaluators lack what these jobs need."""

    def heard_of(self, job: Job) -> None:
        """Notes that some unit of the job has reported."""
        self._heard[job.id] = self._registry.now()

    async def run(self) -> None:
        before = self._registry.now()
        while True:
            heed_cancel()
            self._moved.clear()
            now = self._registry.now()
            paused_s, before = now - before if self._registry.room.level is Level.FULL else 0.0, now
            for job in list(self._registry.jobs.values()):
                if job.live:
                    job.pause(paused_s)
                    await self._look_at(job, now)
                    self._registry.touch(job)
            # For ageing, and evaluators that came or went silently.
            self._registry.wake.set()
            tell_losses(self._registry)
            if now - self._checked >= _CHECKPOINT_S:
                self._checked = now
                await self._checkpoint(now)
                await self._find_lost(now)
                await stop_without_dataset(self._registry)
            await asyncio.sleep(_TICK_S)
            if not any(job.live for job in self._registry.jobs.values()):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_REST_TICK_S - _TICK_S):
                        await self._moved.wait()

    async def _fail_without_plugin(self, job: Job, now: float) -> None:
        """Ends a started job that no evaluator has had the plug-in for, as long as data may take to be read."""
        lacking = self._registry.fleet.lacking(job.message, now) if job.state in (PLANNING, RUNNING) else ""
        if not lacking:
            self._lacking.pop(job.id, None)
        elif now - self._lacking.setdefault(job.id, now) > (limit := self._registry.limits.planning_s):
            async with self._registry.lock:
                if job.state in (PLANNING, RUNNING):
                    reason = plugins.waited_in_vain(lacking, job.message.spec.endpoint, _span(limit))
                    await self._registry.fail(job, reason)

    async def _look_at(self, job: Job, now: float) -> None:
        await self._fail_without_plugin(job, now)
        if not job.live:
            return
        limit = self._registry.limits.planning_s
        if job.awaits_plan and now - job.planning_since > limit:
            async with self._registry.lock:
                if job.awaits_plan:
                    reason = f"The data was not read within {_span(limit)}. Check the evaluator's log, then retry."
                    await self._registry.fail(job, reason)
            return
        if job.state != RUNNING or job.ledger is None:
            return
        job.ledger.at_once = self._registry.fleet.capacity(route(job.message.spec), now).calls
        job.ledger.sample(now)
        failed, done, total = job.ledger.items_failed, job.ledger.items_done, job.ledger.layout.items
        share = self._registry.limits.error_share
        if job.over_time(now):
            reason = (
                f"{OVER_LIMIT} Stopped after {_span(job.message.progress.time_limit_s)} with {done:,} of {total:,} "
                "items done. A retry runs the rest."
            )
        # Rows under way in a provider's batches are paid: the end decides whether enough were answered.
        # Calls of a recorded run are what they are, and none is made again.
        elif failed > share * total and not job.message.spec.provider_batch and not is_recorded(job.message.spec):
            reason = (
                f"{failed:,} of {counted(done, 'item')} failed, which is more than {share:.0%} of the job. "
                "Answers so far are kept; a retry runs the rest."
            )
            if calls_nobody(job.message.spec):
                reason = too_few_stored(job.message.spec, failed, total, share)
        else:
            return
        async with self._registry.lock:
            if job.state == RUNNING:
                await self._registry.fail(job, reason)

    async def _checkpoint(self, now: float) -> None:
        registry = self._registry
        async with registry.lock:
            position = self.position
            running = [job for job in registry.in_state(RUNNING) if job.ledger is not None]
            planning = registry.in_state(PLANNING)
            # Before the save, during which results may come in: the floor must not pass what is stored.
            needed = [job.record().results_sequence for job in running + planning]
            for job in running:
                job.update(now)
            if running:
                await registry.save([Change(job) for job in running])
            floor = min([*needed, position])
            if floor != self._floor:
                await registry.store.set_floor(floor)
                self._floor = floor
            # Judges last: a scheduler that starts in between would start them again for the answers that they judged.
            for job in sorted(registry.jobs.values(), key=lambda job: job.message.spec.HasField("judging")):
                if job.live or now - registry.ended_at(job) <= registry.limits.keep_finished_s:
                    continue
                # Of a race, the results service must know how all have ended.
                if not any(other.live for other in others(registry, job)):
                    await registry.store.forget(job)
                    del registry.jobs[job.id]
            for job in list(registry.deleted.values()):
                if job.message.spec.judging.job_id in registry.jobs:
                    continue
                if now - seconds(job.message.deleted_at) > registry.limits.keep_finished_s:
                    await registry.store.forget(job)
                    del registry.deleted[job.id]

    async def _find_lost(self, now: float) -> None:
        """Releases units again that left WORK without being done, for instance dropped by an evaluator with stale
        information."""
        quiet = [
            job
            for job in self._registry.in_state(PLANNING, RUNNING)
            if now - self._heard.setdefault(job.id, now) > _LOST_AFTER_S
        ]
        if not quiet:
            return
        # In this order: a unit leaves WORK only after its last result is in RESULTS.
        offered = await self._registry.work.released()
        if self.position < await self._registry.work.results_position():
            return
        for job in quiet:
            self._heard[job.id] = now
            if job.awaits_plan and (job.id, PLAN_UNIT) not in offered:
                await self._plan_again(job)
            if job.ledger is not None and any((job.id, unit) not in offered for unit in job.ledger.released):
                await self._take_back(job, offered)
        self._registry.wake.set()

    async def _plan_again(self, job: Job) -> None:
        if job.plan_released == job.message.attempt:
            job.plans_lost += 1
        job.plan_released = 0
        if job.plans_lost > _MOST_LOST:
            async with self._registry.lock:
                if job.awaits_plan:
                    await self._registry.fail(
                        job, _LOST_TOO_OFTEN.format("The unit that reads the data", _MOST_LOST + 1)
                    )

    async def _take_back(self, job: Job, offered: set[tuple[str, int]]) -> None:
        """Units whose possible cost no message tells a successor are stored before they go out again."""
        stored = await self._stored(job)
        if stored is None:
            return
        async with self._registry.lock:
            if job.state != RUNNING or job.ledger is None:
                return
            lost = [unit for unit in sorted(job.ledger.released) if (job.id, unit) not in offered]
            times = {unit: job.ledger.taken_back(unit) for unit in lost}
            await self._registry.close_units(job, lost)
            lost = [unit for unit in lost if not job.ledger.is_done(unit)]
            untold = [unit for unit in lost if job.ledger.taken_back(unit) == times[unit]]
            for unit in untold:
                job.ledger.charge(unit)
            again = []
            for unit in lost:
                if job.ledger.close_if_stored(unit, stored):
                    log.warning(
                        "job %s: unit %d was lost, all its answers are stored", job.id, unit, extra=of_job(job.id)
                    )
                    continue
                log.warning("job %s: unit %d was lost, releasing it again", job.id, unit, extra=of_job(job.id))
                again.append(unit)
            if over := [unit for unit in again if job.ledger.taken_back(unit) > _MOST_LOST]:
                await self._registry.fail(job, _LOST_TOO_OFTEN.format(f"Unit {over[0]:,}", _MOST_LOST + 1))
                return
            await self._registry.save([Change(job)])
            for unit in untold:
                job.ledger.free(unit)

    async def _stored(self, job: Job) -> dict[str, set[int]] | None:
        """Positions with an answer by task, from the results service: the stream may have lost what was stored from it.
        None while the service does not answer; then it is asked again later."""
        try:
            return await self._results.stored(job.id, self.position)
        except (UnavailableError, DeadlineError) as error:
            log.info("job %s: lost units wait for the results service: %s", job.id, error.message)
            return None
        except TouchstoneError as error:
            log.warning("job %s: the results service cannot say what is stored: %s", job.id, error.message)
            return {}


def _span(total_s: float) -> str:
    hours, rest = divmod(int(total_s), 3600)
    minutes, secs = divmod(rest, 60)
    parts = [(hours, "hour"), (minutes, "minute"), (secs, "second")]
    return " ".join(f"{n} {word}{'s' if n != 1 else ''}" for n, word in parts if n) or "0 seconds"
