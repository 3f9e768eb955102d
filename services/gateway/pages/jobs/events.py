"""A job's event stream: whole regions, sent when they change, until the job is finished."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from services import rpc
from services.errors import TouchstoneError
from services.gateway import context
from services.gateway.access.auth import Caller
from services.gateway.context import Context
from services.gateway.pages.items.listing import FILTERS, listing
from services.gateway.pages.jobs.page import REGIONS, dataset_of, view
from services.gateway.pages.layout.shell import Shell
from services.gateway.reads import jobs
from services.gateway.reads.jobs import Feed, following
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, metric_pb2

RESULT_EVERY_S = 1.5
"""Seconds between requests for metrics; progress comes as it changes."""
ITEMS_EVERY_S = 2.0
"""Seconds between requests for items, or only their counts."""
SEND_EVERY_S = 0.5


async def events(request: Request) -> Response:
    """Server-sent events. 429 when the user has too many live pages open."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    every = request.query_params.get("every", "")
    pause = float(every) if every in ("1", "5", "30", "60") else SEND_EVERY_S
    with ctx.streams.slot(caller.user):
        # Refused here, while there is still a status to answer with; the stream takes its own slot when it starts.
        pass
    return StreamingResponse(
        _stream(request, ctx, job, pause),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(request: Request, ctx: Context, job: job_pb2.Job, pause: float) -> AsyncIterator[bytes]:
    caller = context.caller(request)
    with ctx.streams.slot(caller.identity.user):
        async with following(ctx.backend, job, caller.identity) as feed:
            async for message in _messages(ctx, feed, caller, pause):
                yield message


async def _messages(ctx: Context, feed: Feed, caller: Caller, pause: float) -> AsyncIterator[bytes]:
    shell = Shell("", caller, None, [])
    ends = time.monotonic() + ctx.settings.stream_max_age_s
    sent: dict[str, str] = {}
    result = metric_pb2.JobResult(job_id=feed.job.job_id)
    asked = listed = 0.0
    count = 0
    full = False
    yield b": open\n\n"
    while time.monotonic() < ends and not ctx.streams.stopping.is_set():
        feed.changed.clear()
        last = is_finished(feed.job)
        if last or (feed.job.progress.items_done and time.monotonic() - asked >= RESULT_EVERY_S):
            asked = time.monotonic()
            with contextlib.suppress(TouchstoneError):
                result = await jobs.result_of(ctx.backend, feed.job.job_id, caller.identity)
        stale = feed.seen.strftime("%H:%M:%S") if feed.silent else ""
        dataset = await dataset_of(ctx, feed.job, caller.identity)
        values = view(feed.job, result, caller.identity, dataset, stale, await ctx.catalogue.trouble(feed.job))
        parts = {
            name: ctx.templates.get_template(template).render(shell=shell, **values)
            for name, template in REGIONS.items()
        }
        if last or (feed.job.progress.items_done and time.monotonic() - listed >= ITEMS_EVERY_S):
            listed = time.monotonic()
            # Rows that fill a page stay as they are until the end; counts are updated.
            full = await _add_items(ctx, feed, caller.identity, shell, parts, rows=last or not full) or full
        with contextlib.suppress(TouchstoneError):
            queue = await ctx.catalogue.queue()
            shell_now = Shell("", caller, queue, [], queue.notice)
            parts["site-notice"] = ctx.templates.get_template("_site_notice.html").render(shell=shell_now)
            parts["queue"] = ctx.templates.get_template("_queue.html").render(shell=shell_now)
        fresh = {name: html for name, html in parts.items() if sent.get(name) != html}
        if fresh:
            sent |= fresh
            count += 1
            yield _message(count, fresh)
        if last:
            yield b"event: done\ndata: finished\n\n"
            return
        if not await feed.wait(ctx.streams, min(ctx.settings.heartbeat_s, RESULT_EVERY_S), pause):
            yield b": still here\n\n"


async def _add_items(
    ctx: Context, feed: Feed, caller: rpc.Identity, shell: Shell, parts: dict[str, str], *, rows: bool
) -> bool:
    """Adds the counts of items, and with `rows` their first page, to what may be sent; says whether more follow it."""
    try:
        if rows:
            found = await listing(ctx.backend, feed.job, caller, QueryParams())
        else:
            found = await listing(ctx.backend, feed.job, caller, QueryParams(), page_size=1)
    except TouchstoneError:
        return False
    if rows:
        template = ctx.templates.get_template("jobs/_items.html")
        parts["items"] = template.render(shell=shell, listing=found, items_problem="")
    for name, _, count in found.segments:
        parts[f"count-{name}"] = ctx.templates.get_template("jobs/_count.html").render(
            name=name, count=count, follows=True
        )
    return rows and bool(found.more)


# Rows that someone has filtered, searched or opened stay as they are: such a table no longer carries the mark.
# Counts of one task or of a search are not the whole job's.
_ONLY = {"items": "[data-live]"} | {f"count-{name}": "[data-follows]" for name in FILTERS}


def _message(number: int, parts: dict[str, str]) -> bytes:
    html = "".join(
        f'<hx-partial hx-target="#{name}{_ONLY.get(name, "")}" hx-swap="outerMorph">{part}</hx-partial>'
        for name, part in parts.items()
    )
    lines = "".join(f"data: {line}\n" for line in html.splitlines() if line.strip())
    return f"id: {number}\n{lines}\n".encode()
