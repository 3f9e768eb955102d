"""`GET /set-aside`: stored messages that a service could not handle."""

from __future__ import annotations

from typing import Any

from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, limit
from services.gateway.fields.schema import COUNT, STRING, TIME, UUID, about, array, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
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
    "List the messages that a service could not handle. For admins.",
    answer=shape(
        {
            "messages": about(
                array(
                    shape(
                        {
                            "service": about(STRING, "The service that could not handle it."),
                            "stream": about(STRING, "The stream that it came on."),
                            "position": about(COUNT, "Its position in the stream."),
                            "subject": about(STRING, "Its subject."),
                            "reason": about(STRING, "Why the service could not handle it."),
                            "job_id": about(null(UUID), "Its job. null if the subject names none."),
                            "size": about(COUNT, "The size of its data in bytes."),
                            "at": about(null(TIME), "When it was set aside."),
                        },
                        name="SetAsideMessage",
                    )
                ),
                "Oldest first.",
            ),
            "total": about(COUNT, "The number of all messages."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="SetAsideMessages",
    ),
    query=(limit(100, 500), PAGE_TOKEN),
)
