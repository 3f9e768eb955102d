"""Runs over datasets as answers give them: the document's fields, and ours; `GET /admin/benchmarks` and one of them."""

from __future__ import annotations

import asyncio
from typing import Any

from services.errors import NotFoundError, TouchstoneError
from services.gateway.api.answers import members
from services.gateway.api.answers.job import (
    ATTEMPT,
    BUDGET_USD,
    LABELS,
    LOST_CALLS,
    LOST_USD,
    QUEUE_POSITION,
    TROUBLE,
    tokens_a_second,
)
from services.gateway.api.answers.metrics import CAUTION, SCORE, metric_body
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.jobs.listing import PAGE
from services.gateway.fields import scoring
from services.gateway.fields.checks import text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, OWNER, PAGE_TOKEN, PROJECT, STATUS, Parameter, page_size
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Schema,
    about,
    array,
    null,
    shape,
    table,
)
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs, values
from services.gateway.reads.datasets import sampling_body
from services.gateway.reads.jobs import percent, total_seconds
from services.words.enums import PRIORITIES
from services.words.jobs import is_finished, stage_of, states_of, status_of, suite_of
from touchstone.v1 import job_pb2, results_service_pb2

ID: Schema = {"type": "string", "pattern": "^bm_[0-9a-f]{32}$"}
MEMBERS: dict[str, Schema] = {
    "benchmark_id": about(ID, "The run's id."),
    "model_id": members.MODEL,
    "model_name": about(STRING, "The part of `model_id` after its last slash."),
    "dataset_id": about(STRING, "The dataset's id."),
    "dataset_name": about(STRING, "The dataset's name."),
    "status": members.STATUS,
    "phase": members.PHASE,
    "progress": about(
        {"type": "integer", "minimum": 0, "maximum": 100}, "Percent of rows done, rounded down: 100 means all rows."
    ),
    "completed": about(COUNT, "Rows that are done, failed ones included."),
    "total": about(COUNT, "Rows to ask. 0 until they are counted."),
    "throughput": about(
        null(NUMBER),
        "Generated tokens per second over the last 30 seconds. The mean of the whole run when it is finished. "
        "null if the provider does not report tokens.",
    ),
    "eta_seconds": about(null(COUNT), "Seconds left at the present rate. null while unknown, 0 when finished."),
    "started_at": about(null(TIME), "When it began to run. Before that, when it was created."),
    "total_time_seconds": about(null(NUMBER), "How long it ran, over all attempts. null until it is finished."),
    "completed_at": members.COMPLETED_AT,
    "created_at": members.CREATED_AT,
    "job_id": about(STRING, "The id of the run as a job."),
    "provider": members.PROVIDER,
    "owner": members.OWNER,
    "project_id": members.PROJECT_ID,
    "failed": about(COUNT, "Rows whose calls failed after all retries. A retry of the run asks them again."),
    "eta_low_seconds": about(null(COUNT), "The lower end of the 95 % interval of `eta_seconds`."),
    "eta_high_seconds": about(null(COUNT), "The upper end of that interval."),
    "items_per_second": about(NUMBER, "Rows per second, over the same time as `throughput`."),
    "cost_usd": about(null(NUMBER), "US dollars so far. null if no price is known."),
    "lost_calls": LOST_CALLS,
    "lost_usd": LOST_USD,
    "budget_usd": BUDGET_USD,
    "current_step": about(STRING, "What happens now, in words."),
    "queue_position": QUEUE_POSITION,
    "priority": members.PRIORITY,
    "incomplete": about(BOOLEAN, "Completed, but some rows have no answer."),
    "attempt": ATTEMPT,
    "error": about(null(STRING), "Why it failed or was cancelled, and what to do."),
    "parameters": about(OBJECT, "The sampling parameters of the run. Those of a row come first."),
    "limit": about(null(COUNT), "The most rows that it asks. null means all."),
    "seed": about(INTEGER, "The seed of the sample that `limit` takes."),
    "scoring": about(scoring.BODY, "How answers are scored."),
    "further_scorers": about(array(scoring.BODY), "Further scorers, whose metrics are reported, not scored."),
    "labels": about(table(STRING), LABELS),
    "source_benchmark": about(null(STRING), "The run whose answers are taken."),
}
BENCHMARK = shape(MEMBERS, name="Benchmark")


def benchmark_body(job: job_pb2.Job) -> dict[str, Any]:
    """The documented fields first."""
    work, progress, finished = job.spec.dataset, job.progress, is_finished(job)
    return {
        "benchmark_id": jobs.benchmark_id(job.job_id),
        "model_id": job.spec.model,
        "model_name": model_name(job.spec.model),
        "dataset_id": work.dataset_id,
        "dataset_name": work.name,
        "status": status_of(job.state),
        "phase": stage_of(job),
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
        "cost_usd": values.cost(progress),
        "lost_calls": values.lost_calls(job),
        "lost_usd": progress.lost_usd if job.spec.budget_usd else None,
        "budget_usd": job.spec.budget_usd or None,
        "current_step": progress.current_step,
        "queue_position": progress.queue_position or None,
        "priority": PRIORITIES.of(job.spec.priority) or None,
        "incomplete": job.incomplete,
        "attempt": job.attempt,
        "error": job.reason or None,
        "parameters": sampling_body(job.spec.sampling),
        "limit": work.limit or None,
        "seed": work.seed,
        "scoring": scoring.scoring_body(work.scoring) | ({"scorer": work.scorer} if work.scorer else {}),
        "further_scorers": [scoring.scoring_body(one) for one in work.further],
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
        raise NotFoundError(f"Job {job.job_id} runs {suite_of(job.spec)}, not a dataset. Read it as a job.")
    return job


DATASET = Parameter("dataset_id", text(100), "Only runs over this dataset.", "")
MODEL = Parameter("model", text(400), "Only this model, by its exact id.", "")
QUERY = Parameter("query", text(200), "A text in the model's id, in upper or lower case.", "")


async def benchmarks(call: Call) -> JSONResponse:
    """Newest first, with live figures; filters are joined by AND and `total` counts all matches."""
    query = call.query
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_token=query["page_token"],
        model=query["model"],
        suite=query["dataset_id"],
        states=states_of(query["status"]) if query["status"] else [],
        owner=query["owner"],
        project_id=query["project_id"],
        model_query=query["query"],
        datasets=True,
    )
    found: list[job_pb2.Job] = []
    while True:
        request.page_size = min(query["page_size"] - len(found), PAGE)
        answer = await call.ask(call.ctx.backend.results.ListJobs, request)
        found += answer.jobs
        if len(found) >= query["page_size"] or not answer.jobs or not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    return JSONResponse(
        {
            "benchmarks": [benchmark_body(job) for job in await _live(call, found)],
            "total": answer.total_size,
            "next_page_token": answer.next_page_token,
        }
    )


async def _live(call: Call, found: list[job_pb2.Job]) -> list[job_pb2.Job]:
    """The jobs, with the scheduler's figures for unfinished ones; the results service learns only of changes of state.
    While the scheduler is silent they stay unchanged."""
    if all(is_finished(job) for job in found):
        return found
    try:
        queue = await call.ctx.catalogue.queue()
    except TouchstoneError:
        return found
    known = {job.job_id: job for job in (*queue.running, *queue.scoring, *queue.pending)}
    missing = [job.job_id for job in found if not is_finished(job) and job.job_id not in known]
    # Jobs that have left the queue since the results service listed them.
    asked = await asyncio.gather(
        *(jobs.find(call.ctx.backend, job_id, call.caller) for job_id in missing), return_exceptions=True
    )
    known |= {job.job_id: job for job in asked if isinstance(job, job_pb2.Job)}
    return [job if is_finished(job) else known.get(job.job_id, job) for job in found]


async def show(call: Call) -> JSONResponse:
    """One run with its metrics, once it is finished. 404 for an unknown id."""
    job = await find(call)
    result = await jobs.result_of(call.ctx.backend, job.job_id, call.caller) if is_finished(job) else None
    metrics = [metric for task in result.tasks for metric in task.metrics] if result else []
    return JSONResponse(
        benchmark_body(job)
        | {
            "score": metric_body(result.suite_score) if result and result.HasField("suite_score") else None,
            "metrics": {metric.metric: metric_body(metric) for metric in metrics},
            "not_ranked_reason": (result.not_ranked_reason or None) if result else None,
            "caution": (result.caution or None) if result else None,
            "trouble": await call.ctx.catalogue.trouble(job) or None,
        }
    )


BENCHMARKS = Endpoint(
    "GET",
    "/benchmarks",
    benchmarks,
    "listBenchmarks",
    "List runs over datasets, newest first, with live figures.",
    answer=shape(
        {
            "benchmarks": about(array(BENCHMARK), "Newest first."),
            "total": about(COUNT, "The number of all matches."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Benchmarks",
    ),
    query=(DATASET, STATUS, MODEL, QUERY, PROJECT, OWNER, page_size(100, 500), PAGE_TOKEN),
    gives={"benchmark_id": "/benchmarks/0/benchmark_id"},
    base=ADMIN,
)
SHOW_BENCHMARK = Endpoint(
    "GET",
    "/benchmarks/{benchmark_id}",
    show,
    "getBenchmark",
    "Get a run, with its metrics when it is finished.",
    answer=shape(
        MEMBERS
        | {
            "score": about(null(SCORE), "The metric that ranks. null without references."),
            "metrics": about(table(SCORE), "The metrics by name."),
            "not_ranked_reason": about(null(STRING), "Why the run has no rank. null if it can have one."),
            "caution": CAUTION,
            "trouble": TROUBLE,
        },
        name="BenchmarkDetail",
    ),
    base=ADMIN,
)
