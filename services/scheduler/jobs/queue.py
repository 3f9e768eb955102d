"""Who runs next. Pure: the caller brings the clock and acts on the answer.

Two questions are answered here: which waiting job is admitted (`order`), and which units of the running jobs are
released to evaluators (`choose`). JetStream holds only what evaluators can start now, so priorities stay exact and
a cancel is cheap.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending job. `priority` is 1 (low) to 3 (high); `since` is when it began to wait, in seconds.

    `exclusive` is its endpoint where that takes one job at a time, else empty. `warm`: the endpoint has the job's model
    in memory, as far as is known.
    """

    job_id: str
    priority: int
    since: float
    exclusive: str = ""
    warm: bool = False
    owner: str = ""


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
    waiting job. Of an owner's jobs on one exclusive endpoint that are equal in aged priority, warm ones go first:
    loading a model costs more than a place in line, and ageing bounds what the others lose.

    `busy` has the highest priority among the started jobs of each exclusive endpoint. A job that would only wait there
    for one not less urgent goes behind all that can run, or started jobs of one endpoint would keep the others idle.
    """

    def rank(job: Waiting) -> tuple[float, bool, float, str]:
        return -level(job.priority, now - job.since, ageing_s), not job.warm, job.since, job.job_id

    ranked = _by_priority(waiting, now, ageing_s, held or {})
    lines: dict[tuple[str, str, int], list[Waiting]] = {}
    for job in ranked:
        lines.setdefault(_line(job), []).append(job)
    next_of = {line: iter(sorted(jobs, key=rank)) for line, jobs in lines.items() if line[0]}
    taken = dict(busy or {})
    free: list[Waiting] = []
    blocked: list[Waiting] = []
    for place in ranked:
        job = next(next_of[_line(place)]) if place.exclusive else place
        if job.exclusive and taken.get(job.exclusive, 0) >= job.priority:
            blocked.append(job)
            continue
        free.append(job)
        if job.exclusive:
            taken[job.exclusive] = job.priority
    return free + blocked


def _line(job: Waiting) -> tuple[str, str, int]:
    """Jobs of one line may exchange their places. Priorities differ in who has a turn."""
    return job.exclusive, job.owner, job.priority


def _by_priority(waiting: Iterable[Waiting], now: float, ageing_s: float, held: Mapping[str, int]) -> list[Waiting]:
    oldest_first = sorted(waiting, key=lambda job: (job.since, job.job_id))
    ages = {job.priority: deque[Waiting]() for job in oldest_first}
    for job in oldest_first:
        ages[job.priority].append(job)
    turns = {priority: deque(_in_turns(jobs, held)) for priority, jobs in ages.items()}
    placed: set[str] = set()
    ranked: list[Waiting] = []

    def urgency(priority: int) -> tuple[float, float, str]:
        oldest = ages[priority][0]
        return -level(priority, now - oldest.since, ageing_s), oldest.since, oldest.job_id

    while turns:
        priority = min(turns, key=urgency)
        job = turns[priority].popleft()
        ranked.append(job)
        placed.add(job.job_id)
        while ages[priority] and ages[priority][0].job_id in placed:
            ages[priority].popleft()
        if not turns[priority]:
            del turns[priority]
    return ranked


def _in_turns(jobs: Iterable[Waiting], held: Mapping[str, int]) -> list[Waiting]:
    """Jobs of one priority, oldest first, in turns of their owners."""
    had = Counter(held)
    turns: list[tuple[int, float, str, Waiting]] = []
    for job in jobs:
        turns.append((had[job.owner], job.since, job.job_id, job))
        had[job.owner] += 1
    return [job for *_, job in sorted(turns, key=lambda turn: turn[:3])]


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
    """(unit number, items) of the units to release next, first first."""
    warm: bool = False
    held_s: float = 0.0
    served: bool = False
    """The endpoint, an exclusive one, is at this job."""
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

    `capacity` is calls at once over its `evaluators` live evaluators. Released-unfinished items are kept at twice
    the capacity and at two units per evaluator, with less of which slots drain between units, and `ahead` beyond that:
    what a fast endpoint answers while a unit is on its way. A job with nothing under way gets one more, unless others
    have a higher priority. On an exclusive endpoint only one job releases, as a model swap costs more than an idle
    slot: the one with the highest priority; of those the one that is under way, then one of the owner whose turn is the
    longest ago, then one whose model is in memory, then the oldest. Once a job has been held back for `patience_s`,
    none whose wait is shorter goes before it. Elsewhere the higher priority goes first, then the owner, then the job,
    with the least in flight.
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
            # Even then no job of the highest priority is kept from having one unit under way: on a slow endpoint it
            # would wait for minutes until the others' units end.
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


def _exclusive_rank(job: Active, patience_s: float) -> tuple[float, bool, bool, bool, float, bool]:
    patient = job.held_s < patience_s
    turn = (not job.in_flight_units, not job.served, job.owner_served_at)
    return -job.priority, patient, *turn, not (job.warm and patient)
