"""What a reader of a comparison has to know, and what follows from it, in sentences. Pure: the figures decide, not the
names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.results.comparison import expenses
from services.results.comparison.findings import Finding
from services.results.comparison.outcome import Outcome
from services.results.comparison.selection.runs import Run, amount, listed, metric_title
from services.results.paired.corrections import Family
from services.results.paired.verdicts import Verdict, one_of
from services.results.scores.ranking import CUT_SHARE, NO_REFERENCE
from services.words import suites
from services.words.refusals import counted


def notes(outcome: Outcome) -> list[str]:
    return [
        *outcome.chosen.notes,
        *_tasks_in_common(outcome),
        *_items(outcome),
        *_runs(outcome),
        *_families(outcome),
        *_noise(outcome),
    ]


def _tasks_in_common(outcome: Outcome) -> Iterator[str]:
    compared = outcome.compared
    if compared.left_out:
        titles = [
            next(run.plans[task].title or task for run in outcome.runs if task in run.plans)
            for task in compared.left_out
        ]
        yield f"Left out because not every run has {'it' if len(titles) == 1 else 'them'}: {listed(titles)}."
    if not compared.tasks:
        yield "The runs have no task in common."
        return
    if len({suites.of_plans(run.job.plan) for run in outcome.runs}) > 1 and compared.weighting:
        words = suites.WORDS[compared.weighting]
        yield f"The scores of these runs have different rules; here, all are means {words}."
    if any(len(set(numbers)) > 1 for numbers in compared.cohorts.values()):
        yield "Some runs cannot be compared; see the reasons. Each figure uses the items of the runs that can."


def _items(outcome: Outcome) -> Iterator[str]:
    tasks = outcome.compared.tasks
    if not tasks or not outcome.items:
        return
    plans = [[run.plans[task] for run in outcome.runs] for task in tasks]
    if any(len({plan.item_set for plan in of_task}) > 1 for of_task in plans):
        yield _common_items(outcome)
    elif any(len({plan.data.revision for plan in of_task}) > 1 for of_task in plans):
        yield "The data come from different revisions with the same items."
    if any(run.job.spec.HasField("dataset") for run in outcome.runs):
        scored = max((metric.n for one in outcome.scored for task in one.tasks for metric in task.metrics), default=0)
        if 0 < scored < outcome.items:
            yield f"{scored:,} of the {outcome.items:,} rows have a reference; the figures use only those."
    published = max(run.job.published_items for run in outcome.runs)
    if outcome.subset and published > outcome.items:
        yield f"Subset: {outcome.items:,} of {counted(published, 'item')}."


def _common_items(outcome: Outcome) -> str:
    """How many items each run has; the compared ones are those that all have."""
    own = {
        outcome.labels[place]: sum(outcome.runs[place].plans[task].items for task in outcome.compared.tasks)
        for place in outcome.ordered
    }
    if len(set(own.values())) > 1:
        each = listed([f"{label} ran {count:,}" for label, count in own.items()])
        return f"Compared on the {outcome.items:,} items that all runs share: {each}."
    return f"Compared on the {outcome.items:,} items that all runs share, of {max(own.values()):,} in each."


def _runs(outcome: Outcome) -> Iterator[str]:
    for place in outcome.ordered:
        run, label = outcome.runs[place], outcome.labels[place]
        if count := sum(outcome.common.lost[task][place] for task in outcome.compared.tasks):
            yield (
                f"{count:,} {'item' if count == 1 else 'items'} without a final outcome in {label} "
                f"{'is' if count == 1 else 'are'} left out of all runs."
            )
        if run.not_ranked_reason:
            yield f"{label} is not ranked: {run.not_ranked_reason}."
        elif run.result.caution:
            yield f"{label}: {run.result.caution}. They count as wrong; its rank range allows for them."
        if run.job.baseline:
            yield f"{label} is a bundled baseline: its differences are not corrected for several tests."
        if len(run.result.served_models) > 1:
            yield f"The version of {label} changed while it ran: {listed(list(run.result.served_models))} answered."


def _families(outcome: Outcome) -> Iterator[str]:
    if any(finding.family is Family.EXPLORATORY for finding in outcome.tasks):
        yield (
            f"The {len(outcome.compared.tasks)} tasks are exploratory: p controls the false discovery rate "
            "(Benjamini–Hochberg), and a single task proves nothing."
        )
    if not outcome.every_pair:
        yield "By task, only pairs with the best run are shown. Name a baseline to see others."


def _noise(outcome: Outcome) -> Iterator[str]:
    """What the intervals of differences leave out. They hold what single answers do by chance, as they hold the choice
    of items."""
    models = [place for place in outcome.ordered if not outcome.runs[place].job.baseline]
    without = [outcome.labels[place] for place in models if outcome.again[place] is None]
    measured = [(outcome.labels[place], again.runs) for place in models if (again := outcome.again[place]) is not None]
    if len(outcome.runs) - len(without) < 2:
        yield (
            "Re-asking noise is not included: intervals leave out what moves all answers of a run together, such as "
            f"another day. Of {listed(without)} there is one run. To measure it, run the same again: touchstone noise."
        )
    elif measured:
        each = listed([f"{counted(count, 'run')} of {label}" for label, count in measured])
        one_run = f", but not for {listed(without)}, with one run" if without else ""
        yield f"Re-asking noise is included in the total intervals, as measured in {each}{one_run}."


@dataclass(frozen=True, slots=True)
class _Against:
    """What a comparison says about the run in focus against another one."""

    other: int
    finding: Finding
    verdict: Verdict


def recommendations(outcome: Outcome) -> list[str]:
    """The run in focus is the best one that ranks, or the baseline that the others are compared with."""
    ranked = [p for p in outcome.ordered if not outcome.runs[p].not_ranked_reason and not outcome.runs[p].job.baseline]
    focus = outcome.baseline if outcome.baseline is not None else (ranked or outcome.ordered)[0]
    against = list(_against(outcome, focus))
    return [
        *_fixes(outcome),
        *_verdicts(outcome, focus, against),
        *_expenses(outcome, focus, against),
        *_better_tasks(outcome, focus, against),
    ]


def _against(outcome: Outcome, focus: int) -> Iterator[_Against]:
    turned = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}
    by_other = {
        f.b if f.a == focus else f.a: f for f in outcome.suite if f.metric == outcome.metrics[0] and focus in f.pair
    }
    for other in outcome.ordered:
        finding = by_other.get(other)
        if finding is not None:
            verdict = outcome.verdict(finding)
            yield _Against(other, finding, verdict if finding.a == focus else turned.get(verdict, verdict))


def _fixes(outcome: Outcome) -> Iterator[str]:
    """What must be fixed before the figures can decide."""
    for place in outcome.ordered:
        run, label = outcome.runs[place], outcome.labels[place]
        if not run.not_ranked_reason:
            if run.result.caution:
                yield f"{label}: {run.result.caution}. They count as wrong here. {_remedy(run)}"
            continue
        remedy = "Compare another run of it."
        if any(run.lost(task) for task in run.plans):
            remedy = f"Retry job {run.job_id}; only the missing items run."
        elif run.not_ranked_reason == NO_REFERENCE:
            remedy = "Compare the answers side by side, or upload the rows with their references."
        yield f"{label} is not ranked ({run.not_ranked_reason}). {remedy}"


def _remedy(run: Run) -> str:
    if all(one.cut <= CUT_SHARE for one in run.result.unread):
        return f"Check the unread answers of job {run.job_id} first."
    return f"Re-run the truncated items of job {run.job_id} with a higher token limit."


def _verdicts(outcome: Outcome, focus: int, against: Sequence[_Against]) -> Iterator[str]:
    label, metric = outcome.labels[focus], outcome.metrics[0]
    better = [one for one in against if one.verdict is Verdict.BETTER]
    worse = [one for one in against if one.verdict is Verdict.WORSE]
    if better:
        everyone = "every other run" if len(better) == len(against) > 1 else _names(outcome, better)
        gaps = sorted(abs(one.finding.difference.value or 0) for one in better if one.finding.difference is not None)
        ends = dict.fromkeys(amount(gap, metric) for gap in (gaps[0], gaps[-1]))
        by = " to ".join(ends)
        # What the present scores show may not hold for unread answers.
        sure = len(better) == len(against) and not any(run.result.caution for run in outcome.runs)
        prefer = f" Prefer {label} where {metric_title(metric)} decides." if sure else ""
        yield f"{label} is shown to be better than {everyone}, by {by}.{prefer}"
    if worse:
        yield f"{label} is shown to be worse than {_names(outcome, worse)}."
    if equivalent := [one for one in against if one.verdict is Verdict.EQUIVALENT]:
        yield (
            f"{label} and {_names(outcome, equivalent)} are equivalent within {amount(outcome.terms.margin, metric)}: "
            "choose by cost, speed or other needs."
        )
    for one in against:
        if one.verdict is Verdict.NO_DIFFERENCE_SHOWN:
            yield _open(outcome, focus, one)
    for one in against:
        if one.verdict is Verdict.NOT_COMPARABLE:
            why = one.finding.reason or (one.finding.difference.undefined_reason if one.finding.difference else "")
            yield f"{label} and {outcome.labels[one.other]} cannot be compared: {why}."


def _open(outcome: Outcome, focus: int, one: _Against) -> str:
    names = f"{outcome.labels[focus]} from {outcome.labels[one.other]}"
    found, metric = one.finding.difference, outcome.metrics[0]
    said = f"The data do not separate {names}"
    if found is None or found.value is None or found.low is None or found.high is None:
        return f"{said}; do not choose between them by this score."
    said += (
        f": the difference of {amount(found.value, metric)} may be chance. Do not choose between them by this score."
    )
    if (needed := outcome.items_needed(one.finding)) is not None:
        said += (
            f" If it is real, about {needed:,} items ({needed / found.n:.1f} times as many) would show it with 80 % "
            f"power{one_of(one.finding.comparisons)}."
        )
    return said


def _expenses(outcome: Outcome, focus: int, against: Sequence[_Against]) -> Iterator[str]:
    """If no loss is shown, what is shown to be cheaper. Times are not compared: they also depend on the load."""
    alike = {one.other: one for one in against if one.verdict in (Verdict.EQUIVALENT, Verdict.NO_DIFFERENCE_SHOWN)}
    for saving in expenses.savings(outcome.costs, focus, list(alike), outcome.terms):
        cheap, one = saving.cheap, alike[saving.dear if saving.cheap == focus else saving.cheap]
        found = one.finding.difference
        said = (
            f"{outcome.labels[cheap]} costs {100 * saving.share:.0f} % less than {outcome.labels[saving.dear]} "
            f"({100 * (1 - outcome.terms.alpha):g} % interval {100 * saving.low:.0f} to {100 * saving.high:.0f} % on "
            f"{saving.n:,} items)"
        )
        if one.verdict is Verdict.EQUIVALENT:
            yield f"{said} and is equivalent within {amount(outcome.terms.margin, outcome.metrics[0])}."
        elif found is not None and found.low is not None and found.high is not None:
            most = max(0.0, found.high if one.finding.b == cheap else -found.low)
            yield f"{said}, and no loss is shown; a loss of up to {amount(most, outcome.metrics[0])} is not ruled out."


def _better_tasks(outcome: Outcome, focus: int, against: Sequence[_Against]) -> Iterator[str]:
    """Where another run is better than the one in focus, although it is not better overall."""
    for one in against:
        if one.verdict is Verdict.WORSE:
            continue
        titles = [
            outcome.compared.title(f.task)
            for f in outcome.tasks
            if {f.a, f.b} == {focus, one.other}
            and outcome.verdict(f) is (Verdict.WORSE if f.a == focus else Verdict.BETTER)
        ]
        if titles:
            named = listed(list(dict.fromkeys(titles)))
            yield f"{outcome.labels[one.other]} is shown to be better than {outcome.labels[focus]} on {named}."


def _names(outcome: Outcome, found: Sequence[_Against]) -> str:
    return listed([outcome.labels[one.other] for one in found])
