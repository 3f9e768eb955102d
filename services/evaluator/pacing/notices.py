"""Which of many similar events are worth a line in a job's log. Pure: callers bring the clock."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

_EVERY_S = 30.0
_JOBS = 256


@dataclass(slots=True)
class Seldom:
    """Lets one of many through, at most every `every_s` seconds."""

    every_s: float = _EVERY_S
    told: float = -math.inf
    untold: int = 0

    def due(self, now: float) -> int:
        """The number of events since the last one let through, including this one; 0 when it is too soon."""
        self.untold += 1
        if now - self.told < self.every_s:
            return 0
        count, self.untold, self.told = self.untold, 0, now
        return count


class Firsts:
    """Finds what happens for the first time for a job: the first of a task's hundreds of units, or an impossible
    number."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, int], set[str]] = OrderedDict()

    def is_first(self, job: tuple[str, int], what: str) -> bool:
        seen = self._seen.setdefault(job, set())
        self._seen.move_to_end(job)
        while len(self._seen) > _JOBS:
            self._seen.popitem(last=False)
        if what in seen:
            return False
        seen.add(what)
        return True
