"""The form that starts a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import context
from services.gateway.pages.decisions.page import address, of_schedule
from services.gateway.pages.display.work_words import is_scored
from services.gateway.pages.forms.dataset_form import Group, groups
from services.gateway.pages.forms.decision_form import ERROR, MARGIN, SIDES, DecisionForm, of_side, own_field
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.pages.runs.page import refusal
from services.gateway.reads import estimate
from services.words.enums import PRIORITIES
from touchstone.v1 import dataset_pb2, dataset_service_pb2, suite_pb2

_MOST_DATASETS = 100


async def form_page(request: Request) -> Response:
    """The form; for one that is being filled in, only what it may cost."""
    form = DecisionForm.read(request.query_params)
    values = await _values(request, form)
    if is_fragment(request):
        return fragment(request, "decisions/_estimate.html", values)
    return await render(request, "decisions/new.html", "decisions", values)


async def start(request: Request) -> Response:
    """Queues both jobs and shows the decision, or creates a schedule and shows that. 422 with a sentence under each
    wrong field."""
    form = DecisionForm.read(await request.form())
    backend, caller, call = context.of(request).backend, context.identity(request), form.request()
    if not form.errors:
        try:
            if form.times["cron"]:
                scheduled = await backend.ask(backend.scheduler.CreateSchedule, form.schedule(call), caller)
                return go_to(request, of_schedule(scheduled.schedule.schedule_id))
            made = await backend.ask(backend.scheduler.StartDecision, call, caller)
            return go_to(request, address(made.decision_id))
        except TouchstoneError as error:
            if isinstance(error, InvalidRequestError) and error.field in form.times:
                form.errors[error.field] = error.message
            else:
                form.failure = refusal(error)
    values = await _values(request, form)
    if "hx-request" in request.headers:
        return fragment(request, "decisions/_form.html", values, 422)
    return await render(request, "decisions/new.html", "decisions", values, 422)


async def _values(request: Request, form: DecisionForm) -> dict[str, Any]:
    """What the form is drawn from; without models and suites while the scheduler is silent."""
    catalogue, trouble = context.of(request).catalogue, ""
    offered: list[Group] = []
    suites: list[suite_pb2.Suite] = []
    try:
        offered = await groups(catalogue)
        # A task of an open suite has no list to choose from.
        suites = [suite for suite in await catalogue.suites() if not suite.open]
    except TouchstoneError as error:
        trouble = error.message
    datasets = await _datasets(request)
    listed = {f"{group.endpoint.endpoint}|{choice.model.model}" for group in offered for choice in group.choices}
    known = {*(suite.suite for suite in suites), *(one.dataset_id for one in datasets)}
    return {
        "form": form,
        "sides": SIDES,
        "of_side": of_side,
        "own_field": own_field,
        "margin": MARGIN,
        "error": ERROR,
        "groups": offered,
        "suites": suites,
        "datasets": datasets,
        "trouble": trouble,
        # What is no longer listed stays chosen, so that nothing of the form is lost.
        "unlisted_further": [model for model in form.further if model not in listed],
        "unlisted": {side: model for side, model in form.models.items() if model and model not in listed},
        "unknown_work": form.work if form.work not in known else "",
        "priorities": tuple(PRIORITIES),
        "items": _items(form, suites, datasets),
    }


async def _datasets(request: Request) -> list[dataset_pb2.Dataset]:
    """The newest ones whose runs have scores; none while the results service is silent."""
    ctx = context.of(request)
    call = dataset_service_pb2.ListDatasetsRequest(page_size=_MOST_DATASETS)
    try:
        found = await ctx.backend.ask(ctx.backend.datasets.ListDatasets, call, context.identity(request))
    except TouchstoneError:
        return []
    return [one for one in found.datasets if is_scored(one)]


def _items(form: DecisionForm, suites: Sequence[suite_pb2.Suite], datasets: Sequence[dataset_pb2.Dataset]) -> int:
    """Items of each of the two jobs; 0 while they are not known."""
    for suite in suites:
        if suite.suite == form.work:
            return estimate.items_of(suite, [], form.limit)
    rows = next((one.rows for one in datasets if one.dataset_id == form.work), 0)
    return min(rows, form.limit) if form.limit else rows
