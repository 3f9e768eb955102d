"""One dataset: its runs, the form that starts them, its rows, and its facts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services.errors import NotFoundError, TouchstoneError
from services.gateway import context
from services.gateway.pages.datasets import live
from services.gateway.pages.display import conversation, palette, work_words
from services.gateway.pages.forms.dataset_form import PILOT_ROWS, RunForm, groups
from services.gateway.pages.forms.scoring_form import ScoringForm
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.pages.runs.page import queue_once, refusal
from services.gateway.reads import jobs
from services.gateway.reads.datasets import row_body
from services.words.sampling import offered as offered_to
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2

ROWS = 10


async def show(request: Request) -> Response:
    """The page, or more rows of the preview when htmx asks for them."""
    if is_fragment(request) and request.query_params.get("after"):
        return fragment(request, "datasets/_rows.html", await _rows(request, _id(request)))
    found = await _found(request, _id(request))
    own = ScoringForm.of(found.dataset.scoring)
    form = RunForm(scoring=own)
    if request.query_params:
        # A link may fill the form in.
        form = RunForm.read(request.query_params)
        form.scoring.own = own.own
        form.scoring.texts = own.texts | {name: text for name, text in form.scoring.texts.items() if text}
    return await _page(request, found, form, 200)


async def runs(request: Request) -> Response:
    """Live runs as they are now. If one began or ended since the caller's last request, the answer includes finished
    ones. 204 while the scheduler is silent: the page stays as it is and asks again."""
    dataset_id = _id(request)
    try:
        now = live.over(dataset_id, await live.ask_live(request))
        own: dict[str, Any] = {}
        if request.query_params.get("known") != live.mark(now):
            own["own_scoring"] = work_words.scoring_words((await _found(request, dataset_id)).dataset.scoring)
        return await live.changes(request, dataset_id, now, own)
    except TouchstoneError:
        return Response(status_code=204)


async def start(request: Request) -> Response:
    """Queues a job for each chosen model, or a pilot of each. 422 with a sentence under each wrong field."""
    form = RunForm.read(await request.form())
    found = await _found(request, _id(request))
    dataset = found.dataset
    form.scoring.own = ScoringForm.of(dataset.scoring).own
    specs = list(form.specs(dataset, await _kinds(request)))
    if not form.errors and not form.scoring.errors:
        try:
            await queue_once(request, form.request_id, specs)
            return go_to(request, f"/datasets/{dataset.dataset_id}")
        except TouchstoneError as error:
            form.failure = refusal(error)
    if "hx-request" in request.headers:
        return fragment(request, "datasets/_run.html", {"dataset": dataset} | await _form(request, form), 422)
    return await _page(request, found, form, 422)


async def _kinds(request: Request) -> dict[str, str]:
    """The endpoints' kinds by their names; none while the scheduler is silent."""
    try:
        return {one.endpoint: one.kind for one in await context.of(request).catalogue.endpoints()}
    except TouchstoneError:
        return {}


async def _page(
    request: Request, found: dataset_service_pb2.GetDatasetResponse, form: RunForm, status: int
) -> Response:
    dataset, dataset_id = found.dataset, found.dataset.dataset_id
    rows, offered, active = await asyncio.gather(
        _rows(request, dataset_id), _form(request, form), _active(request, dataset_id)
    )
    past, problem = None, ""
    try:
        past = await live.finished(request, dataset_id, active)
    except TouchstoneError as error:
        problem = error.message
    caller = context.identity(request)
    values = {
        "dataset": dataset,
        "dataset_id": dataset_id,
        "facts": work_words.facts(dataset),
        "finished_jobs": found.finished_jobs,
        "may_change": caller.is_admin or caller.user == dataset.owner,
        "active": active,
        "mark": live.mark(active),
        "finished": past,
        "own_scoring": work_words.scoring_words(dataset.scoring),
        "problem": problem,
        "slots": await live.slots(request, active, past),
    }
    return await render(request, "datasets/show.html", "datasets", values | rows | offered, status)


def _id(request: Request) -> str:
    return jobs.checked_dataset(request.path_params["dataset_id"])


async def _found(request: Request, dataset_id: str) -> dataset_service_pb2.GetDatasetResponse:
    ctx = context.of(request)
    call = dataset_service_pb2.GetDatasetRequest(dataset_id=dataset_id)
    try:
        return await ctx.backend.ask(ctx.backend.datasets.GetDataset, call, context.identity(request))
    except NotFoundError as error:
        raise NotFoundError("Dataset not found, or it was deleted. Results of its runs are in History.") from error


async def _rows(request: Request, dataset_id: str) -> dict[str, Any]:
    ctx = context.of(request)
    after = request.query_params.get("after", "")
    call = dataset_service_pb2.ListDatasetRowsRequest(dataset_id=dataset_id, page_size=ROWS, page_token=after)
    answer = await ctx.backend.ask(ctx.backend.datasets.ListDatasetRows, call, context.identity(request))
    rows = [_row(number, row) for number, row in enumerate(answer.rows, answer.first)]
    return {"rows": rows, "more": answer.next_page_token, "dataset_id": dataset_id}


def _row(number: int, row: dataset_pb2.DatasetRow) -> dict[str, Any]:
    """Parameters are in the order in which they are sent."""
    body = row_body(number, row)
    asks_for = json.dumps(body["parameters"], ensure_ascii=False)
    return body | {"turns": conversation.of_row(row), "asks_for": asks_for}


async def _active(request: Request, dataset_id: str) -> list[job_pb2.Job]:
    """Live runs; none while the scheduler is silent."""
    try:
        return live.over(dataset_id, await live.ask_live(request))
    except TouchstoneError:
        return []


async def _form(request: Request, form: RunForm) -> dict[str, Any]:
    """What the form is drawn from; without models while the scheduler is silent."""
    catalogue, trouble = context.of(request).catalogue, ""
    try:
        offered = await groups(catalogue)
        slots = palette.assign(await catalogue.model_keys())
    except TouchstoneError as error:
        offered, slots, trouble = [], {}, error.message
    choices = [choice for group in offered for choice in group.choices]
    return {
        "form": form,
        "groups": offered,
        "model_slots": slots,
        "trouble": trouble,
        "scorers": await catalogue.scorers(),
        "has_prices": any(c.model.HasField("prices") for c in choices),
        "has_sizes": any(c.model.parameters_b or c.model.disk_bytes or c.model.memory_bytes for c in choices),
        "parameters": offered_to({group.endpoint.kind for group in offered}),
        "pilot_rows": PILOT_ROWS,
    }
