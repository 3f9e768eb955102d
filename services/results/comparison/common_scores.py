"""What runs score on the items in common: as sealed where they are all their own, else computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.results import aggregation, job_result, suite_score, task_reads, weighting
from services.results.comparison.common_items import Common
from services.results.comparison.comparability import Comparability
from services.results.comparison.runs import Run
from services.results.database import Connection
from services.results.suite_score import SCORE
from touchstone.v1 import job_pb2, metric_pb2

_RESAMPLES = 2_000
"""Behind intervals that are computed for one answer; those of whole runs come from their seals."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run's averages by metric, "score" first, and its tasks."""

    averages: Mapping[str, metric_pb2.Metric]
    tasks: Sequence[metric_pb2.TaskResult]


def read(connection: Connection, compared: Comparability, common: Common) -> list[Scored]:
    """One per run. What was sealed stands wherever the common items are all of a run's own, so that one score has one
    interval."""
    return [
        Scored(
            weighting.taken_by(run.averages.values(), compared.weighting),
            [run.measured[task] for task in compared.tasks],
        )
        if _has_average(run, compared)
        and all(task in compared.tasks and _is_whole(run, common, place, task) for task in run.plans)
        else _computed(connection, compared, common, place)
        for place, run in enumerate(compared.runs)
    ]


def _has_average(run: Run, compared: Comparability) -> bool:
    """Whether what was sealed tells the score by the rule of the comparison."""
    several = weighting.of_plans(run.job.plan)
    return not several or weighting.average_name(SCORE, compared.weighting) in run.averages


def _is_whole(run: Run, common: Common, place: int, task: str) -> bool:
    return not run.lost(task) and common.items[task][place] == run.plans[task].items


def _computed(connection: Connection, compared: Comparability, common: Common, place: int) -> Scored:
    run = compared.runs[place]
    plans = []
    for task in compared.tasks:
        plan = job_pb2.TaskPlan()
        plan.CopyFrom(run.plans[task])
        plan.items = common.items[task][place] + _lost_items(compared, common, place, task)
        plans.append(plan)
    job = job_pb2.Job(job_id=run.job_id, plan=plans)
    counts = task_reads.read_counts(connection, job)
    data = task_reads.read_data(connection, job, counts, ended=True)
    measured = {plan.task: aggregation.measure(data[plan.task], plan.metrics, _RESAMPLES) for plan in plans}
    averages = suite_score.averages_by_metric(plans, measured)
    majority = task_reads.read_majority_shares(connection, job)
    return Scored(
        weighting.taken_by((metric for metric, _ in averages), compared.weighting),
        [
            run.measured[p.task]
            if _is_whole(run, common, place, p.task)
            else job_result.task_result(p, measured[p.task], counts[p.task], majority.get(p.task))
            for p in plans
        ],
    )


def _lost_items(compared: Comparability, common: Common, place: int, task: str) -> int:
    """Items of the common set to which the run has no answer: bounds count them as wrong, and as right."""
    numbers = compared.cohorts[task]
    item_sets = {
        other.plans[task].item_set for other, n in zip(compared.runs, numbers, strict=True) if n == numbers[place]
    }
    return 0 if len(item_sets) > 1 else common.lost[task][place]
