"""`GET /results/{job_id}`, `GET /results`, `POST /cancel/{job_id}`."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request

from services.errors import ConflictError, NotFoundError
from services.gateway import context, jobs
from services.gateway.api import figures
from services.gateway.api.query import choice, count
from services.gateway.responses import JSONResponse
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2

_ROUNDING = 1e-9


async def results(request: Request) -> JSONResponse:
    """One job: status, progress, and its metrics once it is finished. 404 for an unknown id."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    result = await jobs.result_of(ctx.backend, job.job_id, caller) if jobs.is_finished(job) else None
    return JSONResponse(job_body(job, result))


def job_body(job: job_pb2.Job, result: metric_pb2.JobResult | None) -> dict[str, Any]:
    """The document's fields and ours beside them. `partial` marks metrics of a job that did not complete."""
    completed = job.state == job_pb2.Job.STATE_COMPLETED
    # A task that a failed or cancelled job left halfway has no score to show.
    tasks = [task for task in result.tasks if completed or task.items >= task.items_planned > 0] if result else []
    performance = {task.task: _task_body(task) for task in tasks}
    body: dict[str, Any] = {
        "job_id": job.job_id,
        "status": jobs.STATUS[job.state],
        "summary": {
            "total_evaluations": len({task.score_group or task.task for task in tasks}),
            "benchmarks_run": [jobs.suite_of(job)],
            "models_evaluated": 1,
            "total_time_seconds": total_seconds(job),
        },
        "performance_data": {jobs.suite_of(job): performance} if performance else {},
        "completed_at": jobs.iso(job.finished_at),
        "created_at": jobs.iso(job.created_at),
        "started_at": jobs.iso(job.started_at),
        "model_name": job.spec.model,
        "provider": job.spec.endpoint,
        "progress": progress_body(job),
        "incomplete": job.incomplete,
        "partial": bool(performance) and not completed,
        "subset": job.subset,
        "item_set": job.item_set,
        "baseline": job.baseline,
        "attempt": job.attempt,
        **figures.asked(job.spec),
        "receipt": figures.receipt(job.receipt),
        "data": {plan.task: figures.data(plan) for plan in job.plan},
    }
    if result:
        body |= figures.measured(result, metric_body)
        body["tasks"] = {task.task: figures.task(task) for task in result.tasks}
    if job.reason:
        body["error"] = job.reason
    if result and result.HasField("suite_score"):
        body["score"] = metric_body(result.suite_score)
    if result and result.not_ranked_reason:
        body["not_ranked_reason"] = result.not_ranked_reason
        if "score" in body:
            body["score"]["not_ranked_reason"] = result.not_ranked_reason
    return body


def progress_body(job: job_pb2.Job) -> dict[str, Any]:
    progress = job.progress
    return {
        "percent": percent(job),
        "items_done": progress.items_done,
        "items_total": progress.items_total,
        "items_failed": progress.items_failed,
        "current_step": progress.current_step,
        "items_per_second": progress.items_per_second,
        "tokens_per_second": progress.tokens_per_second,
        "eta_seconds": progress.eta_s if progress.HasField("eta_s") else None,
        "queue_position": progress.queue_position or None,
        "elapsed_seconds": progress.elapsed_s,
    }


def percent(job: job_pb2.Job) -> int:
    """Whole percent of items done, rounded down: 100 means all."""
    total = job.progress.items_total
    return math.floor(100 * job.progress.items_done / total) if total else 0


def total_seconds(job: job_pb2.Job) -> float:
    """Time running, over all attempts and without the pauses between them; 0 before the start."""
    return round(job.progress.elapsed_s, 2)


def _task_body(task: metric_pb2.TaskResult) -> dict[str, Any]:
    unparsed = task.outcomes.unparsed / task.items if task.items else 0.0
    beside: dict[str, Any] = {"unparsed": unparsed}
    if task.first_answer_gap:
        beside["first_answer_gap"] = task.first_answer_gap
    return {metric.metric: metric_body(metric) | beside for metric in task.metrics}


def metric_body(metric: metric_pb2.Metric) -> dict[str, Any]:
    """`std` is the standard error of `mean`, by our declaration; `stderr` says the same under its proper name."""
    stderr = metric.stderr if metric.HasField("stderr") else None
    body: dict[str, Any] = {
        "mean": metric.mean if metric.HasField("mean") else None,
        "std": stderr,
        "ci95": interval(metric),
        "n": metric.n,
        "stderr": stderr,
    }
    if is_bounded(metric):
        body["bounds"] = [metric.bound_low, metric.bound_high]
    if metric.undefined_reason:
        body["undefined_reason"] = metric.undefined_reason
    if metric.beside:
        body["beside"] = True
    return body


def is_bounded(metric: metric_pb2.Metric) -> bool:
    """Whether its bounds are wider than its mean: what is unanswered could still move it."""
    return metric.HasField("bound_low") and metric.bound_high - metric.bound_low > _ROUNDING


def interval(metric: metric_pb2.Metric) -> list[float] | None:
    return [metric.ci95_low, metric.ci95_high] if metric.HasField("ci95_low") else None


async def list_results(request: Request) -> JSONResponse:
    """Jobs, newest first; filters are joined by AND and `total` counts all matches."""
    ctx, caller = context.of(request), context.identity(request)
    query = request.query_params
    status = choice(query, "status", jobs.STATUSES)
    call = results_service_pb2.ResultsServiceListJobsRequest(
        model=query.get("model_name", ""),
        suite=query.get("suite", ""),
        states=jobs.states(status) if status else [],
    )
    left, rows = count(query, "limit", 20), []
    while True:
        # In pages: a thousand jobs with their plans are more than one gRPC message may hold.
        call.page_size = min(left, 100)
        answer = await ctx.backend.ask(ctx.backend.results.ListJobs, call, caller)
        rows += [row(job) for job in answer.jobs]
        left -= len(answer.jobs)
        if left <= 0 or not answer.jobs or not answer.next_page_token:
            return JSONResponse({"results": rows, "total": answer.total_size})
        call.page_token = answer.next_page_token


def row(job: job_pb2.Job) -> dict[str, Any]:
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
    }


async def cancel(request: Request) -> JSONResponse:
    """Stops a job. 404 for an unknown id, 409 for a finished job."""
    ctx, caller = context.of(request), context.identity(request)
    job_id = jobs.checked_id(request.path_params["job_id"])
    try:
        call = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
        await ctx.backend.ask(ctx.backend.scheduler.CancelJob, call, caller)
    except NotFoundError:
        # Only results remembers jobs that finished more than a day ago.
        job = await jobs.find(ctx.backend, job_id, caller)
        raise ConflictError(f"Job {job_id} is {jobs.STATUS[job.state]} and cannot be cancelled.") from None
    return JSONResponse({"message": f"Job {job_id} cancelled successfully"})
