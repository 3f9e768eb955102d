"""A comparison with everything that its answer needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.comparison.common_items import Common, Scored
from services.results.comparison.expenses import Costs
from services.results.comparison.findings import Finding
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.comparison.selection.subjects import Chosen
from services.results.paired.pairs.difference import Difference, Omnibus, Terms
from services.results.paired.verdicts import Verdict, verdict

_MOST_TIMES = 1_000
"""Advice asks for at most this many times the items that there are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Runs are identified by their index in `compared.runs`; `ordered` has the indices best first, `labels` the names
    of runs. `suite` and `tasks` are in the order shown, the first metric first. `places[run]` is the rank range, (0, 0)
    for a run without one. `baseline` is the run that the others are compared with, None without one. `costs` are the
    known costs of the runs' items."""

    chosen: Chosen
    compared: Comparability
    common: Common
    scored: Sequence[Scored]
    metrics: Sequence[str]
    terms: Terms
    ordered: Sequence[int]
    labels: Sequence[str]
    baseline: int | None
    suite: Sequence[Finding]
    tasks: Sequence[Finding]
    places: Sequence[tuple[int, int]]
    omnibus: Sequence[tuple[str, str, Omnibus]]
    every_pair: bool
    costs: Sequence[Costs]

    @property
    def runs(self) -> Sequence[Run]:
        return self.compared.runs

    @property
    def items(self) -> int:
        """Items that all runs share."""
        first = self.compared.cohorts
        return sum(self.common.items[task][0] for task in self.compared.tasks if len(set(first[task])) == 1)

    @property
    def subset(self) -> bool:
        planned = [sum(plan.items for plan in run.job.plan) for run in self.runs]
        return any(run.job.subset for run in self.runs) or any(count > self.items for count in planned)

    def items_needed(self, finding: Finding) -> int | None:
        """About how many items would show a finding's difference with 80 % power, if it is real; None where it is
        shown, equivalent or unknown, or where `_MOST_TIMES` the items would not show it."""
        found = finding.difference
        if self.verdict(finding) is not Verdict.NO_DIFFERENCE_SHOWN or found is None:
            return None
        if found.smallest is None or not found.value:
            return None
        times = (found.smallest / abs(found.value)) ** 2
        return _rounded(times * found.n) if 1 < times <= _MOST_TIMES else None

    def verdict(self, finding: Finding) -> Verdict:
        """A finding's verdict on its first run against its second."""
        difference = finding.difference or Difference(None, 0)
        return verdict(difference, finding.adjusted, self.terms, finding.reason)


def _rounded(items: float) -> int:
    """Rounded up to two digits: more would look exact."""
    step = 10 ** max(0, len(str(int(items))) - 2)
    return int(-(-items // step) * step)
