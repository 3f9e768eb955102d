"""The event stream that all pages of a browser share.

Each `pulse` has the time, a sentence while a service is silent, marks that change with what pages show, and the regions
of the frame that changed. Each `job` has the regions of a job's page that changed. They are always whole regions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from services import rpc
from services.bus import end_tasks
from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.access.auth import Caller
from services.gateway.context import Context
from services.gateway.pages.items.listing import FILTERS, listing
from services.gateway.pages.jobs.page import REGIONS, dataset_of, view
from services.gateway.pages.layout.shell import Shell
from services.gateway.reads import jobs
from services.gateway.reads.jobs import RECONNECT_S, Feed, following
from services.words.jobs import is_finished
from touchstone.v1 import job_pb2, metric_pb2

log = logging.getLogger(__name__)

MOST_JOBS = 50
"""Jobs that one stream follows; pages of further ones stay as they are."""
RESULT_EVERY_S = 1.5
"""Seconds between requests for metrics; progress comes as it changes."""
ITEMS_EVERY_S = 2.0
"""Seconds between requests for items, or only their counts."""
SEND_EVERY_S = 0.5
PULSE_EVERY_S = 1.0
"""The most seconds between two pulses. The browser takes a longer silence for a lost connection."""
_FRAME = {"#queue": "_queue.html", "#waiting-count": "_waiting.html", "#site-notice": "_site_notice.html"}
_Outbox = asyncio.Queue[bytes]


async def events(request: Request) -> Response:
    """Server-sent events about the services, and about the job of each `job`. 429 when the user has too many streams
    open."""
    ctx, caller = context.of(request), context.caller(request)
    followed = dict.fromkeys(request.query_params.getlist("job"))
    with ctx.streams.slot(caller.identity.user):
        # Refused here, while there is still a status to answer with; the stream takes its own slot when it starts.
        pass
    return StreamingResponse(
        _stream(ctx, caller, [*followed][:MOST_JOBS]),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(ctx: Context, caller: Caller, followed: list[str]) -> AsyncIterator[bytes]:
    ends = time.monotonic() + ctx.settings.stream_max_age_s
    outbox: _Outbox = asyncio.Queue(1)
    with ctx.streams.slot(caller.identity.user):
        async with ctx.pulse.beating():
            works = [_pulses(ctx, caller, outbox), *(_job(ctx, caller, job_id, outbox) for job_id in followed)]
            tasks = [asyncio.create_task(_watched(work, outbox)) for work in works]
            try:
                yield b": open\n\n"
                while time.monotonic() < ends and not ctx.streams.stopping.is_set():
                    message = await outbox.get()
                    if not message:
                        return
                    yield message
            finally:
                await end_tasks(tasks)


async def _watched(work: Coroutine[Any, Any, None], outbox: _Outbox) -> None:
    """A stream that lacks a part ends: the browser then connects again, and says so if that fails."""
    try:
        await work
    except Exception:
        log.exception("an event stream ended")
        await outbox.put(b"")


async def _pulses(ctx: Context, caller: Caller, outbox: _Outbox) -> None:
    sent: dict[str, str] = {}
    while True:
        fresh: dict[str, str] = {}
        # Before the first answer of the scheduler, the frame is as the page was drawn.
        if ctx.pulse.marks or ctx.pulse.silence:
            shell = Shell("", caller, ctx.pulse.queue, [], ctx.pulse.notice)
            drawn = {name: ctx.templates.get_template(file).render(shell=shell) for name, file in _FRAME.items()}
            fresh = _fresh(sent, drawn)
        at = datetime.now(UTC).strftime("%H:%M:%S")
        pulse = {
            "at": at,
            "silence": ctx.pulse.silence,
            "answering": ctx.pulse.answering,
            "marks": ctx.pulse.marks,
            "parts": fresh,
        }
        await outbox.put(_message("pulse", pulse))
        await ctx.pulse.turn(PULSE_EVERY_S)


async def _job(ctx: Context, caller: Caller, job_id: str, outbox: _Outbox) -> None:
    """Sends a job's regions until it is finished; nothing for one that the caller may not see."""
    job: job_pb2.Job | None = None
    while job is None:
        try:
            job = await jobs.find(ctx.backend, job_id, caller.identity)
        except NotFoundError:
            return
        except TouchstoneError:
            await asyncio.sleep(RECONNECT_S)
    async with following(ctx.backend, job, caller.identity) as feed:
        await _regions(ctx, feed, caller, outbox)


async def _regions(ctx: Context, feed: Feed, caller: Caller, outbox: _Outbox) -> None:
    shell = Shell("", caller, None, [])
    sent: dict[str, str] = {}
    result = metric_pb2.JobResult(job_id=feed.job.job_id)
    asked = listed = 0.0
    full = last = False
    previous: job_pb2.Job | None = None
    while not last:
        feed.changed.clear()
        last = is_finished(feed.job)
        if last or (feed.job.progress.items_done and time.monotonic() - asked >= RESULT_EVERY_S):
            asked = time.monotonic()
            with contextlib.suppress(TouchstoneError):
                result = await jobs.result_of(ctx.backend, feed.job.job_id, caller.identity)
        dataset = await dataset_of(ctx, feed.job, caller.identity)
        due = last or bool(feed.job.progress.items_done and time.monotonic() - listed >= ITEMS_EVERY_S)
        if last or (due and not full):
            previous, _ = await jobs.runs_around(ctx.backend, feed.job, caller.identity)
        values = view(feed.job, result, caller.identity, dataset, previous, await ctx.catalogue.trouble(feed.job))
        parts = {
            f"#{name}": ctx.templates.get_template(template).render(shell=shell, **values)
            for name, template in REGIONS.items()
        }
        if due:
            listed = time.monotonic()
            # Rows that fill a page stay as they are until the end; counts are updated.
            full = await _add_items(ctx, feed, caller.identity, shell, parts, previous, rows=last or not full) or full
        if fresh := _fresh(sent, parts):
            await outbox.put(_message("job", {"job": feed.job.job_id, "parts": fresh, "done": last}))
        if not last:
            await feed.wait(ctx.streams, RESULT_EVERY_S, SEND_EVERY_S)


async def _add_items(
    ctx: Context,
    feed: Feed,
    caller: rpc.Identity,
    shell: Shell,
    parts: dict[str, str],
    previous: job_pb2.Job | None,
    *,
    rows: bool,
) -> bool:
    """Adds the counts of items, and with `rows` their first page, to what may be sent; says whether more follow it."""
    try:
        if rows:
            found = await listing(ctx.backend, feed.job, caller, QueryParams(), previous)
        else:
            found = await listing(ctx.backend, feed.job, caller, QueryParams(), None, page_size=1)
    except TouchstoneError:
        return False
    # Rows that someone has filtered, searched or opened stay as they are: such a table no longer carries the mark.
    # Counts of one task or of a search are not the whole job's.
    if rows:
        template = ctx.templates.get_template("jobs/_items.html")
        parts["#items[data-live]"] = template.render(shell=shell, listing=found, items_problem="")
    for name, _, count in found.segments:
        mark = "[data-follows]" if name in FILTERS else ""
        parts[f"#count-{name}{mark}"] = ctx.templates.get_template("jobs/_count.html").render(
            name=name, count=count, follows=True
        )
    return rows and bool(found.more)


def _fresh(sent: dict[str, str], parts: dict[str, str]) -> dict[str, str]:
    """The parts that differ from what was sent; they count as sent from then on."""
    fresh = {name: html for name, html in parts.items() if sent.get(name) != html}
    sent |= fresh
    return fresh


def _message(event: str, data: Mapping[str, object]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
