"""A comparison with everything that its answer needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.results.comparison.common_items import Common, Scored
from services.results.comparison.expenses import Costs
from services.results.comparison.findings import Finding
from services.results.comparison.further_runs import Again, is_covered
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.comparison.selection.subjects import Chosen
from services.results.paired.pairs.difference import Difference, Omnibus, Terms
from services.results.paired.verdicts import Verdict, verdict
from services.results.scores.suite_score import SCORE
from services.results.statistics.reasking import Shift, widened

_NO_SHIFT = Shift(0.0, 0.0, 1)
_MOST_TIMES = 1_000
"""Advice asks for at most this many times the items that there are."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Runs are identified by their index in `compared.runs`; `ordered` has the indices best first, `labels` the names
    of runs. `suite` and `tasks` are in the order shown, the first metric first. `places[run]` is the rank range, (0, 0)
    for a run without one. `baseline` is the run that the others are compared with, None without one. `costs` are the
    known costs of the runs' items. `again` says how much a run varies by itself, None where that is not known."""

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
    again: Sequence[Again | None]

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

    def total_interval(self, finding: Finding) -> tuple[float, float] | None:
        """The interval of a difference with what moves whole runs; None where that is not known of both, and of metrics
        other than means over items."""
        found = finding.difference
        shifts = [self._shift(finding, place) for place in finding.pair]
        known = [one for one in shifts if one is not None]
        if found is None or len(known) < len(shifts):
            return None
        if found.value is None or found.stderr is None or found.low is None or found.high is None:
            return None
        low, high = (
            widened(abs(found.value - end), known, found.stderr**2, found.n, self.terms.alpha)
            for end in (found.low, found.high)
        )
        return found.value - low, found.value + high

    def _shift(self, finding: Finding, place: int) -> Shift | None:
        """Bundled baselines always answer the same."""
        if self.runs[place].job.baseline:
            return _NO_SHIFT
        again = self.again[place]
        tasks = [finding.task] if finding.task else self.compared.tasks
        plans = [plan for task in tasks if not (plan := self.compared.plans[task][place]).beside or finding.task]
        metric = "" if finding.metric == SCORE else finding.metric
        return again.shifts.get(finding.task) if again is not None and is_covered(plans, metric) else None

    def verdict(self, finding: Finding) -> Verdict:
        """A finding's verdict on its first run against its second."""
        difference = finding.difference or Difference(None, 0)
        return verdict(difference, finding.adjusted, self.terms, finding.reason)


def _rounded(items: float) -> int:
    """Rounded up to two digits: more would look exact."""
    step = 10 ** max(0, len(str(int(items))) - 2)
    return int(-(-items // step) * step)
