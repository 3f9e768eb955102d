"""Recorded runs, which calls through `/v1` with the header X-Touchstone-Run make."""

from __future__ import annotations

from typing import Any

from services.errors import InvalidRequestError
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, limit
from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, TIME, UUID, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from touchstone.v1 import results_service_pb2, scheduler_service_pb2
from touchstone.v1.call_pb2 import RecordedRun

_CLOSE_S = 600.0
"""A large run's requests are read and checked as an upload."""


async def list_runs(call: Call) -> JSONResponse:
    """Your own, newest first."""
    request = results_service_pb2.ListRecordedRunsRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"]
    )
    found = await call.ask(call.ctx.backend.results.ListRecordedRuns, request)
    runs = [_run(one) for one in found.runs]
    return JSONResponse({"runs": runs, "next_page_token": found.next_page_token})


async def close(call: Call) -> JSONResponse:
    """Waits up to five seconds for calls under way. Closing again returns the same jobs."""
    backend = call.ctx.backend
    request = results_service_pb2.CloseRecordedRunRequest(name=call.path["name"])
    made = await backend.ask(backend.results.CloseRecordedRun, request, call.caller, timeout_s=_CLOSE_S)
    ids = list(made.job_ids)
    if made.specs:
        queued = scheduler_service_pb2.CreateJobsRequest(request_id=made.request_id, specs=made.specs)
        try:
            ids = [job.job_id for job in (await call.ask(backend.scheduler.CreateJobs, queued)).jobs]
        except InvalidRequestError as error:
            # The scheduler names fields of its message, which users of the API never see.
            raise InvalidRequestError(error.message) from error
    return JSONResponse(_run(made.run) | {"dataset_id": made.dataset_id, "job_ids": ids})


async def delete(call: Call) -> JSONResponse:
    """404 for a run that has jobs: delete its dataset instead."""
    request = results_service_pb2.DeleteRecordedRunRequest(name=call.path["name"])
    answer = await call.ask(call.ctx.backend.results.DeleteRecordedRun, request)
    return JSONResponse(_run(answer.run) | {"deleted": True})


def _run(run: RecordedRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "name": run.name,
        "models": list(run.models),
        "opened_at": jobs.iso(run.opened_at),
        "last_call_at": jobs.iso(run.last_at),
        "calls": run.calls,
        "failed": run.failed,
        "unfinished": run.unfinished,
        "bytes": run.bytes,
        "cost_usd": run.cost_usd,
        "closed_at": jobs.iso(run.closed_at) if run.HasField("closed_at") else None,
    }


_RUN = {
    "run_id": about(UUID, "Its id: the `x-request-id` of the first call that ended."),
    "name": about(STRING, "The name in the header of its calls."),
    "models": about(array(STRING), "The models that were called, as `model@endpoint`."),
    "opened_at": about(TIME, "When its first call began."),
    "last_call_at": about(TIME, "When its last call began."),
    "calls": about(COUNT, "Calls that have ended."),
    "failed": about(COUNT, "Those of them without an answer."),
    "unfinished": about(
        COUNT,
        "Calls of this name under way, now or when it was closed. Each belongs to the run that is open at its end.",
    ),
    "bytes": about(COUNT, "Bytes of what was recorded."),
    "cost_usd": about(
        NUMBER,
        "US dollars: the known costs of its calls. With a budget, it includes what is reserved for calls whose cost is "
        "not known.",
    ),
    "closed_at": about(null(TIME), "When it was closed."),
}
LIST = Endpoint(
    "GET",
    "/recorded-runs",
    list_runs,
    "listRecordedRuns",
    "List your recorded runs that are open.",
    answer=shape(
        {
            "runs": about(array(shape(_RUN, name="RecordedRun")), "Newest first."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="RecordedRuns",
    ),
    query=(limit(100), PAGE_TOKEN),
)
CLOSE = Endpoint(
    "POST",
    "/recorded-runs/{name}/close",
    close,
    "closeRecordedRun",
    "Close a recorded run: make a dataset of its requests and a job of each model's answers.",
    answer=shape(
        {
            **_RUN,
            "dataset_id": about(STRING, "The dataset of its requests."),
            "job_ids": about(array(UUID), "Its jobs, one for each model in the order of `models`."),
        },
        name="ClosedRun",
    ),
)
DELETE = Endpoint(
    "DELETE",
    "/recorded-runs/{name}",
    delete,
    "deleteRecordedRun",
    "Delete what an open run has recorded.",
    answer=shape({**_RUN, "deleted": about(BOOLEAN, "Always true.")}, name="DeletedRun"),
)
