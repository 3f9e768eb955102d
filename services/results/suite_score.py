"""A job's averages over tasks, with the rule of its score in words. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile

from services.results import scores, specs
from services.results.aggregation import Measured, TaskData
from services.results.averages import average
from services.results.messages import metric_message
from services.results.statistics import ACCURACY
from touchstone.v1 import job_pb2, metric_pb2

SCORE = "score"


def averages_by_metric(
    plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured]
) -> list[tuple[metric_pb2.Metric, int]]:
    """The suite's score and the mean of each metric over the tasks that have it, with their number.

    Tasks beside stand for themselves: they count only for a metric that no other task has.
    """
    names = list(dict.fromkeys(spec.metric for plan in plans for spec in plan.metrics))
    averages = []
    for metric in ("", *names):
        found = _average(averaged_tasks(plans, metric), measured, metric)
        if found is not None:
            averages.append(found)
    return averages


def averaged_tasks(plans: Sequence[job_pb2.TaskPlan], metric: str) -> list[job_pb2.TaskPlan]:
    """The tasks that a metric is averaged over, "" being the suite's score."""
    having = [p for p in plans if not metric or any(spec.metric == metric for spec in p.metrics)]
    return [p for p in having if not p.beside] or (having if metric else [])


def further_averages(
    plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured], data: Mapping[str, TaskData]
) -> list[metric_pb2.Average]:
    """By category the score, and the accuracy over all items together; the latter over all tasks, too.

    Accuracy over all items exists where every task has an accuracy, and tells something where there are several.
    """
    plans = [plan for plan in plans if not plan.beside]
    averages = []
    for category in dict.fromkeys(plan.category for plan in plans):
        members = [plan for plan in plans if plan.category == category]
        if category and (found := _average(members, measured, "")) is not None:
            averages.append(metric_pb2.Average(category=category, metric=found[0], rule="macro", tasks=found[1]))
        if category and (micro := _micro(members, data)) is not None:
            averages.append(metric_pb2.Average(category=category, metric=micro, rule="micro", tasks=len(members)))
    if (micro := _micro(plans, data)) is not None:
        averages.append(metric_pb2.Average(metric=micro, rule="micro", tasks=len(plans)))
    return averages


def pooled_accuracy(plans: Sequence[job_pb2.TaskPlan], data: Mapping[str, TaskData]) -> metric_pb2.Metric | None:
    """Share of right answers over all items of the tasks that have an accuracy; None without any."""
    parts = []
    for plan in plans:
        for spec in filter(specs.is_accuracy, plan.metrics):
            found = data[plan.task].scores_of(spec)
            parts.append((found, data[plan.task].lost_of(spec, found.n), data[plan.task].clustered))
    pooled = scores.pooled(parts)
    return metric_message(ACCURACY, pooled) if pooled.n else None


def score_rule(plans: Sequence[job_pb2.TaskPlan]) -> str:
    """How the suite's score comes about, in one sentence; "" when nothing makes it up."""
    counted = [plan for plan in plans if not plan.beside]
    groups = grouped(counted)
    metrics = [[spec.metric for spec in specs.counts(plan.metrics)] for plan in counted]
    names = {name for task in metrics for name in task}
    single = names.pop().replace("_", " ") if len(names) == 1 else ""
    if not groups or not any(metrics):
        return ""
    if len(groups) == 1:
        rule = f"The {single}" if single else "Mean of the task's metrics"
    else:
        rule = f"Mean {single} over {len(groups)} tasks" if single else f"Mean over {len(groups)} tasks"
        if any(len(task) > 1 for task in metrics):
            rule += " of the mean of each task's metrics"
        elif not single:
            rule += " of each task's metric"
    for members in groups.values():
        if len(members) > 1:
            rule += f"; {_joined([plan.title or plan.task for plan in members])} count once"
    beside = [plan.title or plan.task for plan in plans if plan.beside]
    if beside:
        rule += f"; {_listed(beside)} {'is' if len(beside) == 1 else 'are'} shown beside it"
    return rule + "."


def _average(
    plans: Sequence[job_pb2.TaskPlan], measured: Mapping[str, Measured], metric: str
) -> tuple[metric_pb2.Metric, int] | None:
    groups = grouped(plans)
    estimate = average([[measured[plan.task] for plan in members] for members in groups.values()], metric)
    return None if estimate is None else (metric_message(metric or SCORE, estimate), len(groups))


def _micro(plans: Sequence[job_pb2.TaskPlan], data: Mapping[str, TaskData]) -> metric_pb2.Metric | None:
    if len(plans) < 2 or not all(any(map(specs.is_accuracy, plan.metrics)) for plan in plans):
        return None
    return pooled_accuracy(plans, data)


def grouped(plans: Sequence[job_pb2.TaskPlan]) -> dict[str, list[job_pb2.TaskPlan]]:
    """Tasks that count once together."""
    groups: dict[str, list[job_pb2.TaskPlan]] = defaultdict(list)
    for plan in plans:
        groups[plan.score_group or plan.task].append(plan)
    return groups


def _joined(titles: Sequence[str]) -> str:
    """ "MNLI matched and mismatched": words that all begin with are said once."""
    words = [title.split() for title in titles]
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))))
    return _listed([titles[0], *(" ".join(title[shared:]) for title in words[1:])])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
