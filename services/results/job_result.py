"""What a job has measured: counts and cells from SQL, metrics from `aggregation`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from services.errors import InvalidRequestError
from services.results import aggregation, statistics
from services.results.aggregation import Measured, Pairs, TaskData
from services.results.database import Connection, query
from services.results.ranking import not_ranked_reason
from services.results.rows import ERROR
from services.results.statistics import Cell, Estimate
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2

_ENDED = (job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED)
_OUTCOME_FIELDS = {
    number: name.removeprefix("OUTCOME_").lower() for name, number in item_result_pb2.Outcome.items() if number
}


@dataclass(slots=True)
class _Counts:
    """Of one task, or of several added up."""

    outcomes: Counter[int] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def stored(self) -> int:
        return self.outcomes.total()

    @property
    def errors(self) -> int:
        return self.outcomes[ERROR]

    def message(self) -> metric_pb2.OutcomeCounts:
        return metric_pb2.OutcomeCounts(**{_OUTCOME_FIELDS[o]: count for o, count in self.outcomes.items()})


@dataclass(frozen=True, slots=True)
class Computed:
    """A job's result with what sealing needs. `averages` are metrics over tasks, as (metric, number of tasks)."""

    result: metric_pb2.JobResult
    averages: Sequence[tuple[metric_pb2.Metric, int]]
    missing: int
    errors: int


def compute(connection: Connection, job: job_pb2.Job, *, seal: bool) -> Computed:
    """Everything measured so far. `seal`: for good, with full resampling; a running job's intervals take fewer.

    Raises InvalidRequestError when the plan asks for a metric that does not exist.
    """
    ended = seal or job.state in _ENDED
    counts = _counts(connection, job)
    missing = sum(max(0, plan.items - counts[plan.task].stored) for plan in job.plan)
    errors = sum(counts[plan.task].errors for plan in job.plan)
    data = _task_data(connection, job, counts, ended)
    resamples = aggregation.RESAMPLES if seal else aggregation.LIVE_RESAMPLES
    measured: dict[str, Measured] = {}
    for plan in job.plan:
        try:
            metrics = {spec.metric: spec.positive_label for spec in plan.metrics}
            measured[plan.task] = aggregation.measure(data[plan.task], metrics, resamples)
        except ValueError as error:
            raise InvalidRequestError(f"Task {plan.task}: {error}.", "job.plan") from error
    total = _Counts()
    for plan in job.plan:
        total.outcomes += counts[plan.task].outcomes
        total.input_tokens += counts[plan.task].input_tokens
        total.output_tokens += counts[plan.task].output_tokens
    result = metric_pb2.JobResult(
        job_id=job.job_id,
        tasks=[_task_result(p, measured[p.task], data[p.task], counts[p.task]) for p in job.plan],
        outcomes=total.message(),
        sealed=seal,
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
    )
    if ended:
        result.not_ranked_reason = not_ranked_reason(
            job.state, missing + errors, [task.outcomes for task in result.tasks]
        )
    else:
        result.not_ranked_reason = "the job is not finished"
    if total.stored > total.errors:
        result.latency_p50_ms, result.latency_p95_ms = _latency(connection, job.job_id)
    # A job that stopped half-way keeps its tasks' metrics, but they are no score of the suite.
    averages = [] if ended and not seal and missing + errors else _averages(job, measured)
    for metric, _ in averages:
        if metric.metric == "score":
            result.suite_score.CopyFrom(metric)
    so_far = _accuracy_so_far(job, data)
    if so_far is not None:
        result.accuracy_so_far.CopyFrom(so_far)
    return Computed(result, averages, missing, errors)


def metric_message(name: str, estimate: Estimate) -> metric_pb2.Metric:
    metric = metric_pb2.Metric(
        metric=name,
        mean=estimate.value,
        stderr=estimate.stderr,
        ci95_low=estimate.low,
        ci95_high=estimate.high,
        n=estimate.n,
        undefined_reason=estimate.undefined_reason,
        method=estimate.method,
    )
    if estimate.bounds is not None and (estimate.value is not None or estimate.bounds[0] < estimate.bounds[1]):
        metric.bound_low, metric.bound_high = estimate.bounds
    return metric


def _counts(connection: Connection, job: job_pb2.Job) -> dict[str, _Counts]:
    counts: dict[str, _Counts] = defaultdict(_Counts)
    found = connection.execute(query("task_counts"), {"job_id": job.job_id}).fetchall()
    for task, outcome, items, input_tokens, output_tokens in found:
        counts[task].outcomes[outcome] += items
        counts[task].input_tokens += int(input_tokens)
        counts[task].output_tokens += int(output_tokens)
    return counts


def _task_data(
    connection: Connection, job: job_pb2.Job, counts: dict[str, _Counts], ended: bool
) -> dict[str, TaskData]:
    cells: dict[str, list[Cell]] = defaultdict(list)
    class_tasks = [p.task for p in job.plan if any(m.metric not in statistics.CORRELATIONS for m in p.metrics)]
    for task, *cell in connection.execute(query("cells"), {"job_id": job.job_id, "tasks": class_tasks}).fetchall():
        cells[task].append(Cell(*cell))
    data = {}
    for plan in job.plan:
        count = counts[plan.task]
        lost = max(0, plan.items - (count.stored - count.errors)) if ended else 0
        correlated = any(spec.metric in statistics.CORRELATIONS for spec in plan.metrics)
        pairs = _pairs(connection, job.job_id, plan.task) if correlated else None
        data[plan.task] = TaskData(plan.task, cells[plan.task], pairs, lost)
    return data


def _pairs(connection: Connection, job_id: str, task: str) -> Pairs | None:
    found = connection.execute(query("pairs"), {"job_id": job_id, "task": task}).fetchnumpy()
    if len(found["value"]) == 0:
        return None
    return Pairs(
        np.asarray(found["value"], dtype=float),
        np.asarray(found["target"], dtype=float),
        np.asarray(found["answered"], dtype=bool),
    )


def _task_result(plan: job_pb2.TaskPlan, measured: Measured, data: TaskData, counts: _Counts) -> metric_pb2.TaskResult:
    result = metric_pb2.TaskResult(
        task=plan.task,
        title=plan.title,
        metrics=[metric_message(name, estimate) for name, estimate in measured.estimates.items()],
        items=counts.stored,
        items_planned=plan.items,
        outcomes=counts.message(),
        correct=sum(cell.count for cell in data.cells if cell.correct),
        score_group=plan.score_group,
    )
    references: Counter[str] = Counter()
    for cell in data.cells:
        references[cell.reference] += cell.count
    if references:
        result.majority_share = max(references.values()) / references.total()
    return result


def _averages(job: job_pb2.Job, measured: dict[str, Measured]) -> list[tuple[metric_pb2.Metric, int]]:
    """The suite's score and the mean of each metric over the tasks that have it."""
    groups: dict[str, list[Measured]] = defaultdict(list)
    for plan in job.plan:
        groups[plan.score_group or plan.task].append(measured[plan.task])
    names = list(dict.fromkeys(spec.metric for plan in job.plan for spec in plan.metrics))
    averages = []
    for metric in ("", *names):
        estimate = aggregation.average(list(groups.values()), metric)
        if estimate is not None:
            tasks = sum(any(not metric or metric in m.estimates for m in group) for group in groups.values())
            averages.append((metric_message(metric or "score", estimate), tasks))
    return averages


def _accuracy_so_far(job: job_pb2.Job, data: dict[str, TaskData]) -> metric_pb2.Metric | None:
    """Share of right answers over all items of tasks that have an accuracy, pooled."""
    tasks = [p.task for p in job.plan if any(spec.metric == statistics.ACCURACY for spec in p.metrics)]
    cells = [cell for task in tasks for cell in data[task].cells]
    n = sum(cell.count for cell in cells)
    if n == 0:
        return None
    correct = sum(cell.count for cell in cells if cell.correct)
    unanswered = sum(cell.count for cell in cells if cell.prediction is None)
    lost = sum(data[task].lost for task in tasks)
    return metric_message(statistics.ACCURACY, statistics.accuracy(correct, unanswered, n, lost))


def _latency(connection: Connection, job_id: str) -> tuple[float, float]:
    ((median, p95),) = connection.execute(query("latency"), {"job_id": job_id}).fetchall()
    return float(median), float(p95)
