"""What runs score on the items in common, and the order that follows.

A score is as sealed where the common items are all of a run's own, else it is computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from services.results.comparison.common_items import Common
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.paired.pairs.difference import Pair
from services.results.scores import aggregation, job_result, suite_score, task_counts
from services.results.scores.suite_score import SCORE
from services.results.storage.database import Connection
from services.words import weighting
from touchstone.v1 import job_pb2, metric_pb2

_RESAMPLES = 2_000
"""Behind intervals that are computed for one answer; those of whole runs come from their seals."""

Averages = Mapping[str, metric_pb2.Metric]


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
    counts = task_counts.read_counts(connection, job)
    data = task_counts.read_data(connection, job, counts, ended=True)
    measured = {plan.task: aggregation.measure(data[plan.task], plan.metrics, _RESAMPLES) for plan in plans}
    averages = suite_score.averages_by_metric(plans, measured)
    majority = task_counts.read_majority_shares(connection, job)
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


def order(runs: Sequence[Run], averages: Sequence[Averages], metric: str) -> list[int]:
    """Places of the runs, best first by the metric: models, then baselines, then runs that do not rank."""

    def key(place: int) -> tuple[bool, bool, float, str, str]:
        run = runs[place]
        value = value_of(averages[place], metric)
        return bool(run.not_ranked_reason), run.job.baseline, -value, run.configuration, run.job_id

    return sorted(range(len(runs)), key=key)


def pairs(ordered: Sequence[int], averages: Sequence[Averages], metric: str) -> list[Pair]:
    """Every pair, the better run first; of equals the one that stands first."""
    return [
        (a, b) if value_of(averages[a], metric) >= value_of(averages[b], metric) else (b, a)
        for a, b in combinations(ordered, 2)
    ]


def value_of(averages: Averages, metric: str) -> float:
    """Lowest where there is none."""
    found = averages.get(metric)
    return found.mean if found is not None and found.HasField("mean") else float("-inf")
