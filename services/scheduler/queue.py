"""Who runs next. Pure: the caller brings the clock and acts on the answer.

Two questions are answered here: which waiting job is admitted (`order`), and which units of the running jobs are
released to evaluators (`choose`). JetStream holds only what evaluators can start now, so priorities stay exact and
a cancel is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending job. `priority` is 1 (low) to 3 (high); `since` is when it began to wait, in seconds."""

    job_id: str
    priority: int
    since: float


def level(priority: int, waited_s: float, ageing_s: float) -> float:
    """The priority that counts after waiting: one more for every `ageing_s` seconds, so that low never starves."""
    return priority + (waited_s // ageing_s if ageing_s > 0 else 0)


def order(waiting: Iterable[Waiting], now: float, ageing_s: float) -> list[Waiting]:
    """Waiting jobs in the order in which they start: by aged priority, then first come first served."""
    return sorted(waiting, key=lambda w: (-level(w.priority, now - w.since, ageing_s), w.since, w.job_id))


@dataclass(slots=True)
class Active:
    """A running job as the release sees it. `next_units` are sizes of unreleased units, in order."""

    job_id: str
    owner: str
    priority: float
    since: float
    in_flight_units: int
    in_flight_items: int
    next_units: list[tuple[int, int]] = field(default_factory=list)
    """(unit number, items) of the units to release next, first first."""


def choose(jobs: Sequence[Active], *, capacity: int, evaluators: int, exclusive: bool) -> list[tuple[str, int]]:
    """(job id, unit) pairs to release now on one endpoint.

    `capacity` is calls at once over its `evaluators` live evaluators. Released-unfinished items are kept at twice
    the capacity and at two units per evaluator: with less, slots drain between units. On an exclusive endpoint only
    the first job releases, as a model swap costs more than an idle slot; elsewhere the higher priority goes first,
    then the owner, then the job, with the least in flight.
    """
    if capacity <= 0 or evaluators <= 0:
        return []
    ranked = sorted(jobs, key=lambda j: (-j.priority, j.since, j.job_id))
    if exclusive:
        ranked = ranked[:1]
    units = sum(j.in_flight_units for j in jobs)
    items = sum(j.in_flight_items for j in jobs)
    by_owner: dict[str, int] = {}
    for job in jobs:
        by_owner[job.owner] = by_owner.get(job.owner, 0) + job.in_flight_items
    in_flight = {job.job_id: job.in_flight_items for job in jobs}
    position = {job.job_id: 0 for job in ranked}
    chosen: list[tuple[str, int]] = []
    while items < 2 * capacity or units < 2 * evaluators:
        candidates = [j for j in ranked if position[j.job_id] < len(j.next_units)]
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
