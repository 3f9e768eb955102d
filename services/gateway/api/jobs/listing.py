"""`GET /results`, `GET /history`, `POST /cancel/{job_id}` and `DELETE /jobs/{job_id}`."""

from __future__ import annotations

from typing import Any

from services.errors import ConflictError, NotFoundError
from services.gateway.api.answers import members
from services.gateway.api.answers.job import JOB_ROW, ROW, row
from services.gateway.api.answers.metrics import CAUTION, interval, mean_of
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import text
from services.gateway.fields.query import (
    DAYS,
    ENDPOINT,
    MODEL,
    NEXT_PAGE_TOKEN,
    OWNER,
    PAGE_TOKEN,
    PROJECT,
    STATUS,
    SUITE,
    Parameter,
    limit,
)
from services.gateway.fields.schema import COUNT, NUMBER, STRING, about, array, null, pair, shape, table
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.jobs import states_of, status_of
from services.words.refusals import counted
from touchstone.v1 import results_service_pb2, scheduler_service_pb2

PAGE = 100
"""Jobs per request: a thousand with their plans are too large for one gRPC message."""
QUERY = Parameter("query", text(200), "A text in the model's id, in upper or lower case.", "")
FILTERS = (MODEL, SUITE, ENDPOINT, STATUS, PROJECT, QUERY, OWNER)


def listing(call: Call) -> results_service_pb2.ResultsServiceListJobsRequest:
    """The list that the query's filters choose."""
    status = call.query["status"]
    return results_service_pb2.ResultsServiceListJobsRequest(
        model=call.query["model_name"],
        suite=call.query["suite"],
        endpoint=call.query["endpoint"],
        states=states_of(status) if status else [],
        owner=call.query["owner"],
        project_id=call.query["project_id"],
        model_query=call.query["query"],
    )


async def _pages(
    call: Call, request: results_service_pb2.ResultsServiceListJobsRequest, token: str
) -> results_service_pb2.ResultsServiceListJobsResponse:
    """Up to `limit` jobs from the list's `token` on, newest first, as they are now. Raises InvalidRequestError for an
    unknown suite."""
    request.page_token = token
    await jobs.settle(call.ctx.backend, call.caller)
    found = results_service_pb2.ResultsServiceListJobsResponse()
    left = call.query["limit"]
    while True:
        request.page_size = min(left, PAGE)
        answer = await call.ask(call.ctx.backend.results.ListJobs, request)
        found.jobs.extend(answer.jobs)
        found.scores.extend(answer.scores)
        found.total_size, found.next_page_token = answer.total_size, answer.next_page_token
        left -= len(answer.jobs)
        if left <= 0 or not answer.jobs or not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    room = 0 if token else left
    listed, fresh = await jobs.current(call.ctx.backend, request, found.jobs, call.caller, room)
    del found.jobs[:]
    found.jobs.extend(listed)
    found.total_size += fresh
    return found


async def list_results(call: Call) -> JSONResponse:
    """Jobs, newest first; filters are joined by AND and `total` counts all matches."""
    found = await _pages(call, listing(call), call.query["page_token"])
    rows = [row(job) for job in found.jobs]
    return JSONResponse({"results": rows, "total": found.total_size, "next_page_token": found.next_page_token})


async def history(call: Call) -> JSONResponse:
    """Jobs created in the last days with the scores of those that are sealed, newest first."""
    days = call.query["days"]
    start_ms, token = jobs.days_start(days, call.query["page_token"])
    request = listing(call)
    request.created_after.FromMilliseconds(start_ms)
    request.with_scores = True
    found = await _pages(call, request, token)
    token = found.next_page_token
    scores = {score.job_id: score for score in found.scores}
    rows = [row(job) | _score(scores.get(job.job_id)) for job in found.jobs]
    return JSONResponse(
        {
            "history": rows,
            "total_runs": found.total_size,
            "date_range": f"Last {counted(days, 'day')}",
            "next_page_token": jobs.days_token(days, start_ms, token),
        }
    )


def _score(scores: results_service_pb2.JobScores | None) -> dict[str, Any]:
    averages = {average.metric: average for average in scores.averages} if scores else {}
    score = averages.get("score")
    return {
        "score": mean_of(score) if score else None,
        "ci95": interval(score) if score else None,
        "metrics": {name: mean_of(average) for name, average in averages.items() if name != "score"},
        "not_ranked_reason": (scores.not_ranked_reason or None) if scores else None,
        "caution": (scores.caution or None) if scores else None,
    }


async def cancel(call: Call) -> JSONResponse:
    """Stops a job. 404 for an unknown id, 409 for a finished job."""
    await stop(call)
    return JSONResponse({"message": f"Job {call.job_id} cancelled successfully"})


async def stop(call: Call) -> None:
    """Stops the job in the path. Raises NotFoundError, and ConflictError for a finished one."""
    job_id = call.job_id
    try:
        request = scheduler_service_pb2.CancelJobRequest(job_id=job_id)
        await call.ask(call.ctx.backend.scheduler.CancelJob, request)
    except NotFoundError:
        # Only the results service remembers jobs that finished more than a day ago.
        job = await jobs.find(call.ctx.backend, job_id, call.caller)
        raise ConflictError(f"Job {job_id} is {status_of(job.state)} and cannot be cancelled.") from None


async def delete(call: Call) -> JSONResponse:
    """The audit trail keeps who deleted it. 404 for an unknown id, 409 for a job that is not finished and for one whose
    answers another job takes."""
    request = scheduler_service_pb2.DeleteJobRequest(job_id=call.job_id)
    await call.ask(call.ctx.backend.scheduler.DeleteJob, request)
    return JSONResponse({"message": f"Job {call.job_id} deleted"})


LIST = Endpoint(
    "GET",
    "/results",
    list_results,
    "listResults",
    "List jobs, newest first.",
    answer=shape(
        {
            "results": about(array(JOB_ROW), "Newest first."),
            "total": about(COUNT, "The number of all matches."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Results",
    ),
    query=(*FILTERS, limit(20), PAGE_TOKEN),
    gives={"job_id": "/results/0/job_id"},
)
HISTORY = Endpoint(
    "GET",
    "/history",
    history,
    "getHistory",
    "List the jobs of the last days with their scores.",
    answer=shape(
        {
            "history": about(
                array(
                    shape(
                        ROW
                        | {
                            "score": about(null(NUMBER), "The suite's score. null until the job is finished."),
                            "ci95": about(null(pair(NUMBER)), "The 95 % interval of `score`."),
                            "metrics": about(table(null(NUMBER)), "The suite's metrics by name."),
                            "not_ranked_reason": about(
                                null(STRING), "Why the run has no rank. null if it can have one."
                            ),
                            "caution": CAUTION,
                        },
                        name="HistoryRow",
                    )
                ),
                "Newest first.",
            ),
            "total_runs": about(COUNT, "The number of all matches."),
            "date_range": about(STRING, "The days that the answer covers, in words."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="History",
    ),
    query=(*FILTERS, DAYS, limit(100), PAGE_TOKEN),
    gives={"job_id": "/history/0/job_id"},
)
CANCEL = Endpoint(
    "POST",
    "/cancel/{job_id}",
    cancel,
    "cancelJob",
    "Cancel a job. Model calls end within two seconds.",
    answer=shape({"message": members.MESSAGE}, name="Message"),
    errors=(409,),
)
DELETE = Endpoint(
    "DELETE",
    "/jobs/{job_id}",
    delete,
    "deleteJob",
    "Delete a finished job with its answers and scores.",
    answer=shape({"message": members.MESSAGE}, name="Message"),
    errors=(409,),
)
