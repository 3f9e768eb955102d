"""`GET /results/{job_id}/logs`: what the services logged about a job."""

from __future__ import annotations

from services.gateway import jobs
from services.gateway.api.checks import one_of
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.query import PAGE_TOKEN, Parameter, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.schema import STRING, TIME, about, array, enum, null, shape
from services.gateway.responses import JSONResponse
from touchstone.v1 import scheduler_service_pb2

_LEVELS = ("info", "warning", "error")


async def logs(call: Call) -> JSONResponse:
    """Oldest first, kept for 14 days. 404 for an unknown job."""
    request = scheduler_service_pb2.ListJobLogsRequest(
        job_id=call.job_id,
        page_size=call.query["limit"],
        page_token=call.query["page_token"],
        level=call.query["level"],
    )
    found = await call.ask(call.ctx.backend.scheduler.ListJobLogs, request)
    lines = [
        {"logged_at": jobs.iso(line.logged_at), "level": line.level, "source": line.source, "text": line.text}
        for line in found.lines
    ]
    return JSONResponse({"lines": lines, "next_page_token": found.next_page_token})


LOGS = Endpoint(
    "GET",
    "/results/{job_id}/logs",
    logs,
    "listLogs",
    "What the services logged about a job, oldest first.",
    answer=shape(
        {
            "lines": array(
                shape(
                    {
                        "logged_at": null(TIME),
                        "level": enum(*_LEVELS),
                        "source": about(STRING, "Service and instance."),
                        "text": STRING,
                    },
                    name="LogLine",
                )
            ),
            "next_page_token": TOKEN,
        },
        name="Logs",
    ),
    query=(
        Parameter("level", one_of(*_LEVELS), "This level and above; `info` is all.", "info"),
        limit(200),
        PAGE_TOKEN,
    ),
)
