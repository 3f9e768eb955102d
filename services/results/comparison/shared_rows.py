"""The rows of all compared runs: which tasks and metrics are read, once for every set of comparable runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from services.results.comparison import joint_reads
from services.results.comparison.common_items import Common
from services.results.comparison.selection.comparability import Comparability
from services.results.paired.pairs.difference import Difference, Pair
from services.results.paired.pairs.rows import Correlation, TaskRows
from services.results.scores import metric_kinds
from services.results.scores.ranking import NO_REFERENCE
from services.results.scores.suite_score import SCORE, averaged_tasks, grouped
from services.results.storage.database import Connection
from touchstone.v1 import job_pb2
from touchstone.v1.suite_pb2 import MetricSpec

NOTHING_SHARED = "they have no items in common"


class SharedRows:
    """Rows by task and cohort, for the requested metrics. Runs are identified by index."""

    def __init__(self, connection: Connection, compared: Comparability, common: Common, metrics: Sequence[str]) -> None:
        self.compared = compared
        self._common = common
        self._metrics = metrics
        self._rows: dict[tuple[str, int], TaskRows] = {}
        together: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for task in compared.tasks:
            for members in _members(compared.cohorts[task]).values():
                if len(members) > 1:
                    together[tuple(members)].append(task)
        for places, tasks in together.items():
            wanted = {task: self._wanted(compared.plans[task][places[0]]) for task in tasks}
            found = joint_reads.read(connection, compared.runs, places, {t: w for t, w in wanted.items() if w})
            self._rows |= {(task, compared.cohorts[task][places[0]]): rows for task, rows in found.items()}

    def of_task(self, task: str, place: int) -> TaskRows | None:
        """The rows of the runs that are comparable with this one; None if they have no item in common."""
        return self._rows.get((task, self.compared.cohorts[task][place]))

    def why_empty(self, task: str, place: int) -> str:
        """Why a task has no rows."""
        return NO_REFERENCE if self._common.items[task][place] else NOTHING_SHARED

    def n_of(self, task: str, metric: str, place: int, difference: Difference) -> int:
        """What a difference is taken over: items, although correlations are tested by passage."""
        rows = self.of_task(task, place)
        if rows is not None and isinstance(rows.metrics[metric], Correlation):
            return self._common.items[task][place]
        return difference.n

    def of_suite(self, place: int, metric: str) -> list[list[TaskRows]]:
        """The rows of the tasks that a metric is averaged over, grouped as they count."""
        plans = grouped(self.averaged(place, metric)).values()
        found = [[self.of_task(plan.task, place) for plan in members] for members in plans]
        return [[rows for rows in group if rows is not None] for group in found]

    def averaged(self, place: int, metric: str) -> list[job_pb2.TaskPlan]:
        """The tasks that a metric is averaged over."""
        return averaged_tasks([self.compared.plans[task][place] for task in self.compared.tasks], metric_name(metric))

    def task_metrics(self, plan: job_pb2.TaskPlan) -> list[str]:
        """The metrics to compare a task by: its primary metric if the score is requested, and those requested by
        name."""
        primary = [spec.metric for spec in plan.metrics[:1] if SCORE in self._metrics]
        named = [spec.metric for spec in plan.metrics if spec.metric in self._metrics]
        return list(dict.fromkeys([*primary, *named]))

    def reason(self, pair: Pair, metric: str) -> str:
        """Why two runs are not comparable by a metric of the suite; "" if they are."""
        tasks = [plan.task for plan in self.averaged(pair[0], metric)]
        if not tasks:
            return "they have no tasks in common" + ("" if metric == SCORE else " that has this metric")
        if why := self.compared.reason(*pair, tasks):
            return why
        empty = [task for task in tasks if self.of_task(task, pair[0]) is None]
        if empty:
            titles = ", ".join(map(self.compared.title, empty))
            unscored = all(self.why_empty(task, pair[0]) == NO_REFERENCE for task in empty)
            return NO_REFERENCE if unscored else f"{NOTHING_SHARED} in {titles}"
        different = [self.compared.title(task) for task in tasks if metric == SCORE and self._differs(task, pair)]
        return f"the score of {', '.join(different)} consists of different metrics" if different else ""

    def _differs(self, task: str, pair: Pair) -> bool:
        """Whether one of the runs counts a metric in its score that not all define in the same way."""
        shared = self.compared.plans[task][pair[0]].metrics
        return any(
            spec not in shared
            for place in pair
            for spec in metric_kinds.counts(self.compared.runs[place].plans[task].metrics)
        )

    def _wanted(self, plan: job_pb2.TaskPlan) -> list[MetricSpec]:
        """The metrics of a task's score, if that is requested, and those that the task is compared by."""
        names = set(self.task_metrics(plan))
        if SCORE in self._metrics:
            names |= {spec.metric for spec in metric_kinds.counts(plan.metrics)}
        return [spec for spec in plan.metrics if spec.metric in names]


def metric_name(metric: str) -> str:
    """A metric by its name in averages: the score is ""."""
    return "" if metric == SCORE else metric


def _members(cohorts: Sequence[int]) -> Mapping[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for place, number in enumerate(cohorts):
        members[number].append(place)
    return members
