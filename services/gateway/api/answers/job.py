"""A job in answers: the API document's fields, and ours."""

from __future__ import annotations

import hashlib
from typing import Any

from services.gateway.api.answers import job_results, members
from services.gateway.api.answers.metrics import (
    CAUTION,
    SCORE,
    TASK_METRIC,
    UNREAD,
    cautioned,
    metric_body,
    task_metrics,
)
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    Schema,
    about,
    array,
    null,
    shape,
    table,
)
from services.gateway.reads import jobs, values
from services.gateway.reads.jobs import percent, total_seconds
from services.words.enums import PRIORITIES, mode_name, reading_name
from services.words.jobs import items_of, stage_of, status_of, suite_of
from touchstone.v1 import job_pb2, metric_pb2

LOST_CALLS = about(COUNT, "The most calls that may be charged without a known price, such as calls lost in a crash.")
QUEUE_POSITION = about(null(COUNT), "The job's place in the queue, from 1. null when it is not waiting.")
TROUBLE = about(null(STRING), "What keeps the endpoint of a running job from answering now. null if nothing is known.")
ATTEMPT = about(COUNT, "The number of the attempt, from 1. A retry is the next one.")
BUDGET_USD = about(null(NUMBER), "The most that it may cost, in US dollars. null without a budget.")
LABELS = "Notes of the user who created it."
LOST_USD = about(null(NUMBER), "The most that lost calls may cost. null without a budget.")
PROGRESS = shape(
    {
        "percent": about({"type": "integer", "minimum": 0, "maximum": 100}, "Rounded down: 100 means all items."),
        "items_done": about(COUNT, "Answers that are done, failed ones included."),
        "items_total": about(COUNT, "Answers to get: items times repeats. 0 before planning."),
        "items_failed": about(COUNT, "Items whose calls failed after all retries. A retry of the job asks them again."),
        "current_step": about(STRING, "What happens now, in words."),
        "items_per_second": about(NUMBER, "Over the last 30 seconds. The mean of the whole job when it is finished."),
        "tokens_per_second": about(
            null(NUMBER), "Generated tokens, over the same time. null if the provider does not report tokens."
        ),
        "eta_seconds": about(null(NUMBER), "Seconds left at the present rate. null while unknown."),
        "eta_low_seconds": about(null(NUMBER), "The lower end of the 95 % interval of `eta_seconds`."),
        "eta_high_seconds": about(null(NUMBER), "The upper end of that interval."),
        "cost_usd": about(null(NUMBER), "US dollars so far, over all attempts. null if no price is known."),
        "lost_calls": LOST_CALLS,
        "lost_usd": LOST_USD,
        "queue_position": QUEUE_POSITION,
        "starts_in_seconds": about(
            null(NUMBER), "About how many seconds from now a waiting job starts. null while that is not known."
        ),
        "elapsed_seconds": about(NUMBER, "How long the present attempt has run."),
        "time_limit_seconds": about(COUNT, "How long an attempt may run."),
    },
    name="Progress",
)
STATE: dict[str, Schema] = {
    "job_id": members.JOB_ID,
    "status": members.STATUS,
    "phase": members.PHASE,
    "progress": about(PROGRESS, "How far the job is."),
    "trouble": TROUBLE,
    "completed_at": members.COMPLETED_AT,
    "incomplete": about(BOOLEAN, "Completed, but some items have no answer. Such a run has bounds and no rank."),
    "attempt": ATTEMPT,
    "error": about(STRING, "Why the job failed or was cancelled, and what to do."),
    "version": about(
        STRING, "Changes with the job's state and progress. Give it as `since` when you wait for a change."
    ),
}
"""What changes while a job lives."""

_SIZE: dict[str, Schema] = {
    "subset": members.SUBSET,
    "items": about(null(COUNT), "The number of items that the job runs. null before planning."),
    "published_items": members.PUBLISHED_ITEMS,
}
"""How much of a suite a job runs."""
_OFFER: dict[str, Schema] = {
    "offered_reading": about(
        null(members.READING), "The layers to score the job again by, if more than a fifth of a task was not read."
    ),
    "offer": about(null(STRING), "How many of the unread answers each layer would read, in words."),
}

JOB = shape(
    STATE
    | {
        "summary": about(
            shape(
                {
                    "total_evaluations": about(COUNT, "Tasks with a score. Tasks of one score group count once."),
                    "benchmarks_run": about(array(STRING), "The suite, once the job has scores."),
                    "models_evaluated": about(COUNT, "1 once the job has scores."),
                    "total_time_seconds": about(NUMBER, "How long the job ran, over all attempts."),
                }
            ),
            "The job in figures.",
        ),
        "performance_data": about(
            table(table(table(TASK_METRIC))), "The metrics by suite, task and name. Empty until the job is finished."
        ),
        "created_at": members.CREATED_AT,
        "started_at": about(null(TIME), "When the first attempt began to run. null before that."),
        "model_name": members.MODEL,
        "provider": members.PROVIDER,
        "owner": members.OWNER,
        "project_id": members.PROJECT_ID,
        "priority": members.PRIORITY,
        "schedule_id": about(null(STRING), "The schedule that created it."),
        "labels": about(table(STRING), LABELS),
        "budget_usd": BUDGET_USD,
        "replays_job_id": about(
            null(members.JOB_ID), "The job whose items this one asks again. Such a job never ranks."
        ),
        "max_model_b": about(
            null(NUMBER),
            "Of a job of an experiment, the largest model that it takes, in billions of parameters. null for any.",
        ),
        "dataset": about(
            null(
                shape(
                    {
                        "dataset_id": about(STRING, "The dataset's id."),
                        "name": about(STRING, "The dataset's name."),
                        "limit": about(null(COUNT), "The most rows that the job asks. null means all."),
                    }
                )
            ),
            "The dataset that the job runs over. null for suites.",
        ),
        "partial": about(BOOLEAN, "The job failed or was cancelled: only the tasks that it finished have metrics."),
        **_SIZE,
        "item_set": members.ITEM_SET,
        "baseline": members.BASELINE,
        **job_results.ASKED,
        "receipt": about(job_results.RECEIPT, "What the score rests on."),
        "data": about(table(job_results.DATA), "By task: the data, prompts and scorer."),
        "tasks": about(table(job_results.TASK), "By task: its items and how they ended."),
        "error_detail": about(STRING, "More about `error`, such as the end of an engine's log."),
        "score": about(SCORE, "The suite's score."),
        "not_ranked_reason": members.NOT_RANKED_REASON,
        "caution": CAUTION,
        "unread": UNREAD,
        **_OFFER,
        **job_results.MEASURED,
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
        *job_results.MEASURED,
    ),
)
ROW: dict[str, Schema] = {
    "job_id": members.JOB_ID,
    "status": members.STATUS,
    "phase": members.PHASE,
    "model_name": members.MODEL,
    "benchmark_suite": members.SUITE,
    "created_at": members.CREATED_AT,
    "completed_at": members.COMPLETED_AT,
    "provider": members.PROVIDER,
    "mode": members.MODE,
    "incomplete": about(BOOLEAN, "Completed, but some items have no answer."),
    "baseline": members.BASELINE,
    **_SIZE,
    "owner": members.OWNER,
    "project_id": members.PROJECT_ID,
}
"""Members of a job in a list."""
JOB_ROW = shape(ROW, name="JobRow")


def job_body(job: job_pb2.Job, result: metric_pb2.JobResult | None, trouble: str = "") -> dict[str, Any]:
    """The document's fields, and ours. `partial` marks metrics of a job that did not complete."""
    completed = job.state == job_pb2.Job.STATE_COMPLETED
    # A task that a failed or cancelled job left unfinished has no score to show.
    tasks = [task for task in result.tasks if completed or task.items >= task.items_planned > 0] if result else []
    performance = {task.task: task_metrics(task) for task in tasks}
    body = state_body(job, trouble) | {
        "summary": {
            "total_evaluations": len({task.score_group or task.task for task in tasks}),
            "benchmarks_run": [suite_of(job.spec)],
            "models_evaluated": 1,
            "total_time_seconds": total_seconds(job),
        },
        "performance_data": {suite_of(job.spec): performance} if performance else {},
        "created_at": jobs.iso(job.created_at),
        "started_at": jobs.iso(job.started_at),
        "model_name": job.spec.model,
        "provider": job.spec.endpoint,
        "owner": job.owner,
        "project_id": job.spec.project_id,
        "priority": PRIORITIES.of(job.spec.priority) or None,
        "schedule_id": job.spec.schedule_id or None,
        "labels": dict(job.spec.labels),
        "budget_usd": job.spec.budget_usd or None,
        "max_model_b": job.spec.max_model_b or None,
        "replays_job_id": job.spec.replays_job_id or None,
        "dataset": _dataset(job.spec.dataset) if job.spec.HasField("dataset") else None,
        "partial": bool(performance) and not completed,
        **_size(job),
        "item_set": job.item_set,
        "baseline": job.baseline,
        **job_results.asked(job.spec),
        "receipt": job_results.receipt(job.receipt),
        "data": {plan.task: job_results.data(plan) for plan in job.plan},
    }
    if job.reason_detail:
        body["error_detail"] = job.reason_detail
    if result:
        body |= job_results.measured(job, result) | cautioned(result)
        body |= {"offered_reading": reading_name(result.offered_reading), "offer": result.offer or None}
        body["tasks"] = {task.task: job_results.task(task) for task in result.tasks}
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
        "items": items_of(job) or None,
        "published_items": job.published_items or None,
    }


def _dataset(work: job_pb2.DatasetWork) -> dict[str, Any]:
    return {"dataset_id": work.dataset_id, "name": work.name, "limit": work.limit or None}


def state_body(job: job_pb2.Job, trouble: str = "") -> dict[str, Any]:
    """What changes while the job lives."""
    body = {
        "job_id": job.job_id,
        "status": status_of(job.state),
        "phase": stage_of(job),
        "progress": progress_body(job),
        "trouble": trouble or None,
        "completed_at": jobs.iso(job.finished_at),
        "incomplete": job.incomplete,
        "attempt": job.attempt,
        "version": version(job),
    }
    return body | ({"error": job.reason} if job.reason else {})


def version(job: job_pb2.Job) -> str:
    """Equal as long as nothing happens to the job; rates and times, which always change, do not count."""
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
        "cost_usd": values.cost(progress),
        "lost_calls": values.lost_calls(job),
        "lost_usd": progress.lost_usd if job.spec.budget_usd else None,
        "queue_position": progress.queue_position or None,
        "starts_in_seconds": progress.starts_in_s if progress.HasField("starts_in_s") else None,
        "elapsed_seconds": progress.elapsed_s,
        "time_limit_seconds": progress.time_limit_s,
    }


def tokens_a_second(progress: job_pb2.Progress, digits: int | None = None) -> float | None:
    """None if there are answers but none has its tokens."""
    if progress.output_untold and not progress.output_tokens:
        return None
    return progress.tokens_per_second if digits is None else round(progress.tokens_per_second, digits)


def row(job: job_pb2.Job) -> dict[str, Any]:
    """A job in a list."""
    return {
        "job_id": job.job_id,
        "status": status_of(job.state),
        "phase": stage_of(job),
        "model_name": job.spec.model,
        "benchmark_suite": suite_of(job.spec),
        "created_at": jobs.iso(job.created_at),
        "completed_at": jobs.iso(job.finished_at),
        "provider": job.spec.endpoint,
        "mode": mode_name(job.spec.mode),
        "incomplete": job.incomplete,
        "baseline": job.baseline,
        **_size(job),
        "owner": job.owner,
        "project_id": job.spec.project_id,
    }
