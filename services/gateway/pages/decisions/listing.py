"""The list of decisions, newest first, each with what it found: all of them, or those of one schedule, whose page this
is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.pages.decisions import sentences
from services.gateway.pages.decisions.page import address, of_schedule
from services.gateway.pages.display import formatting, work_words
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import decisions, jobs, schedules
from services.words.jobs import is_finished
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Row:
    """`job` is one that has not ended, or the one that ended the decision."""

    decision: decision_pb2.Decision
    address: str
    headline: str
    work: str
    asked: int
    saved: str
    difference: str
    interval: str
    question: str
    live: bool
    job: job_pb2.Job


async def index(request: Request) -> Response:
    """The list; for htmx only the part that changes. 404 for an unknown schedule that has started none."""
    ctx, caller = context.of(request), context.identity(request)
    after, schedule_id = (request.query_params.get(name, "") for name in ("after", "schedule"))
    call = results_service_pb2.ListDecisionsRequest(page_size=PAGE_SIZE, page_token=after, schedule_id=schedule_id[:36])
    await jobs.settle(ctx.backend, caller)
    found = await ctx.backend.ask(ctx.backend.results.ListDecisions, call, caller)
    rows = [_row(one) for one in found.decisions]
    here = of_schedule(schedule_id) if schedule_id else "/decisions"
    more = {"after": found.next_page_token} | ({"schedule": schedule_id} if schedule_id else {})
    values = {
        "rows": rows,
        "after": after,
        "here": here,
        "schedule_id": schedule_id,
        "more": f"/decisions?{urlencode(more)}" if found.next_page_token else "",
        "live": not after and any(row.live for row in rows),
    }
    if is_fragment(request):
        return fragment(request, "decisions/_list.html", values)
    if schedule_id:
        values |= await _of_schedule(request, schedule_id, rows)
    return await render(request, "decisions/index.html", "decisions", values)


async def _of_schedule(request: Request, schedule_id: str, rows: Sequence[Row]) -> dict[str, Any]:
    """What the page says of the schedule, which may have been deleted. Raises NotFoundError where nothing is known."""
    try:
        schedule = await schedules.find(context.of(request).backend, schedule_id, context.identity(request))
    except TouchstoneError as error:
        if isinstance(error, NotFoundError) and not rows:
            raise
        return {"schedule": None, "question": rows[0].question if rows else "", "problem": error.message}
    return {
        "schedule": schedule,
        "question": sentences.question([schedule.spec, *schedule.candidates]),
        "work": work_words.work_of(job_pb2.Job(spec=schedule.spec)),
        "problem": schedule.last_problem,
    }


def _row(found: decision_pb2.Decision) -> Row:
    all_ = decisions.jobs_of(found)
    # Without a pair, it is all that is possible.
    has_interval = all(found.HasField(name) for name in ("difference", "low", "high"))
    has_saved = bool(found.verdict) and found.HasField("saved")
    open_ = [job for job in all_ if not is_finished(job)]
    return Row(
        decision=found,
        address=address(found.decision_id),
        headline=sentences.headline(found),
        work=work_words.work_of(found.baseline),
        asked=decisions.asked_pairs(found),
        saved=formatting.share(found.saved.items, len(all_) * found.items_total) if has_saved else "",
        difference=formatting.change(found.difference) if found.HasField("difference") else formatting.MISSING,
        interval=f"{formatting.change(found.low)} to {formatting.change(found.high)}" if has_interval else "",
        question=sentences.question([job.spec for job in all_]),
        live=decisions.is_live(found),
        job=open_[0] if open_ else decisions.ended(found) or found.baseline,
    )
