"""From tasks to a suite: a job's averages over tasks and by category, its score, and the rule of it in words. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean

import numpy as np

from services.results.scores import means, metric_kinds
from services.results.scores.aggregation import Measured, TaskData, percentile_interval
from services.results.statistics.metric_values import ACCURACY, Estimate, Floats
from services.words import suites
from services.words.suites import ITEMS, TASKS, UNSPECIFIED
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.suite_pb2 import Weighting


@dataclass(frozen=True, slots=True)
class _Score:
    value: float
    n: int
    bounds: tuple[float, float] | None
    answered: float | None
    draws: Floats


def average(groups: Sequence[Sequence[Measured]], metric: str = "", *, by_items: bool = False) -> Estimate | None:
    """Unweighted mean over groups of the mean over a group's tasks of the mean of a task's metrics; `by_items`: the
    mean over all tasks, each weighted by its items.

    A group is one task, or several that count once (MNLI matched and mismatched). Metrics that are not scored are left
    out, unless `metric` names one: it restricts the average to one metric and to the tasks that have it. An undefined
    value counts as 0. None when there is no task, or one without items. An average over one metric of one task is that
    metric, with its own interval.
    """
    chosen = [[m for m in group if names_of(m, metric)] for group in groups]
    chosen = [group for group in chosen if group]
    estimates = [m.estimates[name] for group in chosen for m in group for name in names_of(m, metric)]
    if not estimates or any(e.n == 0 for e in estimates):
        return None
    if len(estimates) == 1 and estimates[0].value is not None:
        return estimates[0]
    tasks = [[_task_score(m, metric) for m in group] for group in chosen]
    if by_items:
        parts = [task for group in tasks for task in group]
        score = _mean(parts, [task.n for task in parts])
    else:
        score = _mean([_mean(group) for group in tasks])
    # Each task's draws lean a little towards the middle of their range, by the prior. Over many tasks that does not
    # average out while the width shrinks: so only their spread is used, around the average itself.
    low, high = min(0.0, score.draws.min()), max(1.0, score.draws.max())
    draws = np.clip(score.draws - score.draws.mean() + score.value, low, high)
    reasons = sorted({e.undefined_reason for e in estimates if e.undefined_reason})
    whole = percentile_interval(score.value, score.n, draws, "stratified")
    return replace(whole, bounds=score.bounds, answered=score.answered, undefined_reason="; ".join(reasons))


def names_of(measured: Measured, metric: str) -> list[str]:
    """The metrics of a task that an average takes."""
    if metric:
        return [metric] if metric in measured.estimates else []
    return [name for name in measured.estimates if name not in measured.beside]


def _task_score(measured: Measured, metric: str) -> _Score:
    found = []
    for name in names_of(measured, metric):
        estimate = measured.estimates[name]
        value = 0.0 if estimate.value is None else estimate.value
        found.append(_Score(value, estimate.n, estimate.bounds, estimate.answered, measured.draws[name]))
    # Of several metrics the first counts items; others may count groups of them.
    return replace(_mean(found), n=found[0].n)


def _mean(parts: Sequence[_Score], weights: Sequence[float] | None = None) -> _Score:
    if len(parts) == 1:
        return parts[0]
    bounds = [part.bounds for part in parts if part.bounds is not None]
    answered = [part.answered for part in parts if part.answered is not None]
    return _Score(
        value=fmean([part.value for part in parts], weights),
        n=sum(part.n for part in parts),
        bounds=(fmean([low for low, _ in bounds], weights), fmean([high for _, high in bounds], weights))
        if len(bounds) == len(parts)
        else None,
        answered=fmean(answered, weights) if len(answered) == len(parts) else None,
        draws=np.average([part.draws for part in parts], axis=0, weights=weights),
    )


SCORE = "score"

_ROUNDING = 1e-9


def averages_by_metric(
    plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured]
) -> list[tuple[metric_pb2.Metric, int]]:
    """The suite's score and the mean of each metric over the tasks that have it, with their number: by the suite's
    rule, and for several tasks also by each rule, under its own name.

    Tasks that are not scored are separate: they count only for a metric that no other task has.
    """
    names = list(dict.fromkeys(spec.metric for plan in plans for spec in plan.metrics))
    own = suites.of_plans(plans)
    averages = []
    for by in (UNSPECIFIED, ITEMS, TASKS) if own else (UNSPECIFIED,):
        for metric in ("", *names):
            found = _average(averaged_tasks(plans, metric), measured, metric, by or own)
            if found is not None:
                found[0].metric = suites.average_name(found[0].metric, by)
                averages.append(found)
    return averages


def averaged_tasks(plans: Sequence[job_pb2.TaskPlan], metric: str) -> list[job_pb2.TaskPlan]:
    """The tasks that a metric is averaged over; "" means the suite's score."""
    having = [p for p in plans if not metric or any(spec.metric == metric for spec in p.metrics)]
    return [p for p in having if not p.beside] or (having if metric else [])


def further_averages(plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured]) -> list[metric_pb2.Average]:
    """The score over items and over tasks: by category, and over all tasks if there are several."""
    plans = [plan for plan in plans if not plan.beside]
    parts = {category: [p for p in plans if p.category == category] for category in {p.category: 0 for p in plans}}
    parts.pop("", None)
    if len(plans) > 1:
        parts[""] = plans
    return [
        metric_pb2.Average(
            category=category, metric=found[0], rule=suites.OLDER_NAMES[by], tasks=found[1], weighting=by
        )
        for category, members in parts.items()
        for by in (ITEMS, TASKS)
        if (found := _average(members, measured, "", by)) is not None
    ]


def pooled_accuracy(plans: Sequence[job_pb2.TaskPlan], data: Mapping[str, TaskData]) -> metric_pb2.Metric | None:
    """Share of right answers over all items of the tasks that have an accuracy; None without any."""
    parts = []
    for plan in plans:
        for spec in filter(metric_kinds.is_accuracy, plan.metrics):
            found = data[plan.task].scores_of(spec)
            parts.append((found, data[plan.task].lost_of(spec, found.n), data[plan.task].clustered))
    pooled = means.pooled(parts)
    return metric_message(ACCURACY, pooled) if pooled.n else None


def score_rule(plans: Sequence[job_pb2.TaskPlan]) -> str:
    """The rule of the suite's score, in one sentence; "" without tasks."""
    counted = [plan for plan in plans if not plan.beside]
    groups = grouped(counted)
    metrics = [[spec.metric for spec in metric_kinds.counts(plan.metrics)] for plan in counted]
    if not groups or not any(metrics):
        return ""
    if suites.of_plans(plans) == ITEMS and len(counted) > 1:
        rule = _rule_over_items(metrics)
    else:
        rule = _rule_over_tasks(metrics, len(groups)) + "".join(
            f"; {_joined([plan.title or plan.task for plan in members])} count as one task"
            for members in groups.values()
            if len(members) > 1
        )
    if beside := [plan.title or plan.task for plan in plans if plan.beside]:
        rule += f"; {_listed(beside)} {'is' if len(beside) == 1 else 'are'} reported, not scored"
    return rule + "."


def _rule_over_items(metrics: Sequence[Sequence[str]]) -> str:
    if single := _only_metric(metrics):
        return f"Mean {single} over the items of {len(metrics)} tasks"
    return f"Mean over {len(metrics)} tasks of the mean of each task's metrics, weighted by the number of items"


def _rule_over_tasks(metrics: Sequence[Sequence[str]], groups: int) -> str:
    single = _only_metric(metrics)
    if groups == 1:
        return f"The {single}" if single else "Mean of the task's metrics"
    rule = f"Mean {single} over {groups} tasks" if single else f"Mean over {groups} tasks"
    if any(len(task) > 1 for task in metrics):
        return rule + " of the mean of each task's metrics"
    return rule if single else rule + " of each task's metric"


def _only_metric(metrics: Sequence[Sequence[str]]) -> str:
    """The one metric of all tasks, in words; "" where they have several."""
    names = {name for task in metrics for name in task}
    return names.pop().replace("_", " ") if len(names) == 1 else ""


def _average(
    plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured], metric: str, by: Weighting
) -> tuple[metric_pb2.Metric, int] | None:
    groups = grouped(plans)
    chosen = [[measured[plan.task] for plan in members] for members in groups.values()]
    estimate = average(chosen, metric, by_items=by == ITEMS)
    counted = len(plans) if by == ITEMS else len(groups)
    return None if estimate is None else (metric_message(metric or SCORE, estimate), counted)


def grouped(plans: Sequence[job_pb2.TaskPlan]) -> dict[str, list[job_pb2.TaskPlan]]:
    """Tasks that count once together."""
    groups: dict[str, list[job_pb2.TaskPlan]] = defaultdict(list)
    for plan in plans:
        groups[plan.score_group or plan.task].append(plan)
    return groups


def _joined(titles: Sequence[str]) -> str:
    """ "MNLI matched and mismatched": a common beginning is written once."""
    words = [title.split() for title in titles]
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))))
    return _listed([titles[0], *(" ".join(title[shared:]) for title in words[1:])])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def metric_message(name: str, estimate: Estimate, *, beside: bool = False) -> metric_pb2.Metric:
    metric = metric_pb2.Metric(
        metric=name,
        mean=estimate.value,
        stderr=estimate.stderr,
        ci95_low=estimate.low,
        ci95_high=estimate.high,
        n=estimate.n,
        undefined_reason=estimate.undefined_reason,
        method=estimate.method,
        beside=beside,
    )
    if estimate.bounds is not None and (estimate.value is not None or estimate.bounds[0] < estimate.bounds[1]):
        metric.bound_low, metric.bound_high = estimate.bounds
    # If nothing is missing, it would only repeat the value.
    if estimate.answered is not None and metric.bound_high - metric.bound_low > _ROUNDING:
        metric.answered_mean = estimate.answered
    return metric
