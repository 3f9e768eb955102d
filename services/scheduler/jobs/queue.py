"""Who runs next. Pure: the caller brings the clock and acts on the answer.

Two questions are answered here: which waiting job is admitted (`order`), and which units of the running jobs are
released to evaluators (`choose`). JetStream holds only what evaluators can start now, so priorities stay exact and
a cancel is cheap.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending job. `priority` is 1 (low) to 3 (high); `since` is when it began to wait, in seconds.

    `exclusive` is its endpoint if that takes one job at a time, else empty. `warm`: the endpoint is believed to have
    the job's model in memory. `served`: some evaluator can run it now.
    """

    job_id: str
    priority: int
    since: float
    exclusive: str = ""
    warm: bool = False
    owner: str = ""
    served: bool = True


def level(priority: int, waited_s: float, ageing_s: float) -> float:
    """The priority that counts after waiting: one more for every `ageing_s` seconds, so that low never starves."""
    return priority + (waited_s // ageing_s if ageing_s > 0 else 0)


def order(
    waiting: Iterable[Waiting],
    now: float,
    ageing_s: float,
    busy: Mapping[str, int] | None = None,
    held: Mapping[str, int] | None = None,
) -> list[Waiting]:
    """Waiting jobs in the order in which they start: by aged priority, then by turns of their owners.

    Within a priority owners take turns, and each one's jobs go first come first served. `held` has the slots that each
    owner's started jobs hold, so an owner with many jobs waits for those with fewer. A priority ages with its oldest
    waiting job, but before jobs of a higher one it is the turn only of those that have aged enough themselves. Among an
    owner's jobs on one exclusive endpoint with equal aged priority, warm ones go first: loading a model costs more than
    a place in the queue, and ageing limits what the others lose.

    Jobs that can run go first. After them come those that would only wait at an exclusive endpoint for a job that is at
    least as urgent; otherwise, started jobs of one endpoint would keep other endpoints idle; `busy` has the highest
    priority among the started jobs of each such endpoint. Last are those that no evaluator serves. Of these three
    kinds, each counts turns after the ones before it, so that a job that cannot run takes no turn from one that can.
    """
    turns = _Turns(now, ageing_s, held or {})
    oldest_first = sorted(waiting, key=lambda job: (job.since, job.job_id))
    free, blocked = turns.place([job for job in oldest_first if job.served], dict(busy or {}))
    for others in (blocked, [job for job in oldest_first if not job.served]):
        free += turns.place(others, None)[0]
    return free


class _Turns:
    """Gives jobs their places. Turns of owners are counted across calls of `place`."""

    def __init__(self, now: float, ageing_s: float, held: Mapping[str, int]) -> None:
        self._now, self._ageing_s, self._held = now, ageing_s, held
        self._had: dict[int, Counter[str]] = {}

    def _level(self, job: Waiting) -> float:
        return level(job.priority, self._now - job.since, self._ageing_s)

    def _urgency(self, job: Waiting) -> tuple[float, float, str]:
        return -self._level(job), job.since, job.job_id

    def place(self, jobs: Sequence[Waiting], taken: dict[str, int] | None) -> tuple[list[Waiting], list[Waiting]]:
        """The jobs, which come oldest first, in order, and those that wait for an exclusive endpoint, oldest first.

        `taken` has the highest priority with which each such endpoint is busy, and is updated; None to place all jobs.
        """
        placed: dict[str, Waiting] = {}

        def is_left(job: Waiting) -> bool:
            waits = taken is not None and job.exclusive and taken.get(job.exclusive, 0) >= job.priority
            return not waits and job.job_id not in placed

        groups = [
            _Group([job for job in jobs if job.priority == priority], had, is_left, self._level)
            for priority, had in self._counted(jobs)
        ]
        lines = self._lines(jobs)
        while found := self._next(groups):
            group, needed = found
            job = group.take(needed)
            if job.exclusive:
                job = _first(lines[_line(job)], is_left) or job
            placed[job.job_id] = job
            if taken is not None and job.exclusive:
                taken[job.exclusive] = job.priority
        return list(placed.values()), [job for job in jobs if job.job_id not in placed]

    def _counted(self, jobs: Iterable[Waiting]) -> Iterator[tuple[int, Counter[str]]]:
        """The jobs' priorities, the highest first, each with the turns that owners have had."""
        for priority in sorted({job.priority for job in jobs}, reverse=True):
            yield priority, self._had.setdefault(priority, Counter(self._held))

    def _lines(self, jobs: Iterable[Waiting]) -> dict[tuple[str, str, int], deque[Waiting]]:
        """Jobs of exclusive endpoints that may exchange their places, in order."""
        lines: dict[tuple[str, str, int], deque[Waiting]] = {}
        exclusive = (job for job in jobs if job.exclusive)
        for job in sorted(exclusive, key=lambda job: (-self._level(job), not job.warm, job.since, job.job_id)):
            lines.setdefault(_line(job), deque()).append(job)
        return lines

    def _next(self, groups: Iterable[_Group]) -> tuple[_Group, float] | None:
        """The group with the most urgent job, and the level that its job needs; None when no job is left. `groups` come
        by priority, the highest first."""
        best: tuple[tuple[float, float, str], _Group, float] | None = None
        highest = 0.0
        for group in groups:
            if (oldest := group.oldest()) is None:
                continue
            if best is None or self._urgency(oldest) < best[0]:
                best = self._urgency(oldest), group, highest
            highest = max(highest, self._level(oldest))
        return best and best[1:]


def _line(job: Waiting) -> tuple[str, str, int]:
    """Whose turn it is differs between priorities."""
    return job.exclusive, job.owner, job.priority


class _Group:
    """Jobs of one priority, whose owners take turns. `had` counts their turns, and is updated."""

    def __init__(
        self,
        oldest_first: Iterable[Waiting],
        had: Counter[str],
        is_left: Callable[[Waiting], bool],
        level_of: Callable[[Waiting], float],
    ) -> None:
        self._all = deque(oldest_first)
        self._had, self._is_left, self._level_of = had, is_left, level_of
        self._own: dict[str, deque[Waiting]] = {}
        for job in self._all:
            self._own.setdefault(job.owner, deque()).append(job)
        # A place in this heap may be out of date, and then comes too early: `take` puts it where it belongs.
        self._heap = [self._place(jobs[0]) for jobs in self._own.values()]
        heapify(self._heap)

    def _place(self, job: Waiting) -> tuple[int, float, str, str]:
        return self._had[job.owner], job.since, job.job_id, job.owner

    def oldest(self) -> Waiting | None:
        return _first(self._all, self._is_left)

    def take(self, needed: float) -> Waiting:
        """Gives a turn to the next owner whose oldest job has the level `needed`, as the group's oldest job has."""
        passed_over: list[tuple[int, float, str, str]] = []
        while True:
            place = heappop(self._heap)
            job = _first(self._own[place[-1]], self._is_left)
            if job is None:
                continue
            if place != self._place(job):
                heappush(self._heap, self._place(job))
            elif self._level_of(job) >= needed:
                break
            else:
                passed_over.append(place)
        self._had[job.owner] += 1
        for place in (*passed_over, self._place(job)):
            heappush(self._heap, place)
        return job


def _first(jobs: deque[Waiting], is_left: Callable[[Waiting], bool]) -> Waiting | None:
    """The first remaining one. Those before it are no longer needed, and are removed."""
    while jobs and not is_left(jobs[0]):
        jobs.popleft()
    return jobs[0] if jobs else None


@dataclass(slots=True)
class Active:
    """A running job as the release sees it. `next_units` are sizes of unreleased units, in order.

    `warm` as of a waiting job; `held_s` is how long it has been ready to run, in seconds.
    """

    job_id: str
    owner: str
    priority: float
    since: float
    in_flight_units: int
    in_flight_items: int
    next_units: list[tuple[int, int]] = field(default_factory=list)
    """(unit number, items) of the units to release next, in order."""
    warm: bool = False
    held_s: float = 0.0
    served: bool = False
    """The exclusive endpoint is at this job."""
    begun: bool = False
    """Items of this attempt are done."""
    owner_served_at: float = 0.0
    """When the endpoint last turned to a job of the owner, in seconds; 0 for never."""


def choose(
    jobs: Sequence[Active],
    *,
    capacity: int,
    evaluators: int,
    exclusive: bool,
    patience_s: float = 600.0,
    ahead: int = 0,
) -> list[tuple[str, int]]:
    """(job id, unit) pairs to release now on one endpoint.

    `capacity` is calls at once over its `evaluators` live evaluators. Released-unfinished items are kept at twice the
    capacity and at two units per evaluator, as otherwise slots drain between units; `ahead` is added for what a fast
    endpoint answers while a unit is on its way. A job with nothing under way gets one more, unless others have a higher
    priority. On an exclusive endpoint only one job releases, as a model swap costs more than an idle slot: the one with
    the highest priority; among equals the one under way, then one that was interrupted, then one of the owner whose
    last turn is longest ago, then one whose model is in memory, then the oldest. Once a job has been held back for
    `patience_s`, no job with a shorter wait goes before it. On other endpoints the higher priority goes first, then the
    owner, then the job, with the least in flight.
    """
    if capacity <= 0 or evaluators <= 0:
        return []
    ranked = sorted(jobs, key=lambda j: (-j.priority, j.since, j.job_id))
    if exclusive:
        ranked = sorted(ranked, key=lambda j: _exclusive_rank(j, patience_s))[:1]
    units = sum(j.in_flight_units for j in jobs)
    items = sum(j.in_flight_items for j in jobs)
    by_owner: dict[str, int] = {}
    for job in jobs:
        by_owner[job.owner] = by_owner.get(job.owner, 0) + job.in_flight_items
    in_flight = {job.job_id: job.in_flight_items for job in jobs}
    position = {job.job_id: 0 for job in ranked}
    chosen: list[tuple[str, int]] = []
    while True:
        candidates = [j for j in ranked if position[j.job_id] < len(j.next_units)]
        if items >= 2 * capacity + ahead and units >= 2 * evaluators:
            # Even then each job of the highest priority may have one unit under way: on a slow endpoint it would
            # otherwise wait for minutes until the others' units end.
            candidates = [j for j in candidates if j.priority == ranked[0].priority and not in_flight[j.job_id]]
        if not candidates:
            break
        job = min(candidates, key=lambda j: (-j.priority, by_owner[j.owner], in_flight[j.job_id], j.since, j.job_id))
        unit, size = job.next_units[position[job.job_id]]
        position[job.job_id] += 1
        in_flight[job.job_id] += size
        by_owner[job.owner] += size
        items += size
        units += 1
        chosen.append((job.job_id, unit))
    return chosen


def _exclusive_rank(job: Active, patience_s: float) -> tuple[float, bool, bool, bool, bool, float, bool]:
    patient = job.held_s < patience_s
    turn = (not job.in_flight_units, not job.served, not job.begun, job.owner_served_at)
    return -job.priority, patient, *turn, not (job.warm and patient)
