"""A person's verdict on an answer: golden, to be fixed, or wrong. It is given next to the answer."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.pages.items.listing import judging, repeat_of
from services.gateway.pages.items.rows import row_of
from services.gateway.pages.layout.shell import fragment
from services.gateway.reads import jobs
from services.words.enums import VERDICTS
from touchstone.v1 import results_service_pb2


async def annotate(request: Request) -> Response:
    """The updated part with the verdict; without script the item's page. Raises what the service answers."""
    ctx, caller = context.of(request), context.identity(request)
    form = await request.form()
    verdict = str(form.get("verdict", ""))
    if verdict not in VERDICTS:
        raise InvalidRequestError("Choose golden, fix or wrong.", "verdict")
    corrected = str(form.get("corrected_answer", "")).replace("\r\n", "\n") if verdict == "fix" else ""
    if verdict == "fix" and not corrected.strip():
        raise InvalidRequestError("Write the corrected answer, then choose Fix.", "corrected_answer")
    job_id, path = jobs.checked_id(request.path_params["job_id"]), request.path_params
    call = results_service_pb2.AnnotateItemRequest(
        job_id=job_id,
        task=path["task"],
        item=path["item"],
        repeat=repeat_of(request),
        verdict=VERDICTS[verdict],
        corrected_answer=corrected,
        note=str(form.get("note", "")).strip() if verdict != "none" else "",
    )
    stored = (await ctx.backend.ask(ctx.backend.results.AnnotateItem, call, caller)).item
    if "hx-request" in request.headers:
        values = {"row": row_of(stored), "stored": stored, "job_id": job_id, "may_change": True, "judged": True}
        return fragment(request, "jobs/_judge.html", values | judging(stored))
    address = f"/jobs/{job_id}/items/{quote(call.task, safe='')}/{call.item}"
    return RedirectResponse(f"{address}?repeat={call.repeat}" if call.repeat else address, 303)
