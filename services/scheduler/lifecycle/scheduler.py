"""The core of the scheduler: events come in, jobs move, units go out. Independent of NATS and gRPC."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable

from services.bus import PLAN_ENDPOINT, PLAN_UNIT, BatchRecord, Level, ResultHeaders, heed_cancel, of_job
from services.scheduler.jobs import budget, queue
from services.scheduler.jobs.fleet import Capacity, route
from services.scheduler.jobs.job import FINALIZING, HOLDS_SLOT, PENDING, PLANNING, RUNNING, Job, seconds
from services.scheduler.jobs.progress_text import budget_used_up
from services.scheduler.lifecycle.deciding import Deciding, holders, joins, others
from services.scheduler.lifecycle.end_jobs import Sealing, Settling
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.lifecycle.maintenance import Upkeep
from services.scheduler.lifecycle.start_jobs import Starting
from services.scheduler.ports import Results
from services.words.jobs import LIVE
from touchstone.v1 import job_pb2, unit_pb2

log = logging.getLogger(__name__)

_ON_THE_WAY_S = 0.5
"""Seconds from an item's release until its result is counted here, without the wait for a slot and the call itself."""
_MOST_AHEAD = 6
"""Factor on the concurrent calls."""
_MOST_STARTED = 2
"""Jobs of a user and a priority that hold a slot at an exclusive endpoint: one runs, and the next is planned."""
_MOST_SCORING = 20
"""The number of jobs in their last step at which no other is started: the results service cannot keep up."""


class Scheduler:
    """Runs the jobs of one registry."""

    def __init__(self, registry: JobRegistry, results: Results) -> None:
        self._registry, self._results = registry, results
        self._upkeep = Upkeep(registry, results)
        self._settling = Settling(registry, results, lambda: self._upkeep.position)
        self._starting = Starting(registry, results)
        self._sealing = Sealing(registry, results)
        self._deciding = Deciding(registry, results, lambda: self._upkeep.position)
        self._at: dict[str, str] = {}
        """The job that each exclusive endpoint is at."""
        self._turns: dict[tuple[str, str], float] = {}
        """When each exclusive endpoint last turned to a job of an owner."""

    def restore(self, jobs: Iterable[Job], released: set[tuple[str, int]], position: int) -> int:
        """Takes over stored jobs; returns the RESULTS position after which every message must be shown.

        `released` is WORK's content, read before `position`, RESULTS' end: a unit that is neither on WORK then nor
        done up to there was never released.
        """
        for job in jobs:
            (self._registry.deleted if job.deleted else self._registry.jobs)[job.id] = job
            job.planning_since = self._registry.now()
            job.resume(self._registry.now())
            if job.ledger is not None:
                units = {u for j, u in released if j == job.id and job.ledger.has(u)}
                job.ledger.released |= {u for u in units if not job.ledger.is_done(u)}
        live = [job for job in self._registry.jobs.values() if job.live]
        needed = [job.ledger.sequence for job in live if job.ledger is not None]
        # The answer to a planning unit may have come while nobody led.
        needed += [job.planning_sequence for job in live if job.state == PLANNING]
        self._upkeep.position = min([*needed, position])
        return self._upkeep.position

    # -- events ------------------------------------------------------------------------------------------------

    def on_items(self, job_id: str, unit: int, headers: ResultHeaders, sequence: int) -> None:
        """Counts a flush of item results."""
        self._upkeep.position = sequence
        job = self._registry.jobs.get(job_id)
        if job is not None:
            self._settling.late(job, sequence)
        if job is None or job.state != RUNNING or job.ledger is None or headers.attempt != job.message.attempt:
            return
        self._upkeep.heard_of(job)
        finished = job.ledger.record(unit, headers, sequence)
        if finished:
            self._deciding.heard(job)
        if finished or job.message.spec.budget_usd:
            # What these answers did not cost, other calls may.
            self._registry.wake.set()
        if finished and (done := job.ledger.task_done(unit)):
            log.info("job %s: %s", job.id, done, extra=of_job(job.id))
        self._registry.touch(job)

    def on_begun(self, job_id: str, unit: int, headers: ResultHeaders, sequence: int) -> None:
        """Notes that calls of a unit of a job with a budget are about to begin."""
        self._upkeep.position = sequence
        job = self._running(job_id, headers.attempt)
        if job is not None and job.ledger is not None:
            self._upkeep.heard_of(job)
            job.ledger.begun(unit, headers, sequence)

    def on_returned(self, job_id: str, unit: int, headers: ResultHeaders, sequence: int) -> None:
        """An evaluator leaves the decision to run a unit of a job with a budget again to the scheduler."""
        self._upkeep.position = sequence
        job = self._running(job_id, headers.attempt)
        if job is None or job.ledger is None or not job.ledger.returned(unit, headers, sequence):
            return
        # The evaluator's line is in the job's log.
        log.info("job %s: unit %d came back", job.id, unit)
        self._registry.wake.set()

    def on_batch(self, record: BatchRecord) -> None:
        """Notes what an evaluator reports about a provider's batch."""
        job = self._registry.jobs.get(record.job_id)
        if job is None or not job.live or job.message.attempt != record.attempt or job.ledger is None:
            return
        if job.ledger.has(record.unit):
            job.batches[record.unit] = record
            self._registry.touch(job)

    def on_other(self, sequence: int) -> None:
        """A message that concerns no job here."""
        self._upkeep.position = sequence

    def _running(self, job_id: str, attempt: int) -> Job | None:
        job = self._registry.jobs.get(job_id)
        return job if job is not None and job.state == RUNNING and job.message.attempt == attempt else None

    def awaits(self, job_id: str, attempt: int) -> bool:
        """Whether a plan or a fault of this attempt can still change the job."""
        job = self._registry.jobs.get(job_id)
        return job is not None and job.state in HOLDS_SLOT and job.message.attempt == attempt

    async def on_plan(self, job_id: str, attempt: int, plan: unit_pb2.Plan, sequence: int) -> None:
        self._upkeep.position = sequence
        await self._starting.take(self._registry.find(job_id), attempt, plan, sequence)

    async def on_fault(self, job_id: str, attempt: int, fault: unit_pb2.Fault, sequence: int) -> None:
        self._upkeep.position = sequence
        async with self._registry.lock:
            if self.awaits(job_id, attempt):
                await self._registry.fail(self._registry.find(job_id), fault.reason, fault.detail)

    # -- the pump ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Admits, releases, finalizes and keeps time until cancelled or leadership is lost."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump())
                group.create_task(self._upkeep.run())
                group.create_task(self._settling.run())
                group.create_task(self._starting.run())
                group.create_task(self._sealing.run())
                group.create_task(self._deciding.run())
                # If its group ends, this wait must not cancel others' requests.
                raise await asyncio.shield(self._registry.lost)
        finally:
            self._registry.close()

    async def _pump(self) -> None:
        while True:
            heed_cancel()
            await self._registry.wake.wait()
            self._registry.wake.clear()
            await self._admit()
            if self._registry.room.level is not Level.FULL:
                await self._release()
            await self._stop_spenders()
            await self._finalize()

    async def _admit(self) -> None:
        registry = self._registry
        async with registry.lock:
            holding = Counter(job.message.spec.provider_batch for job in holders(registry))
            free = {
                False: registry.limits.running_jobs - holding[False],
                True: registry.limits.batch_jobs - holding[True],
            }
            # Jobs that end faster than they can be sealed would wait in their last step instead of in the queue.
            if len(registry.in_state(FINALIZING)) >= _MOST_SCORING:
                free = {}
            apart = registry.kept_apart() | {job.id for job in registry.replaced_judges()}
            for waiting in registry.waiting() if registry.room.level is Level.ENOUGH else ():
                job = registry.jobs[waiting.job_id]
                batched = job.message.spec.provider_batch
                joining = bool(free) and joins(registry, job)
                if free.get(batched, 0) <= 0 and not joining:
                    continue
                capacity = registry.fleet.capacity(route(job.message.spec), registry.now())
                # A job whose endpoint is not served would hold a slot in vain, and so would a user's third job of a
                # priority at an endpoint that takes one at a time.
                served = capacity.evaluators > 0 and not registry.fleet.lacking(job.message, registry.now())
                held_up = capacity.exclusive and not joining and self._has_next(job)
                if not served or job.id in apart or held_up or not self._are_others_served(job):
                    continue
                job.admit(self._upkeep.position, registry.now())
                await registry.commit(job, "scheduler", "planning")
                free[batched] -= not joining
        for job in registry.in_state(PLANNING):
            if job.plan_released != job.message.attempt:
                spec = job.message.spec
                unit = unit_pb2.Unit(
                    job_id=job.id, attempt=job.message.attempt, unit=PLAN_UNIT, spec=spec, owner=job.message.owner
                )
                if job.message.HasField("started_at") and job.message.receipt.HasField("prices"):
                    unit.prices.CopyFrom(job.message.receipt.prices)
                _shorten(unit.spec)
                await registry.work.release(PLAN_ENDPOINT, spec.priority, unit)
                job.plan_released = job.message.attempt

    def _are_others_served(self, job: Job) -> bool:
        """A decision starts only where all of its jobs can run."""
        now = self._registry.now()
        waiting = [other for other in others(self._registry, job) if other.state == PENDING]
        return all(self._registry.fleet.capacity(route(other.message.spec), now).evaluators > 0 for other in waiting)

    def _has_next(self, job: Job) -> bool:
        """Whether the owner has a job at the endpoint, and one to follow it, that are at least as urgent."""
        endpoint, spec, owner = route(job.message.spec), job.message.spec, job.message.owner
        started = [
            other
            for other in self._registry.in_state(*HOLDS_SLOT)
            if other.message.owner == owner
            and other.message.spec.priority >= spec.priority
            and route(other.message.spec) == endpoint
        ]
        return len(started) >= _MOST_STARTED

    async def _release(self) -> None:
        self._forget_turns()
        by_endpoint: dict[str, list[Job]] = {}
        for job in self._registry.in_state(RUNNING):
            if job.closing or self._registry.fleet.lacking(job.message, self._registry.now()):
                continue
            by_endpoint.setdefault(route(job.message.spec), []).append(job)
        for endpoint, jobs in by_endpoint.items():
            now = self._registry.now()
            capacity = self._registry.fleet.capacity(endpoint, now)
            pace = sum(job.ledger.pace(now) for job in jobs if job.ledger is not None)
            ahead = int(min(pace * _ON_THE_WAY_S, _MOST_AHEAD * capacity.calls))
            active = []
            for job in jobs:
                # It may have ended while units of another endpoint went out.
                if job.state != RUNNING or job.ledger is None:
                    continue
                last = self._deciding.last_unit(job, capacity, jobs)
                one = _active(job, capacity, ahead, now, last)
                # One that waits for others of its decision must not keep an exclusive endpoint from them.
                if last is None or one.next_units or one.in_flight_units:
                    active.append(one)
            for one in active:
                one.served = self._at.get(endpoint) == one.job_id
                one.owner_served_at = self._turns.get((endpoint, one.owner), 0.0)
            chosen = queue.choose(
                active,
                capacity=capacity.calls,
                evaluators=capacity.evaluators,
                exclusive=capacity.exclusive,
                patience_s=self._registry.limits.ageing_s,
                ahead=ahead,
            )
            if capacity.exclusive and chosen and self._at.get(endpoint) != chosen[0][0]:
                self._at[endpoint] = chosen[0][0]
                self._turns[endpoint, self._registry.jobs[chosen[0][0]].message.owner] = now
            await asyncio.gather(*(self._release_unit(self._registry.jobs[job_id], unit) for job_id, unit in chosen))

    def _forget_turns(self) -> None:
        """Forgets endpoints' jobs that have ended, and turns that no longer matter: those of owners without a job at
        the endpoint, once all owners with one there have had a later turn."""
        running = {job.id for job in self._registry.in_state(RUNNING)}
        self._at = {endpoint: job_id for endpoint, job_id in self._at.items() if job_id in running}
        live = {(route(job.message.spec), job.message.owner) for job in self._registry.in_state(*LIVE)}
        earliest: dict[str, float] = {}
        for key in live:
            earliest[key[0]] = min(earliest.get(key[0], math.inf), self._turns.get(key, 0.0))
        self._turns = {
            key: at for key, at in self._turns.items() if key in live or at >= earliest.get(key[0], math.inf)
        }

    async def _release_unit(self, job: Job, unit: int) -> None:
        ledger = job.ledger
        if ledger is None or job.closing or job.state != RUNNING:
            return
        place = ledger.layout.slice(unit)
        task = job.message.plan[place.task]
        message = unit_pb2.Unit(
            job_id=job.id,
            attempt=job.message.attempt,
            unit=unit,
            spec=job.message.spec,
            task=task.task,
            start=place.start,
            stop=place.stop,
            positions=ledger.positions(unit),
            item_set=task.item_set,
            model_digest=job.message.receipt.model_digest,
            owner=job.message.owner,
            begun=ledger.taken_back(unit) > 0 or ledger.counted(unit) > 0,
            counted_until=ledger.sequence if job.message.spec.budget_usd else 0,
            earlier_deliveries=ledger.deliveries(unit),
            plugin=task.plugin,
        )
        if job.message.receipt.HasField("prices"):
            message.prices.CopyFrom(job.message.receipt.prices)
        _shorten(message.spec)
        ledger.released.add(unit)
        self._registry.fleet.sent(route(job.message.spec), job.message.spec.model)
        await self._registry.work.release(route(job.message.spec), job.message.spec.priority, message)

    async def _stop_spenders(self) -> None:
        """Ends jobs whose budget does not allow another unit, once none is out and all spending is known."""
        for job in self._registry.in_state(RUNNING):
            if (reason := budget_used_up(job)) is None:
                continue
            async with self._registry.lock:
                if job.state == RUNNING:
                    await self._registry.fail(job, reason)

    async def _finalize(self) -> None:
        for job in self._registry.in_state(RUNNING):
            if job.ledger is None or not job.ledger.all_done:
                continue
            async with self._registry.lock:
                if job.state == RUNNING:
                    job.finalize(job.ledger.sequence)
                    await self._registry.commit(job, "scheduler", "finalizing")
        for job in self._registry.in_state(FINALIZING):
            self._sealing.take(job)


def _shorten(spec: job_pb2.JobSpec) -> None:
    """Removes what evaluators do not need: it travels with every unit, and URLs may hold a secret."""
    spec.ClearField("webhook_url")
    spec.ClearField("labels")
    spec.ClearField("judges")
    if spec.HasField("deciding"):
        spec.deciding.ClearField("race_job_ids")


def _active(job: Job, capacity: Capacity, ahead: int, now: float, last: int | None = None) -> queue.Active:
    """`last` as of Deciding.last_unit."""
    ledger = job.ledger
    assert ledger is not None
    units = ledger.unreleased(2 * capacity.evaluators, 2 * capacity.calls + ahead, last)
    if limit := job.message.spec.budget_usd:
        units = budget.affordable(limit, ledger.spending(), units, [ledger.unit_cost(unit) for unit, _ in units])
    return queue.Active(
        job_id=job.id,
        owner=job.message.owner,
        priority=job.message.spec.priority,
        since=seconds(job.message.created_at),
        in_flight_units=len(ledger.released),
        in_flight_items=ledger.in_flight_items,
        next_units=units,
        warm=job.message.spec.model in capacity.resident,
        held_s=now - seconds(job.message.attempt_started_at),
        begun=ledger.items_done > ledger.kept_items,
    )
