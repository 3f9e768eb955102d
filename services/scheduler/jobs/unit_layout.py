"""How a job's plan is cut into units. Pure.

Units are numbered through all tasks in plan order; the numbers follow from the plan alone, so that nobody stores
or sends a list of units.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from touchstone.v1 import job_pb2

_MOST_UNITS = 5_000_000


@dataclass(frozen=True, slots=True)
class Slice:
    """A unit's place: positions `start` (inclusive) to `stop` (exclusive) of task number `task`."""

    task: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class Layout:
    """The units of a plan."""

    def __init__(self, tasks: Sequence[job_pb2.TaskPlan]) -> None:
        """Raises ValueError for sizes that cannot be."""
        if any(min(task.items, task.repeats, task.unit_size) < 0 for task in tasks):
            raise ValueError("The sizes of a plan must be 0 or more.")
        self._sizes = [(task.items * max(1, task.repeats), max(1, task.unit_size)) for task in tasks]
        counts = [-(-items // size) for items, size in self._sizes]
        # First unit number of each task, then the total.
        self._first = [0, *accumulate(counts)]
        if self.units > _MOST_UNITS:
            raise ValueError(f"The plan has {self.units:,} units; at most {_MOST_UNITS:,} are allowed.")

    @property
    def units(self) -> int:
        return self._first[-1]

    @property
    def items(self) -> int:
        """Answers: items times repeats."""
        return sum(items for items, _ in self._sizes)

    def task_items(self, task: int) -> int:
        return self._sizes[task][0]

    def slice(self, unit: int) -> Slice:
        """Raises IndexError for a number outside 0..units-1."""
        if not 0 <= unit < self.units:
            raise IndexError(unit)
        task = bisect.bisect_right(self._first, unit) - 1
        items, size = self._sizes[task]
        start = (unit - self._first[task]) * size
        return Slice(task, start, min(start + size, items))

    def missing(self, stored: Sequence[Collection[int]]) -> dict[int, tuple[int, ...]]:
        """Positions still to run by unit, given the stored positions per task. Units with nothing stored map to ()."""
        left: dict[int, tuple[int, ...]] = {}
        for unit in range(self.units):
            place = self.slice(unit)
            have = stored[place.task]
            positions = tuple(p for p in range(place.start, place.stop) if p not in have)
            if len(positions) == place.size:
                left[unit] = ()
            elif positions:
                left[unit] = positions
        return left
