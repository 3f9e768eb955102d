"""Decisions while their jobs run: both jobs keep step, and stop once the results service knows the verdict.

Nothing of a decision is kept but its jobs, which name each other. So a scheduler that starts looks at all of them
again. The verdict follows from the order of the items and the stored answers alone: when it is looked for, and how
often, does not change it.

A job that runs again, as after a verdict, is an ordinary job: it asks all that is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from services.bus import heed_cancel, of_job
from services.errors import DeadlineError, NotFoundError, TouchstoneError, UnavailableError
from services.scheduler.jobs.fleet import Capacity
from services.scheduler.jobs.job import CANCELLED, COMPLETED, FAILED, FINALIZING, HOLDS_SLOT, PENDING, Job
from services.scheduler.lifecycle.job_registry import JobRegistry
from services.scheduler.ports import Results
from services.words.decisions import said
from touchstone.v1 import decision_pb2, job_pb2

log = logging.getLogger(__name__)

_PAUSE_S, _AGAIN_S = 0.1, 1.0
_MOST_UNSEEN = 4
"""How many times what may be under way both jobs may have done since the last look."""
_ALL = 1 << 30
_MOST_APART = 128
"""Items that one job may be ahead of the other at an endpoint that takes one model at a time: loading takes long."""


def other_side(registry: JobRegistry, job: Job) -> Job | None:
    """The other job of a decision that is under way; None for other jobs."""
    other = registry.jobs.get(job.message.spec.deciding.against_job_id)
    if other is None or (job.message.attempt, other.message.attempt) != (1, 1):
        return None
    return other


def holders(registry: JobRegistry) -> list[Job]:
    """The jobs that take a slot. Both sides of a decision share one: if each waited for its own, decisions could wait
    for each other."""
    return [job for job in registry.in_state(*HOLDS_SLOT) if not joins(registry, job)]


def joins(registry: JobRegistry, job: Job) -> bool:
    """Whether the job is the candidate's of a decision, or starts, while the other side has a slot."""
    other = other_side(registry, job)
    if other is None or other.state not in HOLDS_SLOT:
        return False
    return job.state == PENDING or job.message.spec.deciding.candidate


class Deciding:
    """Those of one registry. `position` is the last RESULTS position that was handled."""

    def __init__(self, registry: JobRegistry, results: Results, position: Callable[[], int]) -> None:
        self._registry, self._results, self._position = registry, results, position
        self._news = asyncio.Event()
        # Decisions of an earlier leadership may be made already.
        self._news.set()
        self._unseen: set[str] = set()
        """Baselines' jobs of decisions with answers that no look has seen."""
        self._begun = False
        self._first: dict[str, int] = {}
        """By job, how many of its units from the first one are done."""
        self._seen: dict[str, int] = {}
        """By baseline's job, how many units of both from the first one the last look has seen."""

    def heard(self, job: Job) -> None:
        """Notes that a unit of the job is done."""
        if job.message.spec.HasField("deciding"):
            self._unseen.add(_baseline_id(job))
            self._news.set()

    def last_unit(self, job: Job, capacity: Capacity, ahead: int) -> int | None:
        """The number of the first unit that has to wait for the other side; None for other jobs. Units up to there keep
        the endpoint busy, and no more are asked in vain when the decision is made."""
        other, ledger = other_side(self._registry, job), job.ledger
        if other is None or ledger is None:
            return None
        wanted = max(2 * (2 * capacity.calls + ahead), _MOST_APART if capacity.exclusive else 0)
        first = last = min(self._done(job), self._done(other))
        least = last + 2 * capacity.evaluators
        while ledger.has(last) and (wanted > 0 or last < least):
            wanted -= ledger.unit_items(last)
            last += 1
        # While the results service is silent, the verdict may be there already.
        return min(last, self._seen.get(_baseline_id(job), 0) + _MOST_UNSEEN * max(1, last - first))

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
        while True:
            heed_cancel()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _AGAIN_S)
            self._news.clear()
            pairs = self._under_way()
            unseen = {_baseline_id(job) for job, _ in pairs} if not self._begun else self._unseen
            self._begun, self._unseen = True, set()
            known = {job.id for pair in pairs for job in pair}
            for counts in (self._first, self._seen):
                for job_id in counts.keys() - known:
                    del counts[job_id]
            began = asyncio.get_running_loop().time()
            for baseline, candidate in pairs:
                ended = [job for job in (baseline, candidate) if job.state in (FAILED, CANCELLED)]
                if ended or baseline.id in unseen:
                    await self._look(baseline, candidate, ended)
            # Looks at many answers must not keep the results service busy.
            await asyncio.sleep(max(_PAUSE_S, asyncio.get_running_loop().time() - began))

    def _under_way(self) -> list[tuple[Job, Job]]:
        found: dict[str, tuple[Job, Job]] = {}
        for job in self._registry.jobs.values():
            other = other_side(self._registry, job) if job.live else None
            if other is not None:
                sides = (other, job) if job.message.spec.deciding.candidate else (job, other)
                found[sides[0].id] = sides
        return list(found.values())

    async def _look(self, baseline: Job, candidate: Job, ended: Sequence[Job]) -> None:
        decision = decision_pb2.Decision()
        seen = min(self._done(baseline), self._done(candidate))
        if baseline.message.plan and candidate.message.plan:
            try:
                decision = await self._results.evidence(baseline.message, candidate.message, self._position())
            except (UnavailableError, DeadlineError, NotFoundError) as error:
                log.debug("job %s: its decision waits for the results service: %s", baseline.id, error.message)
                self._unseen.add(baseline.id)
                return
            except TouchstoneError as error:
                log.warning(
                    "job %s: its decision cannot be made yet: %s", baseline.id, error.message, extra=of_job(baseline.id)
                )
        self._seen[baseline.id] = seen
        self._registry.wake.set()
        if not decision.verdict and not decision.note and not ended:
            return
        async with self._registry.lock:
            live = [job for job in (baseline, candidate) if _can_stop(job) and other_side(self._registry, job)]
            for job in live:
                await self._registry.close_job(job)
                job.cancel(
                    "scheduler", self._registry.now(), _reason(decision, job.message.spec.deciding.margin, ended)
                )
                if decision.verdict:
                    job.message.decided.CopyFrom(_decided(decision))
            if live:
                await self._registry.finish_all(live, "scheduler", "cancelled")


def _decided(decision: decision_pb2.Decision) -> job_pb2.Decided:
    return job_pb2.Decided(
        verdict=decision.verdict,
        pairs=decision.decided_at,
        difference=decision.difference,
        low=decision.low,
        high=decision.high,
    )


def _can_stop(job: Job) -> bool:
    """A job that has asked everything completes, whatever the verdict."""
    return job.live and job.state != FINALIZING and not (job.ledger is not None and job.ledger.all_done)


def _baseline_id(job: Job) -> str:
    side: job_pb2.Deciding = job.message.spec.deciding
    return side.against_job_id if side.candidate else job.id


def _reason(decision: decision_pb2.Decision, margin: float, ended: Sequence[Job]) -> str:
    if decision.verdict:
        found = said(decision.verdict, "The candidate", "the baseline", margin)
        at, total = decision.decided_at, decision.items_total
        return f"Stopped: decided after {at:,} of {total:,} items. {found}. A retry runs the rest."
    if decision.note:
        return f"Stopped: no verdict is possible. {decision.note}"
    return f"Stopped: job {ended[0].id}, the other side of its decision, has ended: {ended[0].message.reason}"
