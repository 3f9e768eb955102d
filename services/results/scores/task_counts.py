"""What a job's metrics are computed from, counted in SQL."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import fsum
from typing import Any

import numpy as np

from services.results.scores import metric_kinds
from services.results.scores.aggregation import Pairs, TaskData
from services.results.scores.influence import ClusterCells
from services.results.scores.means import Scores
from services.results.statistics.metric_values import Cell
from services.results.storage.database import Connection, query
from services.results.storage.item_rows import ERROR
from services.words.enums import METRIC_RULES, OUTCOMES
from services.words.scorers import OF_FIELD
from touchstone.v1 import job_pb2, metric_pb2

_Kind = tuple[str, str | None, bool]
_MOST_FIELDS = 200
_DIGITS = 9
"""Decimals of a sum of shares: beyond them it differs by the order of addition."""


@dataclass(slots=True)
class Counts:
    """Answers of one task, or of several added up, with their tokens and cost."""

    outcomes: Counter[int] = field(default_factory=Counter)
    scored: Counter[int] = field(default_factory=Counter)
    errors_without_reference: int = 0
    correct: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_untold: int = 0
    output_untold: int = 0
    reasoning_tokens: int = 0
    reused: int = 0
    costs: list[float] = field(default_factory=list)
    unpriced: int = 0
    grouped: bool = False
    first_gain: float = 0.0
    marked_would_read: int = 0
    lenient_would_read: int = 0

    @property
    def cost_usd(self) -> float:
        return fsum(self.costs)

    @property
    def stored(self) -> int:
        return self.outcomes.total()

    @property
    def errors(self) -> int:
        return self.outcomes[ERROR]

    @property
    def unscored(self) -> int:
        """Final answers to rows without a reference."""
        return self.stored - self.errors - self.scored.total()

    @property
    def never_scored(self) -> int:
        """The same, including answers whose calls failed."""
        return self.unscored + (self.errors_without_reference if self.unscored else 0)

    def add(self, other: Counts) -> None:
        self.outcomes += other.outcomes
        self.scored += other.scored
        self.errors_without_reference += other.errors_without_reference
        self.correct += other.correct
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.input_untold += other.input_untold
        self.output_untold += other.output_untold
        self.reasoning_tokens += other.reasoning_tokens
        self.reused += other.reused
        self.costs = [*self.costs, *other.costs]
        self.unpriced += other.unpriced
        self.grouped |= other.grouped
        self.first_gain += other.first_gain
        self.marked_would_read += other.marked_would_read
        self.lenient_would_read += other.lenient_would_read

    def message(self) -> metric_pb2.OutcomeCounts:
        return _message(self.outcomes)

    def scored_message(self) -> metric_pb2.OutcomeCounts:
        """Of the answers that metrics are computed from."""
        return _message(self.scored)


def _message(outcomes: Mapping[int, int]) -> metric_pb2.OutcomeCounts:
    return metric_pb2.OutcomeCounts(**{OUTCOMES.of(o): count for o, count in outcomes.items()})


def repeats_of(plan: job_pb2.TaskPlan) -> int:
    return max(1, plan.repeats)


def planned_answers(plan: job_pb2.TaskPlan) -> int:
    return plan.items * repeats_of(plan)


def read_counts(connection: Connection, job: job_pb2.Job) -> dict[str, Counts]:
    """By task, including tasks without stored items."""
    counts: dict[str, Counts] = defaultdict(Counts)
    for row in connection.execute(query("scores/task_counts"), {"job_id": job.job_id}).fetchall():
        task, outcome, items, scored, bare, correct, *tokens, reused, cost, unpriced, grouped, gain, marked, lenient = (
            row
        )
        used = (correct, *tokens, reused, [cost or 0.0], unpriced, grouped, gain or 0.0, marked, lenient)
        counts[task].add(Counts(Counter({outcome: items}), Counter({outcome: scored}), bare, *used))
    return counts


def read_data(
    connection: Connection, job: job_pb2.Job, counts: Mapping[str, Counts], ended: bool
) -> dict[str, TaskData]:
    """By task. Answers count as lost once the job has `ended`. The metrics must have passed `specs.check`."""
    clustered = {p.task for p in job.plan if counts[p.task].grouped or repeats_of(p) > 1}
    by_cluster = clustered | {p.task for p in job.plan if _averages_means(p)}
    cells = _read_cells(connection, job, by_cluster)
    members = read_members(connection, job, by_cluster)
    scores = read_scores(connection, job, by_cluster)
    data = {}
    for plan in job.plan:
        count = counts[plan.task]
        table, member = members.get(plan.task, (cells[plan.task], None))
        data[plan.task] = TaskData(
            task=plan.task,
            cells=table,
            members=member,
            scores=scores[plan.task],
            pairs=_read_pairs(connection, job.job_id, plan)
            if any(map(metric_kinds.is_correlation, plan.metrics))
            else None,
            clustered=plan.task in clustered,
            planned=plan.items - count.never_scored // repeats_of(plan),
            repeats=repeats_of(plan),
            lost=max(0, planned_answers(plan) - count.never_scored - count.scored.total()) if ended else 0,
        )
    return data


def read_majority_shares(connection: Connection, job: job_pb2.Job) -> dict[str, float]:
    """Share of the most frequent reference, by task; not for correlation tasks."""
    tasks = [p.task for p in job.plan if not all(map(metric_kinds.is_correlation, p.metrics))]
    found = connection.execute(query("scores/majority_shares"), {"job_id": job.job_id, "tasks": tasks}).fetchall()
    return {task: float(share) for task, share in found}


def _averages_means(plan: job_pb2.TaskPlan) -> bool:
    """Whether the task's score averages a mean with other metrics: then they must be drawn together."""
    counted = metric_kinds.counts(plan.metrics)
    return len(counted) > 1 and any(spec.rule for spec in counted)


def _read_cells(connection: Connection, job: job_pb2.Job, but: set[str]) -> dict[str, list[Cell]]:
    cells: dict[str, list[Cell]] = defaultdict(list)
    detailed = [p.task for p in job.plan if any(map(metric_kinds.is_confusion, p.metrics)) and p.task not in but]
    accuracy = [p.task for p in job.plan if any(map(metric_kinds.is_accuracy, p.metrics)) and p.task not in but]
    if detailed or accuracy:
        where = {"job_id": job.job_id, "tasks": sorted({*detailed, *accuracy}), "detailed": detailed}
        for task, *cell in connection.execute(query("scores/cells"), where).fetchall():
            cells[task].append(Cell(*cell))
    return cells


def read_members(
    connection: Connection, job: job_pb2.Job, by_cluster: set[str]
) -> dict[str, tuple[list[Cell], ClusterCells]]:
    """Cells of the tasks in `by_cluster`, and the clusters that they consist of."""
    tasks = [p.task for p in job.plan if any(map(metric_kinds.is_confusion, p.metrics)) and p.task in by_cluster]
    if not tasks:
        return {}
    found: dict[str, dict[_Kind, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(query("scores/cluster_cells"), {"job_id": job.job_id, "tasks": tasks}).fetchall():
        task, cluster, reference, prediction, correct, share = row
        found[task][reference, prediction, correct].append((cluster, share))
    return {task: _members(kinds) for task, kinds in found.items()}


def _members(kinds: Mapping[_Kind, list[tuple[int, float]]]) -> tuple[list[Cell], ClusterCells]:
    cells = [Cell(*kind, sum(share for _, share in parts)) for kind, parts in kinds.items()]
    clusters, shares = zip(*(part for parts in kinds.values() for part in parts), strict=True)
    places = np.repeat(np.arange(len(kinds)), [len(parts) for parts in kinds.values()])
    return cells, ClusterCells(np.array(clusters, dtype=np.int64), places, np.array(shares, dtype=float))


def read_scores(connection: Connection, job: job_pb2.Job, by_cluster: set[str]) -> dict[str, dict[str, Scores]]:
    """By task and metric: metrics with a rule, and the accuracy of the tasks in `by_cluster`, with separate clusters.

    Metrics of one kind are read for all tasks at once.
    """
    wanted: dict[tuple[int, str, str], list[tuple[str, str]]] = defaultdict(list)
    for plan in job.plan:
        for spec in plan.metrics:
            if spec.rule or (metric_kinds.is_accuracy(spec) and plan.task in by_cluster):
                wanted[spec.rule, spec.statistic, spec.over].append((plan.task, spec.metric))
    scores: dict[str, dict[str, Scores]] = defaultdict(dict)
    for (rule, statistic, over), users in wanted.items():
        units = query(f"scores/units_{METRIC_RULES.of(rule, 'mean')}")
        text = f"{query('scores/answers')}, units AS ({units}) {query('scores/scores')}"
        where = {
            "job_id": job.job_id,
            "tasks": sorted({task for task, _ in users}),
            "by_cluster": sorted(by_cluster),
            "statistic": statistic,
            "statistic_path": _path(statistic),
            "over_path": _path(over),
        }
        found = scores_by_task(connection.execute(text, where).fetchnumpy())
        for task, metric in users:
            scores[task][metric] = found.get(task, Scores())
    return scores


def _path(statistic: str) -> str:
    """SQL for a statistic without its own column, within the JSON. A path needs a name, used or not."""
    return f'$."{statistic or "none"}"'


def scores_by_task(columns: Mapping[str, Any]) -> dict[str, Scores]:
    tasks = columns["task"]
    starts = [0, *(np.flatnonzero(tasks[1:] != tasks[:-1]) + 1), len(tasks)] if len(tasks) else []
    return {
        str(tasks[start]): _scores({name: values[start:stop] for name, values in columns.items()})
        for start, stop in pairwise(starts)
    }


def _scores(column: Mapping[str, Any]) -> Scores:
    """Of one task: one row, or one per cluster."""
    sums = Scores(
        n=int(column["n"].sum()),
        total=float(column["total"].sum()),
        low=float(column["low"].sum()),
        high=float(column["high"].sum()),
        least=float(column["least"].min()),
        most=float(column["most"].max()),
        variance=float(np.ma.filled(column["variance"], 0.0)[0]),
        binary=bool(column["is_binary"].all()),
        told_n=int(column["told_n"].sum()),
        told=float(column["told"].sum()),
    )
    if np.ma.getmaskarray(column["cluster"])[0]:
        return sums
    totals = np.asarray(column["total"], dtype=float)
    return replace(
        sums,
        # Where clusters hold several units the variance over units is of no use.
        variance=float(np.var(totals, ddof=1)) if len(totals) > 1 else 0.0,
        clusters=np.asarray(column["cluster"], dtype=np.int64),
        sizes=np.asarray(column["n"], dtype=float),
        sums=totals,
        lows=np.asarray(column["low"], dtype=float),
        highs=np.asarray(column["high"], dtype=float),
    )


def _read_pairs(connection: Connection, job_id: str, plan: job_pb2.TaskPlan) -> Pairs | None:
    found = connection.execute(
        query("scores/pairs"), {"job_id": job_id, "task": plan.task, "at_best": False}
    ).fetchnumpy()
    if len(found["value"]) == 0:
        return None
    return Pairs(
        np.asarray(found["value"], dtype=float),
        np.asarray(found["target"], dtype=float),
        np.asarray(found["answered"], dtype=bool),
        clusters=np.unique(np.asarray(found["cluster"]), return_inverse=True)[1],
        items=len(np.unique(np.asarray(found["item"]))),
    )


def read_fields(connection: Connection, job: job_pb2.Job) -> list[metric_pb2.FieldResult]:
    """How answers to rows of a dataset were right by field: those that most answers have, by task and name."""
    if not job.spec.HasField("dataset"):
        return []
    rows = connection.execute(
        query("scores/fields"), {"job_id": job.job_id, "prefix": OF_FIELD, "most": _MOST_FIELDS}
    ).fetchall()
    return [
        metric_pb2.FieldResult(task=task, field=field, answers=answers, right=round(right, _DIGITS))
        for task, field, answers, right in sorted(rows)
    ]
