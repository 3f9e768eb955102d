"""`GET /set-aside`: stored messages that a service could not handle."""

from __future__ import annotations

from typing import Any

from services.gateway import jobs
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.query import PAGE_TOKEN, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.schema import COUNT, STRING, TIME, UUID, about, array, null, shape
from services.gateway.responses import JSONResponse
from touchstone.v1 import scheduler_service_pb2, set_aside_pb2


async def set_aside(call: Call) -> JSONResponse:
    """Oldest first, kept for 30 days. 403 for callers who are not admins."""
    request = scheduler_service_pb2.ListSetAsideMessagesRequest(
        page_size=call.query["limit"], page_token=call.query["page_token"]
    )
    found = await call.ask(call.ctx.backend.scheduler.ListSetAsideMessages, request)
    return JSONResponse(
        {
            "messages": [_message(one) for one in found.messages],
            "total": found.total,
            "next_page_token": found.next_page_token,
        }
    )


def _message(one: set_aside_pb2.SetAsideMessage) -> dict[str, Any]:
    return {
        "service": one.service,
        "stream": one.stream,
        "position": one.sequence,
        "subject": one.subject,
        "reason": one.reason,
        "job_id": one.job_id or None,
        "size": one.size,
        "at": jobs.iso(one.set_aside_at),
    }


SET_ASIDE = Endpoint(
    "GET",
    "/set-aside",
    set_aside,
    "listSetAsideMessages",
    "Messages that a service could not handle, oldest first; for admins.",
    answer=shape(
        {
            "messages": array(
                shape(
                    {
                        "service": about(STRING, "The service that could not handle it."),
                        "stream": STRING,
                        "position": about(COUNT, "In the stream."),
                        "subject": STRING,
                        "reason": STRING,
                        "job_id": about(null(UUID), "null where the subject names no job."),
                        "size": about(COUNT, "Bytes of its data."),
                        "at": about(null(TIME), "When it was set aside."),
                    },
                    name="SetAsideMessage",
                )
            ),
            "total": about(COUNT, "All messages."),
            "next_page_token": TOKEN,
        },
        name="SetAsideMessages",
    ),
    query=(limit(100, 500), PAGE_TOKEN),
)
