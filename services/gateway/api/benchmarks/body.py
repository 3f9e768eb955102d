"""A run over a dataset as the document has it, and ours beside it."""

from __future__ import annotations

from typing import Any

from services.errors import NotFoundError
from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.datasets import body as datasets
from services.gateway.api.datasets import scoring
from services.gateway.api.endpoint import Call
from services.gateway.api.job import (
    LOST_CALLS,
    LOST_USD,
    PRIORITIES,
    STATUS,
    percent,
    priority_name,
    tokens_a_second,
    total_seconds,
)
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Schema,
    about,
    enum,
    null,
    shape,
    table,
)
from touchstone.v1 import job_pb2

ID: Schema = {"type": "string", "pattern": "^bm_[0-9a-f]{32}$"}
MEMBERS: dict[str, Schema] = {
    "benchmark_id": ID,
    "model_id": STRING,
    "model_name": about(STRING, "The model's id without what stands before its last slash."),
    "dataset_id": STRING,
    "dataset_name": STRING,
    "status": STATUS,
    "progress": about({"type": "integer", "minimum": 0, "maximum": 100}, "Percent of rows done, rounded down."),
    "completed": about(COUNT, "Rows done, failed ones among them."),
    "total": about(COUNT, "Rows to do; 0 until they are counted."),
    "throughput": about(
        null(NUMBER),
        "Generated tokens a second, over the last 30 s; the whole run's mean when finished. Of answers that tell their "
        "tokens; null where none does.",
    ),
    "eta_seconds": about(null(COUNT), "At the present rate; null while it cannot be told, 0 when finished."),
    "started_at": about(null(TIME), "When it began to run; until then, when it was created."),
    "total_time_seconds": about(null(NUMBER), "Time running, over all attempts; null until finished."),
    "completed_at": null(TIME),
    "created_at": null(TIME),
    "job_id": STRING,
    "provider": STRING,
    "owner": STRING,
    "project_id": COUNT,
    "failed": about(COUNT, "Rows whose calls failed after all retries; a retry asks for them again."),
    "eta_low_seconds": about(null(COUNT), "Of the 95 % interval of the ETA."),
    "eta_high_seconds": null(COUNT),
    "items_per_second": about(NUMBER, "Rows a second, over the same time as `throughput`."),
    "cost_usd": about(null(NUMBER), "So far; null where no price is known."),
    "lost_calls": LOST_CALLS,
    "lost_usd": LOST_USD,
    "budget_usd": null(NUMBER),
    "current_step": STRING,
    "queue_position": about(null(COUNT), "From 1 while pending."),
    "priority": null(enum(*PRIORITIES)),
    "incomplete": about(BOOLEAN, "Completed, but some rows have no answer."),
    "attempt": COUNT,
    "error": about(null(STRING), "Why it failed or was cancelled, and what to do."),
    "parameters": about(OBJECT, "What the run asks for; a row's own count before them."),
    "limit": about(null(COUNT), "Most rows; null means all."),
    "seed": about(INTEGER, "Of the sample that `limit` takes."),
    "scoring": about(scoring.BODY, "How answers are scored."),
    "labels": table(STRING),
    "source_benchmark": about(null(STRING), "Run whose answers are taken."),
}
BENCHMARK = shape(MEMBERS, name="Benchmark")


def benchmark_body(job: job_pb2.Job) -> dict[str, Any]:
    """The documented fields first."""
    work, progress, finished = job.spec.dataset, job.progress, jobs.is_finished(job)
    return {
        "benchmark_id": jobs.benchmark_id(job.job_id),
        "model_id": job.spec.model,
        "model_name": model_name(job.spec.model),
        "dataset_id": work.dataset_id,
        "dataset_name": work.name,
        "status": jobs.STATUS[job.state],
        "progress": percent(job),
        "completed": progress.items_done,
        "total": progress.items_total,
        "throughput": tokens_a_second(progress, 2),
        "eta_seconds": 0 if finished else _seconds(progress, "eta_s"),
        "started_at": jobs.iso(job.started_at) or jobs.iso(job.created_at),
        "total_time_seconds": total_seconds(job) if finished else None,
        "completed_at": jobs.iso(job.finished_at),
        "created_at": jobs.iso(job.created_at),
        "job_id": job.job_id,
        "provider": job.spec.endpoint,
        "owner": job.owner,
        "project_id": job.spec.project_id,
        "failed": progress.items_failed,
        "eta_low_seconds": 0 if finished else _seconds(progress, "eta_low_s"),
        "eta_high_seconds": 0 if finished else _seconds(progress, "eta_high_s"),
        "items_per_second": round(progress.items_per_second, 3),
        "cost_usd": figures.cost(progress),
        "lost_calls": figures.lost_calls(job),
        "lost_usd": progress.lost_usd if job.spec.budget_usd else None,
        "budget_usd": job.spec.budget_usd or None,
        "current_step": progress.current_step,
        "queue_position": progress.queue_position or None,
        "priority": priority_name(job.spec.priority),
        "incomplete": job.incomplete,
        "attempt": job.attempt,
        "error": job.reason or None,
        "parameters": datasets.sampling_body(job.spec.sampling),
        "limit": work.limit or None,
        "seed": work.seed,
        "scoring": scoring.scoring_body(work.scoring) | ({"scorer": work.scorer} if work.scorer else {}),
        "labels": dict(job.spec.labels),
        "source_benchmark": jobs.benchmark_id(job.spec.reuse.job_id) if job.spec.reuse.job_id else None,
    }


def model_name(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2] or model


def _seconds(progress: job_pb2.Progress, field: str) -> int | None:
    return max(0, round(getattr(progress, field))) if progress.HasField(field) else None


async def find(call: Call) -> job_pb2.Job:
    """The run in the path, of any age. Raises NotFoundError, also for a job that runs no dataset."""
    job = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    if not job.spec.HasField("dataset"):
        raise NotFoundError(f"Job {job.job_id} runs {jobs.suite_of(job)}, no dataset; read it as a job.")
    return job
