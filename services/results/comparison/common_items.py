"""The items that compared runs have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.scores import task_counts
from services.results.storage.database import Connection, query
from touchstone.v1.item_result_pb2 import OUTCOME_INFRASTRUCTURE_ERROR


@dataclass(frozen=True, slots=True)
class Common:
    """`items[task][run]` counts the items that a run shares with its cohort, `lost[task][run]` its own ones that lack a
    final answer; `whole` tells that all its own are shared, so that what was computed when the runs were sealed stands.
    """

    items: Mapping[str, Sequence[int]]
    lost: Mapping[str, Sequence[int]]
    whole: bool


def choose(connection: Connection, compared: Comparability) -> Common:
    """From here on this connection's `items` are the common ones alone; see queries/comparison/common_items.sql."""
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
    found = connection.execute("SELECT task, job_id, count(DISTINCT item) FROM items GROUP BY ALL").fetchall()
    counts = {(task, job_id): count for task, job_id, count in found}
    items = {task: [counts.get((task, run.job_id), 0) for run in runs] for task in compared.tasks}
    return Common(items, lost, whole=False)


def cohorts_of(compared: Comparability, task: str) -> list[list[Run]]:
    """The sets of runs that compare with each other on a task."""
    return list(_numbered(compared, task).values())


def _lost(connection: Connection, run: Run, task: str) -> int:
    """Items: of several answers to one it may lack some."""
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
