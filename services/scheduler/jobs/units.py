"""Units of a job: how its plan is cut into them, and one that has begun to report. Pure.

Units are numbered through all tasks in plan order; the numbers follow from the plan alone, so that nobody stores
or sends a list of units.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import fsum
from typing import TYPE_CHECKING

from services import decision_order
from touchstone.v1 import job_pb2

if TYPE_CHECKING:
    from services.bus import ResultHeaders

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
        """Raises ValueError for invalid sizes."""
        if any(min(task.items, task.repeats, task.unit_size) < 0 for task in tasks):
            raise ValueError("The sizes of a plan must be 0 or more.")
        self._sizes = [(task.items * max(1, task.repeats), max(1, task.unit_size)) for task in tasks]
        counts = [-(-items // size) for items, size in self._sizes]
        # First unit number of each task, then the total.
        self._first = [0, *accumulate(counts)]
        if self._first[-1] > _MOST_UNITS:
            raise ValueError(f"The plan has {self._first[-1]:,} units; at most {_MOST_UNITS:,} are allowed.")

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

    def positions(self, unit: int) -> tuple[int, ...]:
        """The unit's positions, where they are not those of its slice; else empty."""
        return ()

    def missing(self, stored: Sequence[Collection[int]]) -> dict[int, tuple[int, ...]]:
        """Positions still to run by unit, given the stored positions per task. Units with nothing stored map to ()."""
        left: dict[int, tuple[int, ...]] = {}
        for unit in range(self.units):
            place = self.slice(unit)
            have = stored[place.task]
            every = self.positions(unit) or range(place.start, place.stop)
            positions = tuple(p for p in every if p not in have)
            if len(positions) == place.size:
                left[unit] = ()
            elif positions:
                left[unit] = positions
        return left


class DecisionLayout(Layout):
    """The units of a decision's job, numbered as they are asked. A slice counts a task's items in the random order."""

    def __init__(self, tasks: Sequence[job_pb2.TaskPlan], seed: int) -> None:
        """Raises ValueError for invalid sizes."""
        super().__init__(tasks)
        self._asked = decision_order.units(tasks, seed)

    @property
    def units(self) -> int:
        return len(self._asked)

    def slice(self, unit: int) -> Slice:
        if not 0 <= unit < self.units:
            raise IndexError(unit)
        asked = self._asked[unit]
        return Slice(asked.task, asked.start, asked.start + len(asked.positions))

    def positions(self, unit: int) -> tuple[int, ...]:
        return self._asked[unit].positions


def layout_of(tasks: Sequence[job_pb2.TaskPlan], spec: job_pb2.JobSpec) -> Layout:
    """The units of a job. Raises ValueError for invalid sizes."""
    if spec.HasField("deciding"):
        return DecisionLayout(tasks, spec.deciding.seed)
    return Layout(tasks)


@dataclass(slots=True)
class Flight:
    """Counts of the unit's newest delivery, and the known and possible costs of earlier ones.

    `size` is the items that it was released with, `most` the US dollars that one answer may cost at most (0 where no
    budget is kept), `first` the stream position before its first message. `delivery` begins as the number of the last
    delivery whose calls are accounted for.
    """

    size: int
    most: float
    first: int
    paid_once: bool = False
    """A later delivery reads the answers of the same calls again, as with a provider's batch."""
    delivery: int = 0
    heard: bool = False
    """Whether any message came from that delivery since."""
    items: int = 0
    errors: int = 0
    tokens: int = 0
    untold: int = 0
    retries: int = 0
    unpriced: int = 0
    begun: int = 0
    """Items that are stored or whose call has begun; 0 if unknown."""
    called: bool = False
    """Whether some of the items were answered by calls of this delivery."""
    costs: list[float] = field(default_factory=list)
    """US dollars of messages with a price, of all deliveries: each is about different calls."""
    lost_calls: int = 0
    """The most calls of earlier deliveries without a known price."""
    evaluator: str = ""

    def count(self, headers: ResultHeaders) -> None:
        """Adds a message of the newest delivery; from a message of an earlier one, adds only the cost of its calls."""
        if headers.delivery > self.delivery:
            self._begin(headers.delivery)
        if headers.cost is not None and not (self.paid_once and headers.delivery < self.delivery):
            self.costs.append(headers.cost / 1e6)
        if not self.is_newest(headers):
            return
        self.items += headers.items
        self.errors += headers.errors
        self.tokens += headers.output_tokens
        self.untold += headers.untold
        self.retries += headers.retries
        self.unpriced += headers.unpriced
        self.called |= headers.cost is not None or headers.unpriced > 0
        self.evaluator = headers.evaluator or self.evaluator

    def note(self, headers: ResultHeaders) -> None:
        """Takes over how many items are stored or have begun."""
        if headers.delivery > self.delivery:
            self._begin(headers.delivery)
        if self.is_newest(headers):
            self.begun = max(self.begun, headers.items)
            self.evaluator = headers.evaluator or self.evaluator

    def is_newest(self, headers: ResultHeaders) -> bool:
        """Whether a message is of the delivery that is counted."""
        return self.heard and headers.delivery == self.delivery

    def _begin(self, delivery: int) -> None:
        if not self.paid_once:
            unheard = delivery - self.delivery - 1
            self.lost_calls += self.size * unheard + (self._cut_off(counted=self.begun > 0) if self.heard else 0)
        else:
            self.costs = []
        self.delivery, self.heard = delivery, True
        self.items = self.errors = self.tokens = self.untold = self.retries = self.unpriced = self.begun = 0
        self.called = False

    @property
    def silent(self) -> int:
        """The most calls of this delivery whose price is not (yet) known."""
        return max(0, self.size - self.items) + self.unpriced

    @property
    def cost(self) -> float | None:
        """US dollars; None where no answer's price is known."""
        return fsum(self.costs) if self.costs else None

    @property
    def lost(self) -> float:
        """US dollars that calls of earlier deliveries may have cost at most."""
        return self.most * self.lost_calls

    @property
    def open(self) -> float:
        """US dollars that calls of this delivery may cost beyond their known cost."""
        return self.most * self.silent

    def given_up(self, *, counted: bool) -> int:
        """The most calls of all deliveries without a known price, if no more begin. `counted`: each call was noted
        before it began."""
        return self.lost_calls + self._cut_off(counted=counted)

    def _cut_off(self, *, counted: bool) -> int:
        # If no call was noted, new answers show that this evaluator does not note calls.
        if counted and (self.begun >= self.items or not self.called):
            return max(0, self.begun - self.items) + self.unpriced
        return self.silent


@dataclass(frozen=True, slots=True)
class Charge:
    """A unit that was taken back, with what is accounted for. `sequence` is a position in RESULTS, `times` how often it
    was taken back, `deliveries` the number of its last delivery by then."""

    sequence: int = 0
    times: int = 0
    deliveries: int = 0
