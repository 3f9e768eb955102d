"""How much compared runs vary by themselves, from other runs of their configurations on the same items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.results.comparison import asked_again
from services.results.comparison.asked_again import Scores
from services.results.comparison.common_items import Common
from services.results.comparison.selection import comparability, runs
from services.results.comparison.selection.comparability import Comparability
from services.results.comparison.selection.runs import Run
from services.results.comparison.selection.subjects import Chosen
from services.results.scores import metric_kinds
from services.results.statistics import reasking
from services.results.statistics.reasking import Flips, Shift
from services.results.storage.database import Connection, query
from services.results.visibility import Visibility
from touchstone.v1 import job_pb2

_MOST = 4
"""Other runs of a configuration that are read, the newest ones."""
_MOST_ROWS = 60_000
"""Answers of other runs that are read beyond one run for each compared one."""


@dataclass(frozen=True, slots=True)
class Again:
    """Of one compared run: `runs` have asked the same, itself among them. `flips` and `floor` are those of all its
    items; `shifts` are by task, "" for the suite's score."""

    runs: int
    flips: Flips
    floor: float
    shifts: Mapping[str, Shift]


def read(
    connection: Connection, chosen: Chosen, compared: Comparability, common: Common, visible: Visibility
) -> list[Again | None]:
    """By run; None where its configuration has no other run on these items, and where the compared items are only a
    part of what it ran."""
    found: list[Again | None] = [None] * len(compared.runs)
    able = [place for place, run in enumerate(compared.runs) if not asked_again.takes(run) and run.configuration]
    if not (common.whole and compared.tasks and able):
        return found
    others = newest(connection, chosen.suite, [compared.runs[place] for place in able], visible)
    for place in able:
        run = compared.runs[place]
        alike = [
            other
            for other in others[run.configuration, run.job.item_set]
            if other.job_id != run.job_id and asks_like(run, other, compared.tasks)
        ]
        if alike:
            plans = [compared.plans[task][place] for task in compared.tasks]
            members = [run, *alike]
            found[place] = _again(asked_again.read(connection, members, plans, compared.weighting), plans, len(members))
    return found


def is_covered(plans: Sequence[job_pb2.TaskPlan], metric: str = "") -> bool:
    """Whether the mean over these tasks of a metric, or of their scores, is the mean of the scores of items that are
    read."""
    for plan in plans:
        named = [spec for spec in plan.metrics if spec.metric == metric]
        counted = named if metric else metric_kinds.counts(plan.metrics)
        if len(counted) != 1 or counted[0] != metric_kinds.of_single_items(plan):
            return False
    return bool(plans)


def newest(
    connection: Connection, suite: str, able: Sequence[Run], visible: Visibility
) -> Mapping[tuple[str, str], Sequence[Run]]:
    """The newest runs of these runs' configurations, without those that took answers, by configuration and item set."""
    items = sum(plan.items for run in able for plan in run.job.plan)
    rows = connection.execute(
        query("comparison/further_runs"),
        {
            "suite": suite,
            "mode": int(able[0].mode),
            "configurations": sorted({run.configuration for run in able}),
            "item_sets": sorted({run.job.item_set for run in able}),
            # The compared run may be among them.
            "most": 1 + min(_MOST, max(1, _MOST_ROWS // max(items, 1))),
            **visible.parameters,
        },
    ).fetchall()
    loaded = {run.job_id: run for run in runs.load(connection, {job_id: job_id for _, _, job_id in rows})}
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for configuration, item_set, job_id in rows:
        if not asked_again.takes(loaded[job_id]):
            found[configuration, item_set].append(loaded[job_id])
    return found


def asks_like(run: Run, other: Run, tasks: Sequence[str]) -> bool:
    """Whether two runs are comparable on all of these tasks."""
    return all(task in other.plans and not comparability.difference_of_task(run, other, task) for task in tasks)


def _again(scores: Scores, plans: Sequence[job_pb2.TaskPlan], count: int) -> Again | None:
    """None if the items of another run are not all there."""
    if not scores.tasks or any(task.items < task.of_first for task in scores.tasks):
        return None
    serving = list(scores.scores)
    flips, floor = reasking.flips_of_reasking([serving], scores.clusters), reasking.floor([serving], scores.weights)
    whole = reasking.shift(serving, scores.weights)
    if flips is None or floor is None or whole is None:
        return None
    shifts = {}
    for task in scores.tasks:
        own = reasking.shift(list(task.scores), task.weights)
        if own is not None:
            shifts[task.plan.task] = own
    if len(scores.tasks) == len([plan for plan in plans if not plan.beside]):
        shifts[""] = whole
    return Again(count, flips, floor, shifts)
