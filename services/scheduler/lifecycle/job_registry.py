"""Every job in memory, and the only way to change one: move it, store it, inform watchers.

Everything runs on one event loop. Moves are made under `lock` and stored before anyone is informed; counts of results
are only in memory, as the stream can be replayed. When a write fails, the whole registry is thrown away and built again
from the bucket, so there is no half-stored state to repair.
"""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from services.bus import KIND_BEGUN, KIND_ITEMS, KIND_RETURNED, Level, Room, of_job
from services.errors import NotFoundError
from services.scheduler.admission import judging_rules
from services.scheduler.jobs import eta, queue
from services.scheduler.jobs.fleet import Fleet, route
from services.scheduler.jobs.job import COMPLETED, HOLDS_SLOT, PENDING, Job, seconds, stamp
from services.scheduler.jobs.ledger import Ledger
from services.scheduler.jobs.progress_text import describe
from services.scheduler.ports import Change, Datasets, LeadershipLostError, Store, Told, Work
from services.scheduler.settings import Limits
from services.scheduler.tracing import trace
from services.telemetry import metrics
from services.words import refusals
from services.words.jobs import LIVE, status_of
from touchstone.v1 import job_pb2

log = logging.getLogger(__name__)

T = TypeVar("T")


class JobRegistry:
    """Jobs under one leadership. `clock` gives seconds since 1970, never going back."""

    def __init__(
        self,
        store: Store,
        work: Work,
        datasets: Datasets,
        fleet: Fleet,
        limits: Limits,
        clock: Callable[[], float],
        event_ids: Callable[[], str],
        room: Room | None = None,
    ) -> None:
        self.store, self.work, self.datasets = store, work, datasets
        self.fleet, self.limits, self.now = fleet, limits, clock
        self.room = room or Room()
        self.jobs: dict[str, Job] = {}
        self.deleted: dict[str, Job] = {}
        """Jobs that users deleted, as long as a finished job is kept: nothing may bring one back."""
        self.lock = asyncio.Lock()
        self.wake = asyncio.Event()
        """Set when something changed that may let work start."""
        self.closed = False
        self.lost: asyncio.Future[LeadershipLostError] = asyncio.get_running_loop().create_future()
        self._event_ids = event_ids
        self._changed: dict[str, asyncio.Event] = {}
        self._told: list[Callable[[], None]] = []
        self._changes: set[asyncio.Task[Any]] = set()

    # -- reading -----------------------------------------------------------------------------------------------

    def find(self, job_id: str) -> Job:
        if job_id not in self.jobs:
            raise NotFoundError(refusals.not_found("Benchmark job", job_id))
        return self.jobs[job_id]

    def in_state(self, *states: job_pb2.Job.State) -> list[Job]:
        return [job for job in self.jobs.values() if job.state in states]

    def waiting(self) -> list[queue.Waiting]:
        """Pending jobs in the order in which they start."""
        now = self.now()
        capacity = cache(lambda endpoint: self.fleet.capacity(endpoint, now))
        busy: dict[str, int] = {}
        held: Counter[str] = Counter()
        for job in self.in_state(*HOLDS_SLOT):
            # Batches at a provider have separate slots.
            held[job.message.owner] += not job.message.spec.provider_batch
            endpoint = route(job.message.spec)
            if capacity(endpoint).exclusive:
                busy[endpoint] = max(busy.get(endpoint, 0), job.message.spec.priority)
        pending = []
        apart = self.kept_apart()
        for job in self.in_state(PENDING):
            spec, endpoint = job.message.spec, route(job.message.spec)
            room = capacity(endpoint)
            pending.append(
                queue.Waiting(
                    job.id,
                    spec.priority,
                    job.waiting_since,
                    exclusive=endpoint if room.exclusive else "",
                    warm=spec.model in room.resident,
                    owner=job.message.owner,
                    served=room.evaluators > 0 and job.id not in apart and not self.fleet.lacking(job.message, now),
                )
            )
        return queue.order(pending, now, self.limits.ageing_s, busy, held)

    def answering(self) -> set[str]:
        """Experiments of which a job that does not judge is live."""
        return {job.message.spec.experiment_name for job in self.in_state(*LIVE) if not _judges(job)} - {""}

    def ended_at(self, job: Job) -> float:
        """When a finished job ended. Of a job of an experiment, when one of the experiment's jobs last changed: judges
        may start only then. Infinity for never."""
        name = job.message.spec.experiment_name
        others = [other for other in self.jobs.values() if other.message.spec.experiment_name == name] if name else []
        changed = [math.inf if other.live else seconds(other.told.occurred_at) for other in others]
        return max([seconds(job.message.finished_at), *changed])

    def kept_apart(self) -> set[str]:
        """Pending jobs that wait for others of their experiment, so that its judges never run while it is answered:
        judges wait until no other job is live, other jobs for judges that have started."""
        judged = {job.message.spec.experiment_name for job in self.in_state(*HOLDS_SLOT) if _judges(job)} - {""}
        answering = self.answering()
        return {
            job.id
            for job in self.in_state(PENDING)
            if job.message.spec.experiment_name in (answering if _judges(job) else judged)
        }

    def replaced_judges(self) -> list[Job]:
        """Pending judges that a run named, of which the run has begun another attempt since: that one gets its own."""
        return [job for job in self.in_state(PENDING) if self._is_replaced(judging_rules.asked_for(job.request_id))]

    def _is_replaced(self, asked: tuple[str, int] | None) -> bool:
        judged = self.jobs.get(asked[0]) if asked else None
        return asked is not None and judged is not None and judged.message.attempt > asked[1]

    def pending_by_owner(self) -> Counter[str]:
        return Counter(job.message.owner for job in self.in_state(PENDING))

    def views(self, jobs: Iterable[Job]) -> list[job_pb2.Job]:
        """Copies for callers, with figures of this moment."""
        now = self.now()
        jobs = list(jobs)
        order = self.waiting()
        waiting = [w.job_id for w in order]
        starts = self._starts(order, now) if any(job.state == PENDING for job in jobs) else {}
        copies = []
        apart = self.kept_apart()
        for job in jobs:
            job.update(now)
            if job.live:
                paused = self.room.level is Level.FULL
                describe(job, waiting, self.fleet, now, paused=paused, apart=job.id in apart)
            copy = job_pb2.Job()
            copy.CopyFrom(job.message)
            if job.id in starts:
                copy.progress.starts_in_s = starts[job.id]
            copies.append(copy)
        return copies

    def _starts(self, order: Sequence[queue.Waiting], now: float) -> dict[str, float]:
        """About how many seconds from now pending jobs start, by id, without those of which nothing is known."""
        holding = [job for job in self.in_state(*HOLDS_SLOT) if not job.message.spec.provider_batch]
        for job in holding:
            job.update(now)
        lengths: dict[object, list[float]] = {}
        for job in (*self.in_state(COMPLETED), *holding):
            progress = job.message.progress
            if job.state == COMPLETED or progress.HasField("eta_s"):
                lengths.setdefault(_kind_of_work(job), []).append(progress.elapsed_s + progress.eta_s)
        usual = statistics.median(length for some in lengths.values() for length in some) if lengths else math.inf

        def length(job: Job) -> float:
            return statistics.median(lengths.get(_kind_of_work(job), [usual]))

        def left(job: Job) -> float:
            progress = job.message.progress
            return progress.eta_s if progress.HasField("eta_s") else max(0.0, length(job) - progress.elapsed_s)

        def exclusive(job: Job) -> str:
            endpoint = route(job.message.spec)
            return endpoint if self.fleet.capacity(endpoint, now).exclusive else ""

        served = [one for one in order if one.served]
        found = eta.starts(
            [eta.Run(left(job), exclusive(job)) for job in holding],
            [eta.Run(length(self.jobs[one.job_id]), one.exclusive) for one in served],
            self.limits.running_jobs,
        )
        return {one.job_id: start for one, start in zip(served, found, strict=True) if start < math.inf}

    def view(self, job: Job) -> job_pb2.Job:
        return self.views([job])[0]

    async def finish_anyway(self, change: Coroutine[Any, Any, T]) -> T:
        """Runs a caller's change to its end even when the caller goes away: half of it would exist only in memory.

        Raises NoRoomError for a change that could not be stored for lack of disk space.
        """
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changed_by_caller)
        try:
            return await asyncio.shield(task)
        except LeadershipLostError:
            self.room.require()
            raise

    def _changed_by_caller(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), LeadershipLostError):
            self.lose(error)

    def lose(self, error: LeadershipLostError) -> None:
        """Ends this leadership: memory may differ from what is stored."""
        if not self.lost.done():
            self.lost.set_result(error)

    # -- changing: call these with `lock` held ------------------------------------------------------------------

    async def commit(self, job: Job, actor: str, action: str) -> None:
        """Stores a moved job with its audit event, then informs watchers."""
        await self.commit_all([job], actor, action)

    async def commit_all(self, jobs: Sequence[Job], actor: str, action: str) -> None:
        """The same for several jobs: all of them or none."""
        now = self.now()
        before = [seconds(job.told.occurred_at) for job in jobs]
        changes = []
        for job in jobs:
            job.update(now)
            if job.live:
                describe(job, [], self.fleet, now, paused=self.room.level is Level.FULL)
            self.note(job, actor, action)
            changes.append(Change(job, job.event()))
        await self.save(changes)
        for job, before_s in zip(jobs, before, strict=True):
            why = f" ({job.message.reason})" if job.message.reason else ""
            log.info("job %s: %s%s", job.id, action, why, extra=of_job(job.id))
            trace(job, action, before_s, now)
            self.touch(job)
        self.wake.set()
        for tell in self._told:
            tell()

    def note(self, job: Job, actor: str, action: str) -> None:
        """Gives a job its next event."""
        job.told = job_pb2.JobEvent(event_id=self._event_ids(), actor=actor, action=action)
        stamp(job.told.occurred_at, self.now())

    def require_stored(self) -> None:
        """Raises LeadershipLostError after a write whose outcome is unknown: a job in memory may not be stored."""
        if self.lost.done():
            raise LeadershipLostError(str(self.lost.result()))

    async def save(self, changes: Sequence[Change]) -> None:
        """Raises LeadershipLostError. After that nothing more is stored under this leadership: memory is ahead of what
        is stored, and the next record would be written without the event of the earlier move."""
        self.require_stored()
        try:
            await self.store.commit(changes, dict(self.pending_by_owner()))
        except LeadershipLostError as error:
            self.lose(error)
            raise

    async def finish(self, job: Job, actor: str, action: str) -> None:
        """Stores a job that has just reached a finished state and takes its units back."""
        await self.finish_all([job], actor, action)

    async def finish_all(self, jobs: Sequence[Job], actor: str, action: str) -> None:
        """The same for several jobs: all of them or none."""
        await self.commit_all(jobs, actor, action)
        for job in jobs:
            metrics.JOBS_ENDED.add(status_of(job.state))
            job.ledger = None
            if job.state != COMPLETED:
                try:
                    await self.work.withdraw(job.id)
                except LeadershipLostError as error:
                    # The change itself is stored; the next leadership takes the units back.
                    self.lose(error)

    async def close_job(self, job: Job) -> None:
        """Before a running job ends early: stops further calls of its units, and counts those that have begun."""
        if job.ledger is not None and job.ledger.tells:
            # From here on no unit goes out again.
            job.closing = True
            await self.close_units(job, job.ledger.out)

    async def close_units(self, job: Job, units: Sequence[int]) -> None:
        """Takes units back whose evaluators note each call before it begins: then no further call begins, and those
        that have begun are counted. Other units stay as they are, and all do while RESULTS has no room."""
        ledger, attempt = job.ledger, job.message.attempt
        if ledger is None or not ledger.tells or not units:
            return
        for told in await self.work.close(job.id, attempt, units, ledger.sequence):
            if told.headers.attempt == attempt:
                _count(ledger, told)

    async def fail(self, job: Job, reason: str, detail: str = "") -> None:
        await self.close_job(job)
        job.fail(reason, self.now(), detail)
        await self.finish(job, "scheduler", "failed")

    async def delete(self, job: Job, actor: str) -> None:
        """Stores that a finished job is deleted. From then on it is not found here, and the results service forgets it
        when it reads the event."""
        job.delete(self.now())
        self.jobs.pop(job.id, None)
        self.deleted[job.id] = job
        await self.commit(job, actor, "deleted")

    # -- watching ----------------------------------------------------------------------------------------------

    def changed(self, job: Job) -> asyncio.Event:
        """An event that the job's next change sets."""
        return self._changed.setdefault(job.id, asyncio.Event())

    def tell_of_moves(self, tell: Callable[[], None]) -> None:
        """Calls `tell` after each stored move of a job, as long as this leadership lasts."""
        self._told.append(tell)

    def touch(self, job: Job) -> None:
        changed = self._changed.pop(job.id, None)
        if changed is not None:
            changed.set()

    def close(self) -> None:
        """Ends every watch and refuses further changes: this leadership is over."""
        self.lose(LeadershipLostError("This scheduler no longer leads. Try again."))
        self.closed = True
        for changed in self._changed.values():
            changed.set()


def _judges(job: Job) -> bool:
    return job.message.spec.HasField("judging")


def _kind_of_work(job: Job) -> object:
    """Equal for jobs over the same items, which take about as long."""
    spec = job.message.spec
    return spec.endpoint, spec.suite.SerializeToString(), spec.dataset.dataset_id, spec.dataset.limit


def _count(ledger: Ledger, told: Told) -> None:
    if told.headers.kind == KIND_ITEMS:
        ledger.record(told.unit, told.headers, told.sequence)
    elif told.headers.kind == KIND_BEGUN:
        ledger.begun(told.unit, told.headers, told.sequence)
    elif told.headers.kind == KIND_RETURNED:
        ledger.returned(told.unit, told.headers, told.sequence)
