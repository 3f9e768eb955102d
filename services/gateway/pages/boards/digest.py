"""The page that says what changed in a time."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from services.gateway import context
from services.gateway.pages.layout.shell import render
from services.gateway.reads import datasets
from services.gateway.reads.questions import DIGEST_S, digest_request
from services.words.digests import DAYS, MOST_DAYS, NOTHING_BEFORE, asked, changes
from services.words.enums import COMPARISON_VERDICTS

_CHOICES = (1, 7, 30, 90)


async def digest_page(request: Request) -> Response:
    """Of the last week, or of the days and the schedule in the address."""
    ctx, caller = context.of(request), context.identity(request)
    given = request.query_params.get("days", "")
    days = int(given) if given.isdecimal() and len(given) < 6 and 1 <= int(given) <= MOST_DAYS else DAYS
    schedule_id = request.query_params.get("schedule", "")[:36]
    call = digest_request(days, "", schedule_id, 0)
    found = await ctx.backend.ask(ctx.backend.results.GetDigest, call, caller, timeout_s=DIGEST_S)
    # Verdicts that turned are between two of the series.
    suites = {one.suite for one in found.digest.series}
    names = await asyncio.gather(*(datasets.name_of(ctx.backend, suite, caller) for suite in suites))
    values = {
        "digest": found.digest,
        "names": dict(zip(suites, names, strict=True)),
        "days": days,
        "choices": _CHOICES,
        "schedule_id": schedule_id,
        "changes": changes,
        "asked": asked,
        "nothing_before": NOTHING_BEFORE,
        "verdict": lambda value: COMPARISON_VERDICTS.of(value).replace("_", " "),
    }
    return await render(request, "digest/index.html", "overview", values)
