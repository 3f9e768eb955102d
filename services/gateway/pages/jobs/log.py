"""What happened to a job: its audit trail, and what the services logged about it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from services.errors import TouchstoneError
from services.gateway import context
from services.gateway.pages.display.work_words import heading
from services.gateway.pages.layout.shell import render
from services.gateway.reads import jobs
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

_LINES = 200
_CHANGES = 500
LEVELS = (("info", "all"), ("warning", "warnings and errors"), ("error", "errors"))


async def log_page(request: Request) -> Response:
    """The page, oldest first. 404 for an unknown job; a part whose service is silent says so in its place."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    level = request.query_params.get("level", "info")
    level = level if level in dict(LEVELS) else "info"
    trail = results_service_pb2.ListEventsRequest(job_id=job.job_id, page_size=_CHANGES)
    log = scheduler_service_pb2.ListJobLogsRequest(
        job_id=job.job_id, page_size=_LINES, level=level, page_token=request.query_params.get("after", "")
    )
    events: list[job_pb2.JobEvent] = []
    lines: list[scheduler_service_pb2.LogLine] = []
    events_problem = lines_problem = more = ""
    try:
        events = list((await ctx.backend.ask(ctx.backend.results.ListEvents, trail, caller)).events)
    except TouchstoneError as error:
        events_problem = error.message
    try:
        answer = await ctx.backend.ask(ctx.backend.scheduler.ListJobLogs, log, caller)
        lines, more = list(answer.lines), answer.next_page_token
    except TouchstoneError as error:
        lines_problem = error.message
    values = {
        "job": job,
        "suite_title": heading(job),
        "events": events,
        "events_problem": events_problem,
        "lines": lines,
        "lines_problem": lines_problem,
        "more": more,
        "level": level,
        "levels": LEVELS,
    }
    return await render(request, "jobs/log.html", "history", values)
