"""The results of compared runs on their common items, counted in SQL: the rows that differences are computed from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from services.results.comparison.selection.runs import Run, Unanswered
from services.results.paired.pairs.rows import (
    ClusteredConfusion,
    Column,
    Confusion,
    Correlation,
    Means,
    Metric,
    TaskRows,
    binary_rows,
)
from services.results.scores import metric_kinds, task_counts
from services.results.scores.means import Scores
from services.results.statistics import metric_values
from services.results.statistics.metric_values import Ints
from services.results.storage.database import Connection, query
from touchstone.v1 import job_pb2
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED
from touchstone.v1.suite_pb2 import MetricSpec

Wanted = Mapping[str, Sequence[MetricSpec]]
"""The metrics to read of each task."""
_Metrics = dict[str, Metric]


def read(connection: Connection, runs: Sequence[Run], members: Sequence[int], wanted: Wanted) -> dict[str, TaskRows]:
    """By task, without tasks that have no common item. Models have the indices of the runs; only `members` are read,
    which must be comparable on each of the tasks."""
    clustered = {task for task in wanted if any(_is_clustered(runs[place], task) for place in members)}
    counted = {t for t, found in wanted.items() if t not in clustered and not any(map(_needs_items, found))}
    found = _read_patterns(connection, runs, members, wanted, clustered, counted)
    by_row = {task: asked for task, asked in wanted.items() if task not in counted}
    found |= _read_by_row(connection, runs, members, by_row, clustered)
    return found


def _is_clustered(run: Run, task: str) -> bool:
    """Whether items share passages, or have several answers; clusters of one item each do not count."""
    several = task_counts.repeats_of(run.plans[task]) > 1
    return several or any(metric.method == "clustered" for metric in run.measured[task].metrics)


def _needs_items(spec: MetricSpec) -> bool:
    return bool(spec.rule) or metric_kinds.is_correlation(spec)


# -- class tasks: items counted by what was right and what was said ---------------------------------------------------


def _read_patterns(
    connection: Connection,
    runs: Sequence[Run],
    members: Sequence[int],
    wanted: Wanted,
    clustered: set[str],
    counted: set[str],
) -> dict[str, TaskRows]:
    found = {}
    for task, columns in _patterns(connection, runs, members, {t: wanted[t] for t in counted}, apart=False).items():
        counts = np.asarray(columns["items"], dtype=float)
        metrics = _class_metrics(columns, wanted[task], members, runs)
        found[task] = TaskRows(task, counts, metrics, beside=_beside(wanted[task]))
    return found


def _patterns(
    connection: Connection, runs: Sequence[Run], members: Sequence[int], wanted: Wanted, *, apart: bool
) -> dict[str, dict[str, Any]]:
    if not wanted:
        return {}
    detailed = [task for task, found in wanted.items() if any(map(metric_kinds.is_confusion, found))]
    # Worst cases follow from the scored values.
    members = [place for place in members if runs[place].unanswered is not Unanswered.WRONG]
    places = [int(place) for place in members] if detailed else []
    said = [
        f", max(CASE WHEN place = {p} THEN CASE WHEN outcome = {OUTCOME_ANSWERED} "
        f"THEN prediction{_else(runs[p])} END END) AS said_{p}"
        for p in places
    ]
    text = query("comparison/patterns").format(said="".join(said), said_names="".join(f", said_{p}" for p in places))
    where = {
        "tasks": sorted(wanted),
        "detailed": detailed,
        "apart": sorted(wanted) if apart else [],
        "jobs": [runs[place].job_id for place in members],
        "places": [int(place) for place in members],
        "at_best": [runs[place].unanswered is Unanswered.RIGHT for place in members],
    }
    return _by_task(connection.execute(text, where).fetchnumpy())


def _else(run: Run) -> str:
    return " ELSE reference" if run.unanswered is Unanswered.RIGHT else ""


def _class_metrics(
    columns: Mapping[str, Any], wanted: Sequence[MetricSpec], members: Sequence[int], runs: Sequence[Run]
) -> _Metrics:
    """Accuracy and the metrics of the confusion matrix."""
    metrics: _Metrics = {}
    as_scored = {run.job_id: p for p, run in enumerate(runs) if run.unanswered is Unanswered.AS_SCORED}
    worst = {p: as_scored[runs[p].job_id] for p in members if runs[p].unanswered is Unanswered.WRONG}
    if any(map(metric_kinds.is_confusion, wanted)):
        read = [place for place in members if place not in worst]
        labels, references, predictions = _labelled(columns, read, len(runs))
        for place, own in worst.items():
            missing = (predictions[:, own] < 0) & (len(labels) == 2)
            predictions[:, place] = np.where(missing, 1 - references, predictions[:, own])
    for spec in wanted:
        if metric_kinds.is_confusion(spec):
            metrics[spec.metric] = Confusion(spec.metric, spec.positive_label, labels, references, predictions)
        elif metric_kinds.is_accuracy(spec):
            masks = np.asarray(columns["right_in"], dtype=np.int64)
            _, right = binary_rows(masks, np.ones_like(masks), len(runs))
            # In scores, an unanswered item is wrong.
            right.sums[:, list(worst)] = right.sums[:, list(worst.values())]
            metrics[spec.metric] = right
    return metrics


def _labelled(columns: Mapping[str, Any], members: Sequence[int], models: int) -> tuple[tuple[str, ...], Ints, Ints]:
    """Labels in order, and references (rows,) and predictions (rows, models) as indices of them; -1 means no answer."""
    said = {place: np.ma.asarray(columns[f"said_{place}"]) for place in members}
    texts = [np.asarray(columns["reference"]), *(column.compressed() for column in said.values())]
    labels = sorted(set().union(*(set(text.tolist()) for text in texts)))
    place_of = {label: place for place, label in enumerate(labels)}
    references = np.array([place_of[text] for text in texts[0]], dtype=np.int64)
    predictions = np.full((len(references), models), -1, dtype=np.int64)
    for place, column in said.items():
        predictions[:, place] = [-1 if text is None else place_of[text] for text in column.tolist()]
    return tuple(labels), references, predictions


# -- other tasks: a row for every item, or for every cluster of items -------------------------------------------------


def _read_by_row(
    connection: Connection, runs: Sequence[Run], members: Sequence[int], wanted: Wanted, clustered: set[str]
) -> dict[str, TaskRows]:
    scores = {place: _scores(connection, runs[place], wanted) for place in members}
    plain = {task: found for task, found in wanted.items() if task not in clustered and any(map(_is_class, found))}
    patterns = _patterns(connection, runs, members, plain, apart=True)
    cells = {place: _cells(connection, runs[place], wanted, clustered) for place in members}
    found = {}
    for task, asked in wanted.items():
        pairs: dict[int, Mapping[str, Any]] = {}
        if any(map(metric_kinds.is_correlation, asked)):
            where = {"task": task}
            pairs = {
                place: connection.execute(
                    query("scores/pairs"),
                    where | {"job_id": run.job_id, "at_best": run.unanswered is Unanswered.RIGHT},
                ).fetchnumpy()
                for place, run in ((place, runs[place]) for place in members)
            }
        of_run = {place: scores[place].get(task, {}) for place in members}
        numbers = _row_numbers(of_run, patterns.get(task), {p: cells[p].get(task) for p in members}, pairs)
        if not len(numbers):
            continue
        metrics: _Metrics = {}
        if task in patterns:
            metrics |= _class_metrics(patterns[task], asked, members, runs)
        for spec in asked:
            if metric_kinds.is_correlation(spec):
                metrics[spec.metric] = _correlation(spec.metric, pairs, numbers, len(runs))
            elif metric_kinds.is_confusion(spec) and task in clustered:
                tables = {place: cells[place][task] for place in members if task in cells[place]}
                metrics[spec.metric] = _clustered_table(spec, tables, numbers, len(runs))
            elif spec.metric not in metrics:
                metrics[spec.metric] = _means({p: of_run[p].get(spec.metric) for p in members}, numbers, len(runs))
        ordered = {spec.metric: metrics[spec.metric] for spec in asked}
        found[task] = TaskRows(task, np.ones(len(numbers)), ordered, task in clustered, _beside(asked))
    return found


def _is_class(spec: MetricSpec) -> bool:
    return metric_kinds.is_confusion(spec) or metric_kinds.is_accuracy(spec)


def _trimmed(run: Run, wanted: Wanted) -> job_pb2.Job:
    """The run's job as if it had only these tasks and metrics."""
    plans = [job_pb2.TaskPlan(task=task, metrics=found) for task, found in wanted.items()]
    return job_pb2.Job(job_id=run.job_id, plan=plans)


def _scores(connection: Connection, run: Run, wanted: Wanted) -> dict[str, dict[str, Scores]]:
    """Means by task and metric, with separate clusters; a single item is its own cluster."""
    found = task_counts.read_scores(connection, _trimmed(run, wanted), set(wanted))
    if run.unanswered is Unanswered.AS_SCORED:
        return found
    end = "highs" if run.unanswered is Unanswered.RIGHT else "lows"
    return {
        task: {metric: replace(scores, sums=getattr(scores, end)) for metric, scores in by_metric.items()}
        for task, by_metric in found.items()
    }


def _cells(connection: Connection, run: Run, wanted: Wanted, clustered: set[str]) -> dict[str, Any]:
    found = task_counts.read_members(connection, _trimmed(run, wanted), clustered & set(wanted))
    if run.unanswered is Unanswered.AS_SCORED:
        return found
    answered = metric_values.answered_right if run.unanswered is Unanswered.RIGHT else metric_values.answered_wrong
    return {task: (answered(cells), members) for task, (cells, members) in found.items()}


def _row_numbers(
    scores: Mapping[int, Mapping[str, Scores]],
    patterns: Mapping[str, Any] | None,
    cells: Mapping[int, Any],
    pairs: Mapping[int, Mapping[str, Any]],
) -> Ints:
    """The clusters or items of the rows, in order."""
    parts = [found.clusters for by_metric in scores.values() for found in by_metric.values()]
    parts += [np.asarray(patterns["item"], dtype=np.int64)] if patterns is not None else []
    parts += [found[1].clusters for found in cells.values() if found is not None]
    parts += [np.asarray(found["cluster"], dtype=np.int64) for found in pairs.values()]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _means(found: Mapping[int, Scores | None], numbers: Ints, models: int) -> Means:
    sums, sizes = np.zeros((len(numbers), models)), np.zeros(len(numbers))
    for place, scores in found.items():
        if scores is not None and len(scores.clusters):
            rows = np.searchsorted(numbers, scores.clusters)
            sums[rows, place] = scores.sums
            sizes[rows] = scores.sizes
    return Means(sums, sizes)


def _clustered_table(spec: MetricSpec, found: Mapping[int, Any], numbers: Ints, models: int) -> ClusteredConfusion:
    kinds = sorted(
        {(cell.reference, cell.prediction) for cells, _ in found.values() for cell in cells},
        key=lambda kind: (kind[0], kind[1] is not None, kind[1] or ""),
    )
    place_of = {kind: place for place, kind in enumerate(kinds)}
    shares = np.zeros((models, len(numbers), len(kinds)))
    for place, (cells, members) in found.items():
        columns = np.array([place_of[cell.reference, cell.prediction] for cell in cells], dtype=np.int64)
        rows = np.searchsorted(numbers, members.clusters)
        np.add.at(shares[place], (rows, columns[members.places]), members.counts)
    return ClusteredConfusion(spec.metric, spec.positive_label, tuple(kinds), shares)


def _correlation(name: str, pairs: Mapping[int, Mapping[str, Any]], numbers: Ints, models: int) -> Correlation:
    nothing = Column(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    columns = [nothing] * models
    for place, found in pairs.items():
        values, targets = (np.asarray(found[side], dtype=float) for side in ("value", "target"))
        columns[place] = Column(values, targets, np.searchsorted(numbers, np.asarray(found["cluster"])))
    return Correlation(name, tuple(columns))


def _beside(asked: Sequence[MetricSpec]) -> frozenset[str]:
    return frozenset(spec.metric for spec in asked if spec.beside)


def _by_task(columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Columns ordered by task, split by task."""
    tasks = columns["task"]
    cuts: dict[str, dict[str, Any]] = defaultdict(dict)
    starts = [0, *(np.flatnonzero(tasks[1:] != tasks[:-1]) + 1), len(tasks)] if len(tasks) else []
    for start, stop in pairwise(starts):
        cuts[str(tasks[start])] = {name: values[start:stop] for name, values in columns.items()}
    return cuts
