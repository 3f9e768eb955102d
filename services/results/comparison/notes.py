"""What a reader of a comparison has to know. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from services.results import weighting
from services.results.comparison.outcome import Outcome
from services.results.comparison.wording import listed
from services.results.paired.families import Family


def notes(outcome: Outcome) -> list[str]:
    return [*outcome.chosen.notes, *_items(outcome), *_runs(outcome), *_families(outcome)]


def _items(outcome: Outcome) -> Iterator[str]:
    compared = outcome.compared
    if compared.left_out:
        titles = [
            next(run.plans[task].title or task for run in outcome.runs if task in run.plans)
            for task in compared.left_out
        ]
        yield f"Left out, as not every run has {'it' if len(titles) == 1 else 'them'}: {listed(titles)}."
    if not compared.tasks:
        yield "The runs have no task in common."
        return
    if len({weighting.of_plans(run.job.plan) for run in outcome.runs}) > 1 and compared.weighting:
        words = weighting.WORDS[compared.weighting]
        yield f"The scores of these runs have different rules; here all are means {words}."
    if any(len(set(numbers)) > 1 for numbers in compared.cohorts.values()):
        yield "Some runs do not compare; each figure is over the items of the runs that do, see the reasons."
    own = {
        outcome.labels[place]: sum(outcome.runs[place].plans[task].items for task in compared.tasks)
        for place in outcome.ordered
    }
    if not outcome.items:
        return
    different = any(len({run.plans[task].item_set for run in outcome.runs}) > 1 for task in compared.tasks)
    if different and len(set(own.values())) > 1:
        each = listed([f"{label} ran {count:,}" for label, count in own.items()])
        yield f"Compared on the {outcome.items:,} items that all runs have: {each}."
    elif different:
        yield f"Compared on the {outcome.items:,} items that all runs have of their {max(own.values()):,}."
    revisions = any(len({run.plans[task].data.revision for run in outcome.runs}) > 1 for task in compared.tasks)
    if revisions and not different:
        yield "The data were read from different revisions, in which the items are the same."
    if any(run.job.spec.HasField("dataset") for run in outcome.runs):
        scored = max((metric.n for one in outcome.scored for task in one.tasks for metric in task.metrics), default=0)
        if 0 < scored < outcome.items:
            yield f"{scored:,} of the {outcome.items:,} rows have a reference; the figures are over those."
    published = max(run.job.published_items for run in outcome.runs)
    if outcome.subset and published > outcome.items:
        yield f"Subset: {outcome.items:,} of {published:,} items."


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
            yield f"{label}: {run.result.caution}. They count as wrong; its places say what they leave open."
        if run.job.baseline:
            yield f"{label} is a bundled baseline: shown for orientation, outside of every family of tests."
        if len(run.result.served_models) > 1:
            yield f"The version of {label} changed while it ran: {listed(list(run.result.served_models))} answered."


def _families(outcome: Outcome) -> Iterator[str]:
    if any(finding.family is Family.EXPLORATORY for finding in outcome.tasks):
        yield (
            f"The {len(outcome.compared.tasks)} tasks are exploratory: p is corrected for the share of false "
            "discoveries (Benjamini–Hochberg), and single tasks prove nothing."
        )
    if not outcome.every_pair:
        yield "Task by task only pairs with the best run are shown; name a baseline for others."
