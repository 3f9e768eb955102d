"""A suite's or a dataset's job in MLflow: one run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from services import further_fields
from services.results.mlflow.client import Record
from services.words import enums
from services.words.jobs import mode_of
from touchstone.v1 import job_pb2, metric_pb2

_UNNAMED = re.compile(r"[^A-Za-z0-9_\-. :/]")


def experiment_name(job: job_pb2.Job) -> str:
    work = job.spec.suite.suite if job.spec.HasField("suite") else job.spec.dataset.name or job.spec.dataset.dataset_id
    return f"touchstone/{work}"[:250]


def record(job: job_pb2.Job, result: metric_pb2.JobResult) -> Record:
    """The run of a completed job. Metrics are named "task/metric"; "score" is that of the suite."""
    started_ms = (job.started_at if job.HasField("started_at") else job.created_at).ToMilliseconds()
    return Record(
        name=f"{job.spec.model} · {job.spec.endpoint}",
        params=dict(_params(job)),
        metrics=dict(_metrics(result)),
        tags={
            "mlflow.user": job.owner,
            "mlflow.source.name": "Touchstone",
            "touchstone.attempt": str(job.attempt),
            "touchstone.incomplete": str(job.incomplete).lower(),
            "touchstone.item_set": job.item_set,
        },
        started_ms=started_ms,
        ended_ms=max(started_ms, job.finished_at.ToMilliseconds()),
    )


def _params(job: job_pb2.Job) -> Iterator[tuple[str, str]]:
    spec = job.spec
    yield from (("provider", spec.endpoint), ("model", spec.model), ("mode", enums.MODES.of(mode_of(spec))))
    if spec.HasField("suite"):
        yield from (("suite", spec.suite.suite), ("limit", str(spec.suite.limit)), ("shots", str(spec.suite.shots)))
    else:
        yield from (("dataset", spec.dataset.name), ("dataset_id", spec.dataset.dataset_id))
    for field, value in spec.sampling.ListFields():
        if field.name not in further_fields.FIELDS:
            yield field.name, str(value)


def _metrics(result: metric_pb2.JobResult) -> Iterator[tuple[str, float]]:
    if result.suite_score.HasField("mean"):
        yield "score", result.suite_score.mean
    for task in result.tasks:
        for metric in task.metrics:
            if metric.HasField("mean"):
                name = _UNNAMED.sub("_", f"{task.task}/{metric.metric}")[:250]
                yield name, metric.mean
                if metric.HasField("ci95_low"):
                    yield from ((f"{name}/ci95_low", metric.ci95_low), (f"{name}/ci95_high", metric.ci95_high))
    yield from (("input_tokens", result.input_tokens), ("output_tokens", result.output_tokens))
    yield from (("latency_p50_ms", result.latency_p50_ms), ("latency_p95_ms", result.latency_p95_ms))
    if result.HasField("cost_usd"):
        yield "cost_usd", result.cost_usd
