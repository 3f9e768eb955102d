"""`GET /results/{job_id}`, at once or after a wait, and its `/events` and `/logs`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from services.gateway.api.answers.job import JOB, STATE, job_body, state_body, version
from services.gateway.api.declare.endpoint import JSON, Call, Endpoint
from services.gateway.fields.checks import integer, one_of, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import STRING, TIME, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse, json_text
from services.gateway.reads import jobs
from services.gateway.reads.jobs import following
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, scheduler_service_pb2

MOST_WAIT_S = 60
_EVENT_STREAM = "text/event-stream"
_SEND_EVERY_S = 0.5


async def results(call: Call) -> JSONResponse:
    """One job: status, progress, and its metrics once it is finished. 404 for an unknown id."""
    job = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    wait, since = call.query["wait"], call.query["since"] or version(job)
    if wait and version(job) == since and not is_finished(job):
        with call.ctx.waits.slot(call.caller.user):
            job = await _changed(call, job, since, wait)
    result = await jobs.result_of(call.ctx.backend, job.job_id, call.caller) if is_finished(job) else None
    return JSONResponse(job_body(job, result, await call.ctx.catalogue.trouble(job)))


async def _changed(call: Call, job: job_pb2.Job, since: str, wait_s: float) -> job_pb2.Job:
    """The job as soon as it differs from `since`, or at the end of the time."""
    ends = time.monotonic() + wait_s
    async with following(call.ctx.backend, job, call.caller) as feed:
        while version(feed.job) == since and not call.ctx.waits.stopping.is_set():
            left = ends - time.monotonic()
            feed.changed.clear()
            if left <= 0 or not await feed.wait(call.ctx.waits, left):
                break
        return feed.job


async def events(call: Call) -> Response:
    """The job's state as server-sent events: `job` whenever it changes, `done` when it is finished. 429 when the user
    has too many streams open."""
    job = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    with call.ctx.streams.slot(call.caller.user):
        # Refused here, while there is still a status to answer with; the stream takes its own slot when it starts.
        pass
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(call, job), media_type=_EVENT_STREAM, headers=headers)


async def _events(call: Call, job: job_pb2.Job) -> AsyncIterator[bytes]:
    ctx = call.ctx
    ends = time.monotonic() + ctx.settings.stream_max_age_s
    with ctx.streams.slot(call.caller.user):
        async with following(ctx.backend, job, call.caller) as feed:
            sent = b""
            while time.monotonic() < ends and not ctx.streams.stopping.is_set():
                feed.changed.clear()
                last = is_finished(feed.job)
                message = _message(
                    "done" if last else "job", state_body(feed.job, await ctx.catalogue.trouble(feed.job))
                )
                # With a silent scheduler the job does not change: then a comment keeps the connection open.
                yield message if message != sent else b": still here\n\n"
                sent = message
                if last:
                    return
                await feed.wait(ctx.streams, ctx.settings.heartbeat_s, _SEND_EVERY_S)


def _message(event: str, state: dict[str, Any]) -> bytes:
    return f"event: {event}\nid: {state['version']}\ndata: {json_text(state)}\n\n".encode()


_STATE = shape(STATE, name="JobState", optional=("error",))
_EVENT = shape(
    {
        "event": about(enum("job", "done"), "`job` for a change. `done` is the last event."),
        "id": about(STRING, "The `version` of the state."),
        "data": about(
            {"type": "string", "contentMediaType": JSON, "contentSchema": _STATE}, "The whole state of the job."
        ),
    },
    name="JobEvent",
)
_WAIT = Parameter("wait", integer(0, MOST_WAIT_S), "The most seconds to wait for a change before the answer.", 0)
_SINCE = Parameter("since", text(64), "The `version` that you know. The present one if absent.", "")
RESULTS = Endpoint(
    "GET",
    "/results/{job_id}",
    results,
    "getResults",
    "Get a job: its status and progress, and its metrics when it is finished.",
    answer=JOB,
    query=(_WAIT, _SINCE),
)
EVENTS = Endpoint(
    "GET",
    "/results/{job_id}/events",
    events,
    "watchResults",
    "Get a job's state as server-sent events, until it is finished.",
    answer=_EVENT,
    media=(_EVENT_STREAM,),
    streams=True,
)


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
