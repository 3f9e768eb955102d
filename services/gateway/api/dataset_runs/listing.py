"""`GET /admin/benchmarks` and one of them."""

from __future__ import annotations

import asyncio

from services.errors import TouchstoneError
from services.gateway.api.answers.job import TROUBLE
from services.gateway.api.answers.metrics import CAUTION, SCORE, metric_body
from services.gateway.api.dataset_runs.body import BENCHMARK, MEMBERS, benchmark_body, find
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.jobs.listing import PAGE
from services.gateway.fields.checks import text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, OWNER, PAGE_TOKEN, PROJECT, STATUS, Parameter, page_size
from services.gateway.fields.schema import COUNT, STRING, about, array, null, shape, table
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.jobs import is_finished, states_of
from touchstone.v1 import job_pb2, results_service_pb2

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
