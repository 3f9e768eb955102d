"""The list of decisions, newest first, each with what it found."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from services.gateway import context
from services.gateway.pages.decisions import sentences
from services.gateway.pages.decisions.page import address
from services.gateway.pages.display import formatting, work_words
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import decisions, jobs
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
    live: bool
    job: job_pb2.Job


async def index(request: Request) -> Response:
    """The list; for htmx only the part that changes."""
    ctx, caller = context.of(request), context.identity(request)
    after = request.query_params.get("after", "")
    call = results_service_pb2.ListDecisionsRequest(page_size=PAGE_SIZE, page_token=after)
    await jobs.settle(ctx.backend, caller)
    found = await ctx.backend.ask(ctx.backend.results.ListDecisions, call, caller)
    rows = [_row(one) for one in found.decisions]
    values = {
        "rows": rows,
        "after": after,
        "more": f"/decisions?{urlencode({'after': found.next_page_token})}" if found.next_page_token else "",
        "live": not after and any(row.live for row in rows),
    }
    if is_fragment(request):
        return fragment(request, "decisions/_list.html", values)
    return await render(request, "decisions/index.html", "decisions", values)


def _row(found: decision_pb2.Decision) -> Row:
    all_ = decisions.jobs_of(found)
    open_ = [job for job in all_ if not is_finished(job)]
    return Row(
        decision=found,
        address=address(found.decision_id),
        headline=sentences.headline(found),
        work=work_words.work_of(found.baseline),
        asked=decisions.asked_pairs(found),
        saved=formatting.share(found.saved.items, len(all_) * found.items_total) if found.HasField("saved") else "",
        live=decisions.is_live(found),
        job=open_[0] if open_ else decisions.ended(found) or found.baseline,
    )
