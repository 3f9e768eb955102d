"""A finished run as comparisons see it; runs, figures and lists as sentences name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import Enum
from functools import cached_property

from google.protobuf.timestamp_pb2 import Timestamp

from services.results.runs import job_reads
from services.results.scores.suite_score import SCORE
from services.results.statistics import metric_values
from services.results.storage import archived_items
from services.results.storage.database import Connection, query
from services.results.storage.run_scores import METRIC_COLUMNS, metric_of
from services.words import suites
from touchstone.v1 import job_pb2, metric_pb2, suite_pb2


class Unanswered(Enum):
    """How items without an answer count: as in metrics, or as in the bounds."""

    AS_SCORED = "as scored"
    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True)
class Run:
    """`subject` is the name by which it was requested; `averages` are the sealed ones, by their stored names.
    `unanswered` is how comparisons count items without an answer.
    """

    subject: str
    job: job_pb2.Job
    result: metric_pb2.JobResult
    averages: Mapping[str, metric_pb2.Metric]
    completed_at: Timestamp
    name: str
    unanswered: Unanswered = Unanswered.AS_SCORED

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def not_ranked_reason(self) -> str:
        return self.result.not_ranked_reason

    @property
    def configuration(self) -> str:
        return self.job.receipt.configuration

    @property
    def mode(self) -> suite_pb2.Mode:
        return self.job.spec.mode or suite_pb2.MODE_GENERATE

    @cached_property
    def plans(self) -> Mapping[str, job_pb2.TaskPlan]:
        return {plan.task: plan for plan in self.job.plan}

    @cached_property
    def measured(self) -> Mapping[str, metric_pb2.TaskResult]:
        return {task.task: task for task in self.result.tasks}

    def lost(self, task: str) -> int:
        """Planned answers without a final outcome."""
        found = self.measured[task]
        return found.items_planned - found.items + found.outcomes.infrastructure_error


def load(connection: Connection, job_ids: Mapping[str, str]) -> list[Run]:
    """Sealed runs in the order of their jobs, with the subjects that named them."""
    archived_items.require(connection, *job_ids)
    where = {"job_ids": sorted(job_ids)}
    averages: dict[str, dict[str, metric_pb2.Metric]] = {job_id: {} for job_id in job_ids}
    for job_id, *values in connection.execute(
        f"SELECT job_id, {', '.join(METRIC_COLUMNS)} FROM run_scores "
        "WHERE list_contains($job_ids::VARCHAR[], job_id) ORDER BY job_id, place",
        where,
    ).fetchall():
        metric = metric_of(values)
        averages[job_id][metric.metric] = metric
    runs = []
    marked = job_reads.uncounted(connection, where["job_ids"])
    for job_blob, sealed, ended_at, name in connection.execute(query("comparison/compared_runs"), where).fetchall():
        job = suites.complete(job_pb2.Job.FromString(job_blob))
        result = metric_pb2.JobResult.FromString(sealed)
        completed_at = Timestamp()
        completed_at.FromDatetime(ended_at.replace(tzinfo=UTC))
        if mark := marked.get(job.job_id):
            job_reads.put_mark_on(result, mark)
        runs.append(Run(job_ids[job.job_id], job, result, averages[job.job_id], completed_at, name))
    return runs


_WAYS: tuple[Callable[[Run], str], ...] = (
    lambda run: run.name or run.job.spec.model,
    lambda run: run.name or f"{run.job.spec.model}@{run.job.spec.endpoint}",
    lambda run: f"{run.job.spec.model} (configuration {run.configuration})",
    lambda run: f"{run.job.spec.model} (job {run.job_id})",
)

_OWN_RANGE = {metric_values.MATTHEWS, *metric_values.CORRELATIONS}


def labels(runs: Sequence[Run]) -> list[str]:
    """Each run by its shortest unique name: name or model, model and endpoint, configuration, job."""
    found = [""] * len(runs)
    for way in _WAYS:
        names = [way(run) for run in runs]
        times = Counter(names)
        for place, name in enumerate(names):
            if not found[place] and times[name] == 1:
                found[place] = name
    return found


def in_points(metric: str) -> bool:
    """Whether a metric is a share, given in percentage points; correlations are given in their own range."""
    return metric not in _OWN_RANGE


def amount(value: float, metric: str) -> str:
    """The size of a difference."""
    return f"{abs(value) * 100:.1f} points" if in_points(metric) else f"{abs(value):.3f}"


def metric_title(metric: str) -> str:
    return "the suite's score" if metric == SCORE else f"mean {metric.replace('_', ' ')}"


def listed(names: Sequence[str], most: int = 8) -> str:
    shown = list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
