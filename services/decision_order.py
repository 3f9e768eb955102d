"""The order in which both jobs of a decision ask their items. Pure.

All items of all tasks are in one random order, fixed by the seed: so the items up to any place are a random sample.
Items of one cluster, such as a passage, follow each other, and clusters are in random order. The scheduler asks items
in units, each of a few items of one task that are near to each other in the order. The results service reads answers in
the order itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from touchstone.v1 import job_pb2

UNIT = 8
"""The most items of a unit. Small, as what a job has asked when its decision is made is a whole number of them."""
_WINDOW, _MOST_WINDOW, _WINDOW_PART = 64, 512, 1 / 16
"""With many tasks, a few items of one task are some way apart. They are taken from this many items of the order at the
beginning, and later from a part of those before: as many may be asked before the verdict comes within them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A unit: `positions` of task number `task`. They are the items from `start` on when the task's items are counted
    in the order."""

    task: int
    start: int
    positions: tuple[int, ...]


@lru_cache(maxsize=8)
def _order(tasks: tuple[tuple[str, int, tuple[int, ...]], ...], seed: int) -> Sequence[tuple[int, int]]:
    keyed: list[tuple[bytes, int, Sequence[int]]] = []
    for number, (task, size, clusters) in enumerate(tasks):
        begun = hashlib.sha256(f"decision:{seed}:{task}:".encode())
        for positions in _together(size, clusters):
            digest = begun.copy()
            digest.update(b"%d" % positions[0])
            keyed.append((digest.digest(), number, positions))
    keyed.sort()
    return [(number, position) for _, number, positions in keyed for position in positions]


def _together(size: int, clusters: Sequence[int]) -> Iterable[Sequence[int]]:
    """Positions that follow each other."""
    if not clusters:
        return ((position,) for position in range(size))
    found: dict[int, list[int]] = {}
    for position, cluster in enumerate(clusters):
        found.setdefault(cluster, []).append(position)
    return found.values()


def order(plan: Sequence[job_pb2.TaskPlan], seed: int) -> Sequence[tuple[int, int]]:
    """(number of the task, position) of every item of a plan with one answer per item, the same in every version."""
    return _order(tuple((task.task, task.items, tuple(task.clusters)) for task in plan), seed)


def units(plan: Sequence[job_pb2.TaskPlan], seed: int) -> list[Asked]:
    """All items in units, in the order in which these are asked."""
    items = order(plan, seed)
    most = min(UNIT * max(1, len(plan)), _MOST_WINDOW)
    counts = [0] * len(plan)
    made: list[Asked] = []
    begin = 0
    while begin < len(items):
        window = min(most, max(_WINDOW, int(begin * _WINDOW_PART)))
        by_task: dict[int, list[int]] = {}
        for task, position in items[begin : begin + window]:
            by_task.setdefault(task, []).append(position)
        begin += window
        for task, positions in by_task.items():
            for first in range(0, len(positions), UNIT):
                some = tuple(sorted(positions[first : first + UNIT]))
                made.append(Asked(task, counts[task], some))
                counts[task] += len(some)
    return made
