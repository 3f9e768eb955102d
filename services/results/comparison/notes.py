"""What a reader of a comparison has to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from services.results.comparison.outcome import Outcome
from services.results.comparison.selection.wording import listed
from services.results.paired.corrections import Family
from services.words import weighting


def notes(outcome: Outcome) -> list[str]:
    return [*outcome.chosen.notes, *_tasks(outcome), *_items(outcome), *_runs(outcome), *_families(outcome)]


def _tasks(outcome: Outcome) -> Iterator[str]:
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
    if len({weighting.of_plans(run.job.plan) for run in outcome.runs}) > 1 and compared.weighting:
        words = weighting.WORDS[compared.weighting]
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
        yield f"Subset: {outcome.items:,} of {published:,} items."


def _common_items(outcome: Outcome) -> str:
    """Of how many items each run has, the compared ones are those that all have."""
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
            yield f"{label} is a bundled baseline: it is shown for orientation and not tested."
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
