"""The Datasets page: the uploaded datasets, the form for uploads, and deletion."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import BadLinesError, ConflictError, TouchstoneError
from services.gateway import context
from services.gateway.http.responses import sentence_of, status_of
from services.gateway.pages.datasets.live import ask_live, counted
from services.gateway.pages.forms.scoring_form import ScoringForm
from services.gateway.pages.layout.shell import fragment, is_fragment, render
from services.gateway.reads import datasets, jobs
from services.gateway.uploads.dataset import received
from services.words import phrases
from services.words.enums import UPLOAD_FORMATS
from touchstone.v1 import dataset_service_pb2

PAGE_SIZE = 50
_REFUSALS = (400, 408, 413, 422, 429)
"""Statuses of an upload that may be corrected or sent again: the page says why."""


async def index(request: Request) -> Response:
    """The page, or only the list for an htmx search."""
    values = await _values(request)
    if is_fragment(request):
        return fragment(request, "datasets/_list.html", values)
    return await render(request, "datasets/index.html", "datasets", values)


async def upload(request: Request) -> Response:
    """An upload without script: leads to the dataset, or back to the page with the file's faults."""
    try:
        made = await received(request)
    except (TouchstoneError, HTTPException) as error:
        if status_of(error) not in _REFUSALS:
            raise
        reasons, more = (error.reasons, error.other_lines) if isinstance(error, BadLinesError) else ((), 0)
        refused = {"sentence": sentence_of(error), "reasons": reasons, "more": more}
        values = await _values(request) | {"refused": refused}
        return await render(request, "datasets/index.html", "datasets", values, status_of(error))
    return RedirectResponse(f"/datasets/{made.dataset_id}", 303)


async def delete(request: Request) -> Response:
    """Deletes the dataset and shows the list; if a run uses it, the list says so and nothing is deleted."""
    ctx, caller = context.of(request), context.identity(request)
    dataset_id = jobs.checked_dataset(request.path_params["dataset_id"])
    try:
        await datasets.delete(ctx.backend, dataset_id, caller)
    except ConflictError as error:
        values = await _values(request) | {"kept": error.message, "kept_id": dataset_id}
        return await render(request, "datasets/index.html", "datasets", values, 409)
    return RedirectResponse("/datasets", 303)


async def _values(request: Request) -> dict[str, Any]:
    ctx, caller = context.of(request), context.identity(request)
    query = request.query_params.get("query", "").strip()[:200] if request.method == "GET" else ""
    after = request.query_params.get("after", "") if request.method == "GET" else ""
    call = dataset_service_pb2.ListDatasetsRequest(page_size=PAGE_SIZE, page_token=after, query=query)
    found = await ctx.backend.ask(ctx.backend.datasets.ListDatasets, call, caller)
    try:
        live = counted(await ask_live(request))
    except TouchstoneError:
        live = None
    more = {"query": query, "after": found.next_page_token}
    return {
        "datasets": found.datasets,
        "finished_jobs": dict(zip((one.dataset_id for one in found.datasets), found.finished_jobs, strict=True)),
        "total": found.total_size,
        "query": query,
        "after": after,
        "more": "/datasets?" + urlencode({k: v for k, v in more.items() if v}) if found.next_page_token else "",
        "live": live,
        "caller": caller,
        "scoring": ScoringForm(),
        "scorers": await ctx.catalogue.scorers(),
        "formats": {word: phrases.DATASET_FORMATS[form] for word, form in UPLOAD_FORMATS.items()},
        "most_bytes": ctx.settings.upload_max_bytes,
        "refused": None,
        "kept": "",
        "kept_id": "",
    }
