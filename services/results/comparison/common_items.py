"""The items that compared runs have in common, what the runs score on them, and the order that follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.paired.pairs.difference import Pair
from services.results.scores import aggregation, job_result, suite_score, task_counts
from services.results.scores.suite_score import SCORE
from services.results.storage.database import Connection, query
from services.words import suites
from touchstone.v1 import job_pb2, metric_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR


@dataclass(frozen=True, slots=True)
class Common:
    """`items[task][run]` counts the items that a run shares with its cohort, `lost[task][run]` its own ones that lack a
    final answer; `whole` says that all of its own are shared, so that the sealed figures apply.
    """

    items: Mapping[str, Sequence[int]]
    lost: Mapping[str, Sequence[int]]
    whole: bool


def choose(connection: Connection, compared: Comparability) -> Common:
    """From here on this connection's `items` are only the common ones, under the name of the table that they come from;
    see queries/comparison/common_items.sql."""
    runs = compared.runs
    lost = {task: [_lost(connection, run, task) for run in runs] for task in compared.tasks}
    if all(_is_whole(members, task) for task in compared.tasks for members in cohorts_of(compared, task)):
        return Common({task: [run.plans[task].items for run in runs] for task in compared.tasks}, lost, whole=True)
    columns: dict[str, list[object]] = {
        name: [] for name in ("tasks", "jobs", "places", "cohorts", "answers", "by_row")
    }
    for task in compared.tasks:
        by_cohort = _numbered(compared, task)
        for place, run in enumerate(runs):
            members = by_cohort[compared.cohorts[task][place]]
            answers = len(members) * task_counts.repeats_of(run.plans[task])
            row = (task, run.job_id, place, compared.cohorts[task][place], answers, _one_revision(members, task))
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    connection.execute(query("comparison/common_items"), columns)
    connection.execute("CREATE OR REPLACE TEMP VIEW items AS FROM temp.common_items")
    found = connection.execute("SELECT task, job_id, count(DISTINCT item) FROM items GROUP BY ALL").fetchall()
    counts = {(task, job_id): count for task, job_id, count in found}
    items = {task: [counts.get((task, run.job_id), 0) for run in runs] for task in compared.tasks}
    return Common(items, lost, whole=False)


def cohorts_of(compared: Comparability, task: str) -> list[list[Run]]:
    """The sets of runs that are comparable with each other on a task."""
    return list(_numbered(compared, task).values())


def _lost(connection: Connection, run: Run, task: str) -> int:
    """Counted in items: of several answers to one it may lack some."""
    answers, repeats = run.lost(task), task_counts.repeats_of(run.plans[task])
    if not answers or repeats == 1:
        return answers
    ((complete,),) = connection.execute(
        "SELECT count(*) FROM (SELECT item FROM items WHERE job_id = $job_id AND task = $task "
        f"AND outcome <> {OUTCOME_INFRASTRUCTURE_ERROR} "
        "GROUP BY item HAVING count(*) = $repeats)",
        {"job_id": run.job_id, "task": task, "repeats": repeats},
    ).fetchall()
    return run.plans[task].items - int(complete)


def _numbered(compared: Comparability, task: str) -> dict[int, list[Run]]:
    members: dict[int, list[Run]] = defaultdict(list)
    for number, run in zip(compared.cohorts[task], compared.runs, strict=True):
        members[number].append(run)
    return members


def _is_whole(members: Sequence[Run], task: str) -> bool:
    item_sets = {run.plans[task].item_set for run in members}
    same = len(members) == 1 or (len(item_sets) == 1 and "" not in item_sets and len(_revisions(members, task)) == 1)
    return same and not any(run.lost(task) for run in members)


def _one_revision(members: Sequence[Run], task: str) -> bool:
    revisions = _revisions(members, task)
    return len(revisions) == 1 and "" not in revisions


def _revisions(members: Sequence[Run], task: str) -> set[str]:
    return {run.plans[task].data.revision for run in members}


_RESAMPLES = 2_000
"""Behind intervals that are computed for one answer; those of whole runs come from their seals."""

Averages = Mapping[str, metric_pb2.Metric]


@dataclass(frozen=True, slots=True)
class Scored:
    """A run's averages by metric, "score" first, and its tasks."""

    averages: Mapping[str, metric_pb2.Metric]
    tasks: Sequence[metric_pb2.TaskResult]


def read(connection: Connection, compared: Comparability, common: Common) -> list[Scored]:
    """One per run. The sealed score is used if the common items are all of a run's own, so that one score has one
    interval."""
    return [
        Scored(
            suites.taken_by(run.averages.values(), compared.weighting),
            [run.measured[task] for task in compared.tasks],
        )
        if _has_average(run, compared)
        and all(task in compared.tasks and _has_all(run, common, place, task) for task in run.plans)
        else _computed(connection, compared, common, place)
        for place, run in enumerate(compared.runs)
    ]


def _has_average(run: Run, compared: Comparability) -> bool:
    """Whether the sealed result has the score by the rule of the comparison."""
    several = suites.of_plans(run.job.plan)
    return (suites.average_name(SCORE, compared.weighting) if several else SCORE) in run.averages


def _has_all(run: Run, common: Common, place: int, task: str) -> bool:
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
        suites.taken_by((metric for metric, _ in averages), compared.weighting),
        [
            run.measured[p.task]
            if _has_all(run, common, place, p.task)
            else job_result.task_result(p, measured[p.task], counts[p.task], majority.get(p.task))
            for p in plans
        ],
    )


def _lost_items(compared: Comparability, common: Common, place: int, task: str) -> int:
    """Common items without an answer of the run: bounds count them as wrong, and as right."""
    numbers = compared.cohorts[task]
    item_sets = {
        other.plans[task].item_set for other, n in zip(compared.runs, numbers, strict=True) if n == numbers[place]
    }
    return 0 if len(item_sets) > 1 else common.lost[task][place]


def order(runs: Sequence[Run], averages: Sequence[Averages], metric: str) -> list[int]:
    """Indices of the runs, best first by the metric: models, then baselines, then runs that do not rank."""

    def key(place: int) -> tuple[bool, bool, float, str, str]:
        run = runs[place]
        value = value_of(averages[place], metric)
        return bool(run.not_ranked_reason), run.job.baseline, -value, run.configuration, run.job_id

    return sorted(range(len(runs)), key=key)


def pairs(ordered: Sequence[int], averages: Sequence[Averages], metric: str) -> list[Pair]:
    """Every pair, the better run first; on a tie, the first one."""
    return [
        (a, b) if value_of(averages[a], metric) >= value_of(averages[b], metric) else (b, a)
        for a, b in combinations(ordered, 2)
    ]


def value_of(averages: Averages, metric: str) -> float:
    """The lowest value if there is none."""
    found = averages.get(metric)
    return found.mean if found is not None and found.HasField("mean") else float("-inf")
