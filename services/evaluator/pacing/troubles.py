"""What the jobs of one endpoint have met there in this process."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from services.evaluator.pacing.retry import Budget, Outage
from services.evaluator.units.notices import Seldom

_JOBS_REMEMBERED = 256


@dataclass(slots=True)
class Trouble:
    """Of one job, at one attempt."""

    outage: Outage
    budget: Budget = field(default_factory=Budget)
    failing: Seldom = field(default_factory=Seldom)
    loading: Seldom = field(default_factory=Seldom)


class Troubles:
    """Of the latest jobs. `first_outage_s` and `outage_s` as in Outage."""

    def __init__(self, first_outage_s: float, outage_s: float) -> None:
        self._patience_s = first_outage_s, outage_s
        self._jobs: OrderedDict[tuple[str, int], Trouble] = OrderedDict()

    def of(self, job: tuple[str, int]) -> Trouble:
        """Of a job id and attempt."""
        if job not in self._jobs:
            self._jobs[job] = Trouble(Outage(*self._patience_s))
            while len(self._jobs) > _JOBS_REMEMBERED:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job)
        return self._jobs[job]
