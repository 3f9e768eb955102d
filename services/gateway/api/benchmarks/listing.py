"""`GET /admin/benchmarks` and one of them."""

from __future__ import annotations

import asyncio

from services.errors import TouchstoneError
from services.gateway import jobs
from services.gateway.api.benchmarks.body import BENCHMARK, MEMBERS, benchmark_body, find
from services.gateway.api.checks import text
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.metrics import CAUTION, SCORE, metric_body
from services.gateway.api.query import PAGE_TOKEN, PROJECT, STATUS, Parameter, page_size
from services.gateway.api.results import OWNER, PAGE, TOKEN
from services.gateway.api.schema import COUNT, STRING, about, array, null, shape, table
from services.gateway.responses import JSONResponse
from touchstone.v1 import job_pb2, results_service_pb2

DATASET = Parameter("dataset_id", text(100), "Only runs over this dataset.", "")
MODEL = Parameter("model", text(400), "Only this model, by its exact id.", "")
QUERY = Parameter("query", text(200), "Text that the model's name contains, in upper or lower case.", "")


async def benchmarks(call: Call) -> JSONResponse:
    """Newest first, with live figures; filters are joined by AND and `total` counts all matches."""
    query = call.query
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_token=query["page_token"],
        model=query["model"],
        suite=query["dataset_id"],
        states=jobs.states(query["status"]) if query["status"] else [],
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
    """The jobs with what the scheduler knows of those that are not finished; results hears of changes of state alone.
    While the scheduler is silent they stay as they are."""
    if all(jobs.is_finished(job) for job in found):
        return found
    try:
        queue = await call.ctx.catalogue.queue()
    except TouchstoneError:
        return found
    known = {job.job_id: job for job in (*queue.running, *queue.scoring, *queue.pending)}
    missing = [job.job_id for job in found if not jobs.is_finished(job) and job.job_id not in known]
    # What has left the queue since results told of it.
    asked = await asyncio.gather(
        *(jobs.find(call.ctx.backend, job_id, call.caller) for job_id in missing), return_exceptions=True
    )
    known |= {job.job_id: job for job in asked if isinstance(job, job_pb2.Job)}
    return [job if jobs.is_finished(job) else known.get(job.job_id, job) for job in found]


async def show(call: Call) -> JSONResponse:
    """One run with its metrics, once it is finished. 404 for an unknown id."""
    job = await find(call)
    result = await jobs.result_of(call.ctx.backend, job.job_id, call.caller) if jobs.is_finished(job) else None
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
    "Runs over datasets, newest first, with live figures.",
    answer=shape(
        {"benchmarks": array(BENCHMARK), "total": about(COUNT, "All matches."), "next_page_token": TOKEN},
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
    "One run over a dataset, with its metrics once it is finished.",
    answer=shape(
        MEMBERS
        | {
            "score": about(null(SCORE), "The mean of the metric that ranks; null without references."),
            "metrics": table(SCORE),
            "not_ranked_reason": null(STRING),
            "caution": CAUTION,
            "trouble": about(null(STRING), "What keeps the endpoint of a running one from answering now."),
        },
        name="BenchmarkDetail",
    ),
    base=ADMIN,
)
