"""Decisions while their jobs run: the jobs keep step, and stop once the results service knows enough of them. A
decision between two stops both; a race stops a job when another model is better, and the others when it ends.

Nothing of a decision is kept but its jobs, which name each other. So a scheduler that starts looks at all of them
again. What is said follows from the order of the items and the stored answers alone: when it is looked for, and how
often, does not change it.

A job that runs again, as after a verdict, is an ordinary job: it asks all that is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from services.bus import heed_cancel, of_job
from services.decision_order import UNIT
from services.errors import DeadlineError, NotFoundError, TouchstoneError, UnavailableError
from services.scheduler.jobs.fleet import Capacity
from services.scheduler.jobs.job import (
    CANCELLED,
    COMPLETED,
    FAILED,
    FINALIZING,
    HOLDS_SLOT,
    PENDING,
    PLANNING,
    RUNNING,
    Job,
)
from services.scheduler.jobs.ledger import Ledger
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.words.decisions import decision_id, job_ids, names, said, said_of_race
from touchstone.v1 import decision_pb2, job_pb2

log = logging.getLogger(__name__)

_PAUSE_S, _AGAIN_S = 0.05, 1.0
_UNSEEN = 1 / 16
"""The part of a job's done items that may be asked beyond what the last look has seen."""
_BUSY = 2
"""Times the calls at once that may be: an endpoint whose answers take longer than a look has no free slot meanwhile."""
_WAVES_APART = 2
"""Waves that one job may be ahead of another one: some answers take longer, and those after them need not wait."""
_ALL = 1 << 30
_MOST_APART = 128
"""Items that one job may be ahead of another at an endpoint that takes one model at a time: loading takes long."""
_ENDED = (FAILED, CANCELLED)


def others(registry: JobRegistry, job: Job) -> list[Job]:
    """The other jobs of a decision that is under way; none for other jobs."""
    if not job.message.spec.HasField("deciding") or job.message.attempt != 1:
        return []
    known = (registry.jobs.get(job_id) for job_id in job_ids(job.message) if job_id != job.id)
    return [other for other in known if other is not None and other.message.attempt == 1]


def holders(registry: JobRegistry) -> list[Job]:
    """The jobs that take a slot. All jobs of a decision share one: if each waited for its own, decisions could wait for
    each other."""
    return [job for job in registry.in_state(*HOLDS_SLOT) if not joins(registry, job)]


def joins(registry: JobRegistry, job: Job) -> bool:
    """Whether the job starts while another one of its decision has a slot, or both have and the other comes first."""
    holding = [other for other in others(registry, job) if other.state in HOLDS_SLOT]
    if not holding or job.state == PENDING:
        return bool(holding)
    place = job_ids(job.message).index
    return any(place(other.id) < place(job.id) for other in holding)


class Deciding:
    """Those of one registry. `position` is the last RESULTS position that was handled."""

    def __init__(self, registry: JobRegistry, results: Results, position: Callable[[], int]) -> None:
        self._registry, self._results, self._position = registry, results, position
        self._news = asyncio.Event()
        # Decisions of an earlier leadership may be made already.
        self._news.set()
        registry.tell_of_moves(self._news.set)
        self._unseen: set[str] = set()
        """Decisions with answers that no look has seen."""
        self._looking: set[str] = set()
        """Decisions that are looked at, or were a moment ago."""
        self._failed: set[str] = set()
        """Decisions whose last look failed."""
        self._begun = False
        self._first: dict[str, int] = {}
        """By job, how many of its units from the first one are done."""
        self._seen: dict[str, int] = {}
        """By job, how many items of done units the last look has seen."""
        self._ended: dict[str, int] = {}
        """By decision, how many of its jobs had failed or were cancelled at the last look."""

    def heard(self, job: Job) -> None:
        """Notes that a unit of the job is done."""
        if job.message.spec.HasField("deciding"):
            self._unseen.add(decision_id(job.message))
            self._news.set()

    def last_unit(self, job: Job, capacity: Capacity, beside: Sequence[Job]) -> int | None:
        """The number of the first unit that has to wait; None for jobs of no decision. Units up to there keep the
        endpoint busy, together with those of the jobs `beside` it there, and few are asked in vain when the decision is
        made: no job gets far ahead of another, nor of what the last look has seen. So little is asked while the results
        service is silent."""
        rest, ledger = others(self._registry, job), job.ledger
        if not rest or ledger is None:
            return None
        if any(other.state in (PENDING, PLANNING) for other in rest):
            # The first one to start would stay ahead.
            return 0
        first = self._all_done([job, *rest])
        if capacity.exclusive:
            # What waits for a look must not turn to another model.
            apart = max(_MOST_APART, 2 * _BUSY * capacity.calls)
            last = _after(ledger, first, max(apart, int(_UNSEEN * _done_items(job))), 2 * capacity.evaluators)
            return last if self._unseen_by(job) <= 2 * apart else first
        sharing = [one for one in beside if one is not job and _shares(one, job)]
        wave = _wave(job, 1 + len(sharing), capacity)
        apart = min(_WAVES_APART * wave, max(2 * _BUSY * capacity.calls, int(2 * _UNSEEN * _done_items(job))))
        last = _after(ledger, first, apart, 2 * capacity.evaluators)
        seen = self._all_seen([job, *rest])
        # Those that wait for this job leave it their part.
        waiting = [one for one in sharing if one in rest and self._seen.get(one.id, 0) - seen > wave - UNIT]
        ahead = max(0, _done_items(job) - seen)
        room = _wave(job, 1 + len(sharing) - len(waiting), capacity) - ledger.in_flight_items - ahead
        unit = first
        while unit < last and ledger.has(unit):
            if not ledger.is_done(unit) and unit not in ledger.released:
                room -= ledger.unit_items(unit)
                if room < 0:
                    break
            unit += 1
        return unit

    def _unseen_by(self, job: Job) -> int:
        """Items of done units that no look has seen. Those of other units count as neither: a look follows a unit."""
        return max(0, _done_items(job) - self._seen.get(job.id, 0))

    def _all_seen(self, jobs: Sequence[Job]) -> int:
        """Items of done units that a look has seen of each job that has not ended."""
        on = [job for job in jobs if job.state not in _ENDED and job.ledger is not None]
        return min((self._seen.get(job.id, 0) for job in on), default=0)

    def _all_done(self, jobs: Sequence[Job]) -> int:
        """Units from the first one that all jobs have done, but for those that have ended, if several have not."""
        on = [job for job in jobs if job.state not in _ENDED]
        return min(self._done(job) for job in (on if len(on) > 1 else jobs))

    def _done(self, job: Job) -> int:
        """Units from the first one that are done."""
        ledger = job.ledger
        if ledger is None:
            return _ALL if job.state == COMPLETED else 0
        done = self._first.get(job.id, 0)
        while ledger.has(done) and ledger.is_done(done):
            done += 1
        self._first[job.id] = done
        return done if ledger.has(done) else _ALL

    async def run(self) -> None:
        """Until cancelled. Raises LeadershipLostError."""
        # Side by side: most of a look is to wait until the newest answers are stored, and a look at a large race takes
        # long.
        async with asyncio.TaskGroup() as group:
            while True:
                heed_cancel()
                await self._news.wait()
                self._news.clear()
                under_way = self._under_way()
                unseen = {*under_way} if not self._begun else self._unseen
                self._begun, self._unseen = True, unseen & self._looking
                known = {job.id for jobs in under_way.values() for job in jobs}
                for counts, kept in ((self._first, known), (self._seen, known), (self._ended, under_way)):
                    for name in counts.keys() - kept:
                        del counts[name]
                self._failed &= under_way.keys()
                for decision, jobs in under_way.items():
                    ended = sum(job.state in _ENDED for job in jobs)
                    news = decision in unseen or ended != self._ended.get(decision, 0)
                    if news and decision not in self._looking:
                        self._looking.add(decision)
                        group.create_task(self._look_and_rest(decision, jobs))
                await asyncio.sleep(_PAUSE_S)

    async def _look_and_rest(self, decision: str, jobs: Sequence[Job]) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self._look(decision, jobs)
            # Looks at many answers must not keep the results service busy.
            took = asyncio.get_running_loop().time() - began
            await asyncio.sleep(_AGAIN_S if decision in self._failed else max(_PAUSE_S, took))
        finally:
            self._looking.discard(decision)
            self._news.set()

    def _under_way(self) -> dict[str, list[Job]]:
        """By decision, its jobs in their order."""
        found: dict[str, list[Job]] = {}
        for job in self._registry.jobs.values():
            if job.live and decision_id(job.message) not in found and (rest := others(self._registry, job)):
                place = job_ids(job.message).index
                found[decision_id(job.message)] = sorted([job, *rest], key=lambda one: place(one.id))
        return found

    async def _look(self, decision: str, jobs: Sequence[Job]) -> None:
        ended = [job for job in jobs if job.state in _ENDED]
        seen, found = {job.id: _done_items(job) for job in jobs}, decision_pb2.Decision()
        if all(job.message.plan or job in ended for job in jobs) and any(job.message.plan for job in jobs):
            try:
                found = await self._results.evidence([job.message for job in jobs], self._position())
            except (UnavailableError, DeadlineError, NotFoundError) as error:
                log.debug("decision %s: waits for the results service: %s", decision, error.message)
                self._unseen.add(decision)
                self._failed.add(decision)
                return
            except TouchstoneError as error:
                log.warning("decision %s: cannot be made yet: %s", decision, error.message, extra=of_job(decision))
        self._failed.discard(decision)
        self._seen |= seen
        self._ended[decision] = len(ended)
        self._registry.wake.set()
        is_race = bool(jobs[0].message.spec.deciding.race_job_ids)
        over = bool(found.verdict or found.note or (ended and not is_race) or len(ended) == len(jobs) - 1)
        async with self._registry.lock:
            stopped = []
            for place, job in enumerate(jobs):
                racer = found.racers[place] if found.racers else decision_pb2.Racer()
                if not _can_stop(job) or not (over or racer.state == decision_pb2.Racer.STATE_BEATEN):
                    continue
                await self._registry.close_job(job)
                job.cancel("scheduler", self._registry.now(), _reason(found, racer, jobs, ended))
                if found.racers and (found.verdict or racer.state == decision_pb2.Racer.STATE_BEATEN):
                    job.message.decided.CopyFrom(_decided_of(found, racer))
                elif found.verdict:
                    job.message.decided.CopyFrom(_decided(found))
                stopped.append(job)
            if stopped:
                await self._registry.finish_all(stopped, "scheduler", "cancelled")


def _shares(other: Job, job: Job) -> bool:
    """Whether another job at the same endpoint has something to ask, and need not wait for more urgent ones."""
    ledger = other.ledger
    urgent = other.state == RUNNING and other.message.spec.priority >= job.message.spec.priority
    return urgent and ledger is not None and bool(ledger.released or ledger.unreleased(1))


def _wave(job: Job, sharing: int, capacity: Capacity) -> int:
    """The items of a job that may be under way or unseen: its part of what keeps the endpoint busy, which a number of
    jobs are `sharing`, or a part of its answers."""
    busy = max(_BUSY * capacity.calls, 2 * capacity.evaluators * UNIT)
    return max(busy // sharing, 2 * UNIT, int(_UNSEEN * _done_items(job)))


def _after(ledger: Ledger, first: int, items: int, least: int) -> int:
    """The unit that ends a number of `items` from `first` on, and at least a number of units."""
    last = first
    while ledger.has(last) and (items > 0 or last < first + least):
        items -= ledger.unit_items(last)
        last += 1
    return last


def _done_items(job: Job) -> int:
    return job.ledger.items_of_done_units if job.ledger is not None else 0


def _decided(found: decision_pb2.Decision) -> job_pb2.Decided:
    return job_pb2.Decided(
        verdict=found.verdict,
        pairs=found.decided_at,
        difference=found.difference,
        low=found.low,
        high=found.high,
        failed=found.failed,
    )


def _decided_of(found: decision_pb2.Decision, racer: decision_pb2.Racer) -> job_pb2.Decided:
    beaten = racer.state == decision_pb2.Racer.STATE_BEATEN
    return job_pb2.Decided(
        verdict=job_pb2.DECISION_VERDICT_WORSE if beaten else found.verdict,
        pairs=racer.beaten_at if beaten else found.decided_at,
        difference=racer.difference,
        low=racer.low,
        high=racer.high,
        against_job_id=racer.against_job_id,
        counted=racer.pairs,
        failed=racer.failed,
    )


def _can_stop(job: Job) -> bool:
    """A job that has asked everything completes, whatever the verdict."""
    asked = job.ledger is not None and job.ledger.all_done
    return job.live and job.message.attempt == 1 and job.state != FINALIZING and not asked


def _reason(found: decision_pb2.Decision, racer: decision_pb2.Racer, jobs: Sequence[Job], ended: Sequence[Job]) -> str:
    total, margin = found.items_total, jobs[0].message.spec.deciding.margin
    called = names([job.message.spec for job in jobs])
    if racer.state == decision_pb2.Racer.STATE_BEATEN:
        better = next(name for name, job in zip(called, jobs, strict=True) if job.id == racer.against_job_id)
        return f"Stopped: {better} is better, after {racer.beaten_at:,} of {total:,} items. A retry runs the rest."
    if found.verdict:
        if found.racers:
            says = said_of_race(found, called, margin)
        else:
            says = said(found.verdict, "The candidate", "the baseline", margin)
        return f"Stopped: decided after {found.decided_at:,} of {total:,} items. {says}. A retry runs the rest."
    if found.note:
        return f"Stopped: no verdict is possible. {found.note}"
    what = "the other side of its decision" if len(jobs) == 2 else "the last other one of its race"
    return f"Stopped: job {ended[-1].id}, {what}, has ended: {ended[-1].message.reason}"
