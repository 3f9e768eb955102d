"""Differences between runs, for the suite and for each task, corrected within their families."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run, Unanswered
from services.results.comparison.shared_rows import SharedRows, metric_name
from services.results.paired.corrections import (
    Correction,
    Family,
    adjust,
    adjust_pairs,
    suite_omnibus,
    task_family,
    task_omnibus,
    within,
)
from services.results.paired.differences import suite_differences, task_differences
from services.results.paired.pairs.difference import Difference, Omnibus, Pair, Terms
from services.results.statistics import metric_values
from services.words.suites import ITEMS
from touchstone.v1.suite_pb2 import MetricSpec


@dataclass(frozen=True, slots=True)
class OpenCases:
    """`compared` has the runs, followed by their cases: `best` and `worst` are the indices of the cases by run. A run
    without a separate case is its own case."""

    compared: Comparability
    best: Mapping[int, int]
    worst: Mapping[int, int]

    def pairs(self, pairs: Sequence[Pair]) -> list[Pair]:
        """The first run at its worst, the second at its best."""
        return [(self.worst.get(a, a), self.best.get(b, b)) for a, b in pairs]


def open_cases(compared: Comparability, places: Sequence[int]) -> OpenCases:
    """The cases of the runs in `places`. There is a worst case only if a metric may fall below its scored value."""
    left = [place for place in places if left_unanswered(compared.runs[place], compared.tasks)]
    may_fall = any(map(_may_fall, (spec for task in compared.tasks for spec in compared.plans[task][0].metrics)))
    falling = left if may_fall else []
    first = len(compared.runs)
    runs = [
        *compared.runs,
        *(replace(compared.runs[place], unanswered=Unanswered.RIGHT) for place in left),
        *(replace(compared.runs[place], unanswered=Unanswered.WRONG) for place in falling),
    ]
    more = replace(
        compared,
        runs=runs,
        cohorts={task: [*of, *(of[place] for place in (*left, *falling))] for task, of in compared.cohorts.items()},
        plans={task: [*of, *(of[place] for place in (*left, *falling))] for task, of in compared.plans.items()},
    )
    return OpenCases(
        more,
        best={place: first + number for number, place in enumerate(left)},
        worst={place: first + len(left) + number for number, place in enumerate(falling)},
    )


def left_unanswered(run: Run, tasks: Sequence[str]) -> bool:
    """Whether some item of these tasks has no readable answer."""
    outcomes = [run.measured[task].outcomes for task in tasks]
    return any(o.unparsed or o.output_truncated or o.refused or o.input_truncated for o in outcomes)


def _may_fall(spec: MetricSpec) -> bool:
    """In the Matthews correlation, "no answer" is a separate class, and a vote leaves unread answers out."""
    return spec.rule == MetricSpec.RULE_MAJORITY or (not spec.rule and spec.metric == metric_values.MATTHEWS)


@dataclass(frozen=True, slots=True)
class Finding:
    """One metric of run a minus that of run b; `task` is "" for the suite.

    If they are not comparable there is a `reason` and no `difference`. `adjusted` is p after the family's correction;
    None for a single comparison, and for one outside every family. `comparisons` counts what is corrected together;
    `overall` says that p comes from the test whether the models differ at all, which is above Holm's.
    """

    a: int
    b: int
    task: str
    metric: str
    difference: Difference | None = None
    reason: str = ""
    family: Family = Family.PRIMARY
    correction: Correction = Correction.NONE
    adjusted: float | None = None
    comparisons: int = 1
    overall: bool = False

    @property
    def pair(self) -> Pair:
        return self.a, self.b


def of_suite(
    rows: SharedRows, metric: str, pairs: Sequence[Pair], models: Sequence[int], terms: Terms, *, primary: bool
) -> list[Finding]:
    """The suite's differences of one metric.

    Those of the first metric are the primary hypotheses: Holm over the pairs of `models`, never below the test whether
    the models differ at all. Those of further metrics are exploratory. Pairs with other runs are outside the family.
    """
    found = _suite(rows, metric, pairs, terms)
    if not primary:
        return _adjusted(found, models, Family.EXPLORATORY, Correction.BENJAMINI_HOCHBERG, terms)
    return _primary(found, models, omnibus_of_suite(rows, metric, models), terms)


def of_open_cases(
    rows: SharedRows, metric: str, pairs: Sequence[Pair], models: Sequence[int], cases: OpenCases, terms: Terms
) -> list[Finding]:
    """For the first metric and pairs with the better run first: whether it is ahead of the other whatever the
    unanswered items would have been. Holm over the pairs, as in `of_suite`; pairs are named by the runs themselves.
    `rows` are those of the cases.

    If the first run may be behind, nothing is shown: the other may not be as good either.
    """
    asked = cases.pairs(pairs)
    by_pair = {finding.pair: finding for finding in _suite(rows, metric, asked, terms)}
    found = []
    for pair, case in zip(pairs, asked, strict=True):
        finding = replace(by_pair[case], a=pair[0], b=pair[1])
        difference = finding.difference
        if case != pair and difference is not None and (difference.value or 0.0) <= 0:
            finding = replace(finding, difference=replace(difference, p=1.0))
        found.append(finding)
    return _primary(found, models, omnibus_of_suite(rows, metric, models), terms)


def _primary(found: Sequence[Finding], models: Sequence[int], overall: Omnibus | None, terms: Terms) -> list[Finding]:
    corrected = _adjusted(found, models, Family.PRIMARY, Correction.HOLM, terms)
    if overall is None:
        return corrected
    p = [None if finding.adjusted is None else _p(finding, models) for finding in corrected]
    adjusted = adjust_pairs(p, overall.p)
    return [
        finding if value is None else replace(finding, adjusted=value, overall=value != finding.adjusted)
        for finding, value in zip(corrected, adjusted, strict=True)
    ]


def of_tasks(rows: SharedRows, pairs: Sequence[Pair], models: Sequence[int], terms: Terms) -> list[Finding]:
    """For each task, metric and pair: one family, exploratory if there are many tasks."""
    compared = rows.compared
    found: dict[tuple[str, str, Pair], Finding] = {}
    together: dict[tuple[Pair, ...], list[str]] = defaultdict(list)
    for task in compared.tasks:
        comparable = []
        for a, b in pairs:
            reason = compared.reason(a, b, [task])
            if not reason and rows.of_task(task, a) is None:
                reason = rows.why_empty(task, a)
            for metric in rows.task_metrics(compared.plans[task][a]) if reason else ():
                found[task, metric, (a, b)] = Finding(a, b, task, metric, reason=reason)
            if not reason:
                comparable.append((a, b))
        by_cohort: dict[int, list[Pair]] = defaultdict(list)
        for pair in comparable:
            by_cohort[compared.cohorts[task][pair[0]]].append(pair)
        for inside in by_cohort.values():
            together[tuple(inside)].append(task)
    for members, tasks in together.items():
        shared = [rows.of_task(task, members[0][0]) for task in tasks]
        measured = task_differences([one for one in shared if one is not None], members, terms)
        for task, by_metric in zip(tasks, measured, strict=True):
            for metric in rows.task_metrics(compared.plans[task][members[0][0]]):
                for pair, difference in zip(members, by_metric[metric], strict=True):
                    told = replace(difference, n=rows.n_of(task, metric, pair[0], difference))
                    found[task, metric, pair] = Finding(*pair, task, metric, told)
    in_order = [
        found[task, metric, pair]
        for task in compared.tasks
        for metric in dict.fromkeys(spec.metric for plan in compared.plans[task] for spec in plan.metrics)
        for pair in pairs
        if (task, metric, pair) in found
    ]
    family, correction = task_family(len(compared.tasks))
    # The pairs of a single task are also several hypotheses.
    return _adjusted(in_order, models, family, correction if correction.value else Correction.HOLM, terms)


def omnibus_of_suite(rows: SharedRows, metric: str, models: Sequence[int]) -> Omnibus | None:
    """Whether three models or more differ at all; None if they are not all comparable."""
    first = models[0] if models else 0
    if len(models) < 3 or any(rows.reason((first, other), metric) for other in models[1:]):
        return None
    groups = rows.of_suite(first, metric)
    by_items = rows.compared.weighting == ITEMS
    return suite_omnibus(groups, models, metric_name(metric), by_items=by_items) if groups else None


def omnibus_of_tasks(rows: SharedRows, models: Sequence[int]) -> Iterator[tuple[str, str, Omnibus]]:
    """By task and metric."""
    compared = rows.compared
    for task in compared.tasks if len(models) > 2 else ():
        shared = rows.of_task(task, models[0])
        if shared is None or any(compared.reason(models[0], other, [task]) for other in models[1:]):
            continue
        for metric in rows.task_metrics(compared.plans[task][models[0]]):
            found = task_omnibus(shared, metric, models)
            if found is not None:
                yield task, metric, found


def _suite(rows: SharedRows, metric: str, pairs: Sequence[Pair], terms: Terms) -> list[Finding]:
    found: dict[Pair, Finding] = {}
    together: dict[tuple[int, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        tasks = [plan.task for plan in rows.averaged(pair[0], metric)]
        if reason := rows.reason(pair, metric):
            found[pair] = Finding(*pair, "", metric, reason=reason)
        else:
            together[tuple(rows.compared.cohorts[task][pair[0]] for task in tasks)].append(pair)
    for members in together.values():
        groups = rows.of_suite(members[0][0], metric)
        by_items = rows.compared.weighting == ITEMS
        differences = suite_differences(groups, members, terms, metric_name(metric), by_items=by_items)
        for pair, difference in zip(members, differences, strict=True):
            found[pair] = Finding(*pair, "", metric, difference)
    return [found[pair] for pair in pairs if pair in found]


def _adjusted(
    found: Sequence[Finding], models: Sequence[int], family: Family, correction: Correction, terms: Terms
) -> list[Finding]:
    found = [replace(finding, family=family) for finding in found]
    p = [_p(finding, models) for finding in found]
    members = [place for place, value in enumerate(p) if value is not None]
    if len(members) < 2:
        return found
    differences = within([d for place in members if (d := found[place].difference) is not None], terms.alpha)
    adjusted = adjust(p, correction)
    for place, difference in zip(members, differences, strict=True):
        found[place] = replace(
            found[place],
            difference=difference,
            correction=correction,
            adjusted=adjusted[place],
            comparisons=len(members),
        )
    return found


def _p(finding: Finding, models: Sequence[int]) -> float | None:
    """The p-values that count in a family; None for pairs that are not comparable and for pairs with a baseline."""
    inside = finding.a in models and finding.b in models
    return finding.difference.p if inside and finding.difference is not None else None
