"""A watch's page: whether the endpoint still has the model of the reference, since when not, and what changed."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.pages.display.work_words import heading
from services.gateway.pages.layout.shell import go_to, render
from services.gateway.pages.operations.settings import settings_error
from services.gateway.reads import jobs, schedules
from services.words import refusals
from services.words.watches import DAILY, DEFAULT_ITEMS, said
from touchstone.v1 import results_service_pb2, schedule_pb2, scheduler_service_pb2, watch_pb2

_SHOWN = 60
"""Of its runs, the newest."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run with the strongest of its signals, and how far that is on the way to the alarm, from 0 to 1."""

    run: watch_pb2.WatchRun
    signal: str
    way: float


async def watch_page(request: Request) -> Response:
    """404 for an unknown id; before its first run the page says when that is."""
    ctx, caller = context.of(request), context.identity(request)
    schedule_id = request.path_params["schedule_id"]
    schedule = await _schedule(request, schedule_id)
    watch = watch_pb2.Watch()
    problem = ""
    try:
        call = results_service_pb2.GetWatchRequest(schedule_id=schedule_id)
        watch = (await ctx.backend.ask(ctx.backend.results.GetWatch, call, caller)).watch
    except NotFoundError:
        if schedule is None:
            raise NotFoundError(refusals.not_found("Watch", schedule_id)) from None
    except TouchstoneError as error:
        problem = error.message
    reference_id = watch.reference_job_id or (schedule.spec.watching.reference_job_id if schedule else "")
    try:
        reference = await jobs.find(ctx.backend, reference_id, caller)
    except TouchstoneError:
        reference = None
    values = {
        "watch": watch,
        "schedule": schedule,
        "reference": reference,
        "reference_id": reference_id,
        "title": heading(reference) if reference else "",
        "problem": problem,
        "said": said(watch),
        "rows": [_row(run, watch.threshold) for run in reversed(watch.runs[-_SHOWN:])],
        "more": max(0, len(watch.runs) - _SHOWN),
    }
    return await render(request, "watches/show.html", "settings", values)


async def _schedule(request: Request, schedule_id: str) -> schedule_pb2.Schedule | None:
    """None for one that was deleted, for other schedules, and while the scheduler is silent."""
    try:
        found = await schedules.find(context.of(request).backend, schedule_id, context.identity(request))
    except TouchstoneError:
        return None
    return found if found.spec.HasField("watching") else None


def _row(run: watch_pb2.WatchRun, threshold: float) -> Row:
    evidence = {name: getattr(run, name) for name in ("score", "answers", "text")}
    signal = max(evidence, key=lambda name: evidence[name])
    way = evidence[signal] / threshold if run.asked and threshold > 0 else 0.0
    return Row(run, signal if way > 0 else "", min(max(way, 0.0), 1.0))


async def start_watch(request: Request) -> Response:
    """Watches against a completed job; what is wrong is said in the form."""
    ctx, caller = context.of(request), context.identity(request)
    form = await request.form()
    reference, again, cron, items, label = (
        str(form.get(name, "")).strip() for name in ("reference", "again", "cron", "items", "label")
    )
    try:
        call = scheduler_service_pb2.StartWatchRequest(
            request_id=str(form.get("request_id", "")),
            reference_job_id=jobs.checked_id(reference) if reference else "",
            again_job_id=jobs.checked_id(again) if again else "",
            cron=cron or DAILY,
            items=(int(items) if items.isdecimal() and len(items) < 6 else 0) or -1 if items else DEFAULT_ITEMS,
            label=label[:200],
        )
        made = await ctx.backend.ask(ctx.backend.scheduler.StartWatch, call, caller)
    except TouchstoneError as error:
        return await settings_error(request, error, "watches")
    return go_to(request, f"/watches/{made.schedule.schedule_id}")
