"""A job as answers give it: the document's fields, and ours beside them."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.metrics import CAUTION, SCORE, TASK_METRIC, UNREAD, cautioned, metric_body, task_metrics
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    UUID,
    Schema,
    about,
    array,
    enum,
    null,
    shape,
    table,
)
from touchstone.v1 import job_pb2, metric_pb2

PRIORITIES = {"low": job_pb2.PRIORITY_LOW, "normal": job_pb2.PRIORITY_NORMAL, "high": job_pb2.PRIORITY_HIGH}
_PRIORITY_NAMES = {number: name for name, number in PRIORITIES.items()}
STATUS = enum(*jobs.STATUSES)

LOST_CALLS = about(COUNT, "Calls, at most, that may be charged and whose answers were lost or tell no price.")
LOST_USD = about(null(NUMBER), "The most that they may cost; null without a budget.")
PROGRESS = shape(
    {
        "percent": about({"type": "integer", "minimum": 0, "maximum": 100}, "Rounded down: 100 means all."),
        "items_done": COUNT,
        "items_total": COUNT,
        "items_failed": about(COUNT, "Calls that failed after all retries; a retry runs them again."),
        "current_step": STRING,
        "items_per_second": NUMBER,
        "tokens_per_second": about(null(NUMBER), "Of answers that tell their tokens; null where none does."),
        "eta_seconds": null(NUMBER),
        "eta_low_seconds": about(null(NUMBER), "Of the 95 % interval of the ETA."),
        "eta_high_seconds": null(NUMBER),
        "cost_usd": about(null(NUMBER), "So far; null where no price is known."),
        "lost_calls": LOST_CALLS,
        "lost_usd": LOST_USD,
        "queue_position": about(null(COUNT), "From 1 while pending."),
        "elapsed_seconds": NUMBER,
        "time_limit_seconds": COUNT,
    },
    name="Progress",
)
STATE: dict[str, Schema] = {
    "job_id": UUID,
    "status": STATUS,
    "progress": PROGRESS,
    "trouble": about(null(STRING), "What keeps the endpoint of a running job from answering now."),
    "completed_at": null(TIME),
    "incomplete": about(BOOLEAN, "Completed, but some items have no answer: bounds instead of scores, not ranked."),
    "attempt": COUNT,
    "error": about(STRING, "Why the job failed or was cancelled, and what to do."),
    "version": about(STRING, "Changes with the job's state and progress; `since` of a waiting read takes it."),
}
"""What changes while a job lives."""

_SIZE: dict[str, Schema] = {
    "subset": about(BOOLEAN, "Fewer items than the published suite."),
    "items": about(null(COUNT), "Items that the job was planned to run; null before that."),
    "published_items": about(null(COUNT), "Items of the whole published suite; null where that is not known."),
}
"""How much of a suite a job runs."""
_OFFER: dict[str, Schema] = {
    "offered_reading": about(
        null(figures.READING), "Layers by which to score the job again, where more than a fifth of a task was not read."
    ),
    "offer": about(null(STRING), "Which layer would read how many of the unread answers, in sentences."),
}

JOB = shape(
    STATE
    | {
        "summary": shape(
            {
                "total_evaluations": about(COUNT, "Tasks scored; those that count once together are one."),
                "benchmarks_run": array(STRING),
                "models_evaluated": COUNT,
                "total_time_seconds": about(NUMBER, "Time running, over all attempts."),
            }
        ),
        "performance_data": about(table(table(table(TASK_METRIC))), "By suite, task and metric; empty until finished."),
        "created_at": null(TIME),
        "started_at": null(TIME),
        "model_name": STRING,
        "provider": STRING,
        "owner": STRING,
        "project_id": COUNT,
        "priority": null(enum(*PRIORITIES)),
        "schedule_id": about(null(STRING), "Schedule that created it."),
        "labels": about(table(STRING), "Notes of the user who created it."),
        "budget_usd": null(NUMBER),
        "dataset": about(
            null(shape({"dataset_id": STRING, "name": STRING, "limit": null(COUNT)})), "Of a run over a dataset."
        ),
        "partial": about(BOOLEAN, "Metrics of a job that did not complete: only tasks that it finished."),
        **_SIZE,
        "item_set": STRING,
        "baseline": BOOLEAN,
        **figures.ASKED,
        "receipt": figures.RECEIPT,
        "data": about(table(figures.DATA), "By task."),
        "tasks": about(table(figures.TASK), "By task."),
        "error_detail": about(STRING, "What stands behind `error`, such as the end of an engine's log."),
        "score": SCORE,
        "not_ranked_reason": STRING,
        "caution": CAUTION,
        "unread": UNREAD,
        **_OFFER,
        **figures.MEASURED,
    },
    name="Job",
    optional=(
        "error",
        "error_detail",
        "score",
        "not_ranked_reason",
        "caution",
        "unread",
        *_OFFER,
        "reuse",
        "tasks",
        *figures.MEASURED,
    ),
)
ROW: dict[str, Schema] = {
    "job_id": UUID,
    "status": STATUS,
    "model_name": STRING,
    "benchmark_suite": STRING,
    "created_at": null(TIME),
    "completed_at": null(TIME),
    "provider": STRING,
    "mode": figures.MODE,
    "incomplete": BOOLEAN,
    "baseline": BOOLEAN,
    **_SIZE,
    "owner": STRING,
    "project_id": COUNT,
}
"""Members of a job in a list."""
JOB_ROW = shape(ROW, name="JobRow")


def job_body(job: job_pb2.Job, result: metric_pb2.JobResult | None, trouble: str = "") -> dict[str, Any]:
    """The document's fields and ours beside them. `partial` marks metrics of a job that did not complete."""
    completed = job.state == job_pb2.Job.STATE_COMPLETED
    # A task that a failed or cancelled job left halfway has no score to show.
    tasks = [task for task in result.tasks if completed or task.items >= task.items_planned > 0] if result else []
    performance = {task.task: task_metrics(task) for task in tasks}
    body = state_body(job, trouble) | {
        "summary": {
            "total_evaluations": len({task.score_group or task.task for task in tasks}),
            "benchmarks_run": [jobs.suite_of(job)],
            "models_evaluated": 1,
            "total_time_seconds": total_seconds(job),
        },
        "performance_data": {jobs.suite_of(job): performance} if performance else {},
        "created_at": jobs.iso(job.created_at),
        "started_at": jobs.iso(job.started_at),
        "model_name": job.spec.model,
        "provider": job.spec.endpoint,
        "owner": job.owner,
        "project_id": job.spec.project_id,
        "priority": priority_name(job.spec.priority),
        "schedule_id": job.spec.schedule_id or None,
        "labels": dict(job.spec.labels),
        "budget_usd": job.spec.budget_usd or None,
        "dataset": _dataset(job.spec.dataset) if job.spec.HasField("dataset") else None,
        "partial": bool(performance) and not completed,
        **_size(job),
        "item_set": job.item_set,
        "baseline": job.baseline,
        **figures.asked(job.spec),
        "receipt": figures.receipt(job.receipt),
        "data": {plan.task: figures.data(plan) for plan in job.plan},
    }
    if job.reason_detail:
        body["error_detail"] = job.reason_detail
    if result:
        body |= figures.measured(result) | cautioned(result)
        body |= {"offered_reading": figures.reading_name(result.offered_reading), "offer": result.offer or None}
        body["tasks"] = {task.task: figures.task(task) for task in result.tasks}
    if result and result.HasField("suite_score"):
        body["score"] = metric_body(result.suite_score)
    if result and result.not_ranked_reason:
        body["not_ranked_reason"] = result.not_ranked_reason
        if "score" in body:
            body["score"]["not_ranked_reason"] = result.not_ranked_reason
    return body


def _size(job: job_pb2.Job) -> dict[str, Any]:
    """How much of a suite the job runs."""
    return {
        "subset": job.subset,
        "items": jobs.items_of(job) or None,
        "published_items": job.published_items or None,
    }


def _dataset(work: job_pb2.DatasetWork) -> dict[str, Any]:
    return {"dataset_id": work.dataset_id, "name": work.name, "limit": work.limit or None}


def priority_name(priority: job_pb2.Priority) -> str | None:
    return _PRIORITY_NAMES.get(priority)


def state_body(job: job_pb2.Job, trouble: str = "") -> dict[str, Any]:
    """What changes while the job lives."""
    body = {
        "job_id": job.job_id,
        "status": jobs.STATUS[job.state],
        "progress": progress_body(job),
        "trouble": trouble or None,
        "completed_at": jobs.iso(job.finished_at),
        "incomplete": job.incomplete,
        "attempt": job.attempt,
        "version": version(job),
    }
    return body | ({"error": job.reason} if job.reason else {})


def version(job: job_pb2.Job) -> str:
    """The same while nothing happens to the job; rates and times, which always change, do not count."""
    progress = job.progress
    happened = (
        job.state,
        job.attempt,
        job.reason,
        job.incomplete,
        progress.items_done,
        progress.items_failed,
        progress.units_done,
        progress.queue_position,
        progress.current_step,
    )
    return hashlib.sha256(repr(happened).encode()).hexdigest()[:16]


def progress_body(job: job_pb2.Job) -> dict[str, Any]:
    progress = job.progress
    return {
        "percent": percent(job),
        "items_done": progress.items_done,
        "items_total": progress.items_total,
        "items_failed": progress.items_failed,
        "current_step": progress.current_step,
        "items_per_second": progress.items_per_second,
        "tokens_per_second": tokens_a_second(progress),
        "eta_seconds": progress.eta_s if progress.HasField("eta_s") else None,
        "eta_low_seconds": progress.eta_low_s if progress.HasField("eta_low_s") else None,
        "eta_high_seconds": progress.eta_high_s if progress.HasField("eta_high_s") else None,
        "cost_usd": figures.cost(progress),
        "lost_calls": figures.lost_calls(job),
        "lost_usd": progress.lost_usd if job.spec.budget_usd else None,
        "queue_position": progress.queue_position or None,
        "elapsed_seconds": progress.elapsed_s,
        "time_limit_seconds": progress.time_limit_s,
    }


def tokens_a_second(progress: job_pb2.Progress, digits: int | None = None) -> float | None:
    """None where there are answers and none of them tells its tokens."""
    if progress.output_untold and not progress.output_tokens:
        return None
    return progress.tokens_per_second if digits is None else round(progress.tokens_per_second, digits)


def percent(job: job_pb2.Job) -> int:
    """Whole percent of items done, rounded down: 100 means all."""
    total = job.progress.items_total
    return math.floor(100 * job.progress.items_done / total) if total else 0


def total_seconds(job: job_pb2.Job) -> float:
    """Time running, over all attempts and without the pauses between them; 0 before the start."""
    return round(job.progress.elapsed_s, 2)


def row(job: job_pb2.Job) -> dict[str, Any]:
    """A job in a list."""
    return {
        "job_id": job.job_id,
        "status": jobs.STATUS[job.state],
        "model_name": job.spec.model,
        "benchmark_suite": jobs.suite_of(job),
        "created_at": jobs.iso(job.created_at),
        "completed_at": jobs.iso(job.finished_at),
        "provider": job.spec.endpoint,
        "mode": figures.mode_name(job.spec.mode),
        "incomplete": job.incomplete,
        "baseline": job.baseline,
        **_size(job),
        "owner": job.owner,
        "project_id": job.spec.project_id,
    }
