"""`GET /results/{job_id}/logs`: what the services logged about a job."""

from __future__ import annotations

from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import one_of
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import STRING, TIME, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
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
    "List what the services logged about a job.",
    answer=shape(
        {
            "lines": about(
                array(
                    shape(
                        {
                            "logged_at": about(null(TIME), "When the line was written."),
                            "level": about(enum(*_LEVELS), "Its level."),
                            "source": about(STRING, "The service and its instance."),
                            "text": about(STRING, "The line."),
                        },
                        name="LogLine",
                    )
                ),
                "Oldest first.",
            ),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Logs",
    ),
    query=(
        Parameter("level", one_of(*_LEVELS), "This level and the ones above. `info` means all.", "info"),
        limit(200),
        PAGE_TOKEN,
    ),
)
