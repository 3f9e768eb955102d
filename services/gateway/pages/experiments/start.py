"""The form that checks and starts an experiment."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services.errors import InvalidFieldsError, InvalidRequestError, TouchstoneError
from services.experiments.prompts import SHIPPED, shipped
from services.experiments.scenarios import tips
from services.gateway import context
from services.gateway.fields.job import in_rest
from services.gateway.http.middleware import EXPERIMENT_FORM, MOST_DEFINITION_BYTES
from services.gateway.pages.display import palette
from services.gateway.pages.experiments import listing
from services.gateway.pages.forms.dataset_form import Group, groups
from services.gateway.pages.forms.experiment_form import FILES, MOST_OWN, ExperimentForm, JudgeFields
from services.gateway.pages.layout.shell import fragment, go_to, render
from services.gateway.pages.runs.page import refusal
from services.gateway.reads import airflow
from services.gateway.reads.airflow import DagRun
from services.gateway.uploads import page_form
from services.words import refusals, rubrics
from services.words.sampling import PARAMETERS
from touchstone.v1 import scheduler_service_pb2
from touchstone.v1.scheduler_service_pb2 import RunExperimentResponse


async def form_page(request: Request) -> Response:
    """The form. Raises PermissionDeniedError."""
    listing.require_admin(request)
    values = await _values(request, ExperimentForm.read(request.query_params), None)
    return await render(request, "experiments/new.html", "experiments", values)


async def start_experiment(request: Request) -> Response:
    """Checks what was sent and shows the counts; starts what was checked before, and shows the experiment, or the run
    of Airflow's DAG that will start it. 422 with a sentence under each wrong field. Raises PermissionDeniedError."""
    listing.require_admin(request)
    sent, files = await page_form.received(request, FILES, MOST_DEFINITION_BYTES)
    form = ExperimentForm.read(sent)
    # In a thread: a large file takes seconds.
    await asyncio.to_thread(form.take, files, MOST_DEFINITION_BYTES)
    if sent.get("act") == "prompt":
        # Room for one more prompt.
        return await _drawn(request, form, None, 422 if form.errors else 200, len(form.own) + 1)
    starts = sent.get("act") == "start" and form.checked == form.digest()
    done = None if form.errors else await _run(request, form, check_only=not starts)
    if done is None:
        form.checked = ""
        return await _drawn(request, form, None, 422)
    made, begun = done
    if starts and begun is None:
        return go_to(request, listing.address(made.experiment))
    form.checked = form.digest()
    return await _drawn(request, form, made, 200, begun=begun)


async def _run(
    request: Request, form: ExperimentForm, *, check_only: bool
) -> tuple[RunExperimentResponse, DagRun | None] | None:
    """None if it was refused: the form says why."""
    asked = await asyncio.to_thread(form.asked)
    if asked is None:
        return None
    ctx = context.of(request)
    try:
        if isinstance(asked.get("provider"), str):
            asked["provider"] = (await ctx.catalogue.endpoint(asked["provider"], "provider")).endpoint
        definition = json.dumps(asked, ensure_ascii=False)
        if (size := len(definition.encode())) > MOST_DEFINITION_BYTES:
            form.failure = refusals.too_large("The definition as JSON", size, MOST_DEFINITION_BYTES, "bytes")
            return None
        call = scheduler_service_pb2.RunExperimentRequest(
            request_id=form.request_id[:64],
            definition=definition,
            judges=form.asked_judges(),
            check_only=check_only,
        )
        return await airflow.run_experiment(ctx.backend, ctx.settings, call, context.identity(request))
    except InvalidRequestError as error:
        problems = error.problems if isinstance(error, InvalidFieldsError) else [(error.field, error.message)]
        # In a thread, too.
        await asyncio.to_thread(form.refuse, [(path, in_rest(sentence)) for path, sentence in problems])
    except (TypeError, ValueError) as error:
        # A date of YAML, say, which JSON does not have.
        form.refuse([("", f"The definition cannot be written as JSON: {error}.")])
    except TouchstoneError as error:
        form.failure = error.message if check_only else refusal(error)
    return None


async def _drawn(
    request: Request,
    form: ExperimentForm,
    checked: RunExperimentResponse | None,
    status: int,
    room: int = 0,
    begun: DagRun | None = None,
) -> Response:
    values = await _values(request, form, checked, room)
    values["begun"] = begun
    if "hx-request" in request.headers:
        return fragment(request, "experiments/_form.html", values, status)
    return await render(request, "experiments/new.html", "experiments", values, status)


async def _values(
    request: Request, form: ExperimentForm, checked: RunExperimentResponse | None, room: int = 0
) -> dict[str, Any]:
    """What the form is drawn from; without models while the scheduler is silent."""
    catalogue, trouble = context.of(request).catalogue, ""
    offered: list[Group] = []
    slots: dict[tuple[str, str], int] = {}
    try:
        offered = [group for group in await groups(catalogue) if not group.endpoint.baseline]
        slots = palette.assign(await catalogue.model_keys())
    except TouchstoneError as error:
        trouble = error.message
    listed = {f"{group.endpoint.endpoint}|{choice.model.model}" for group in offered for choice in group.choices}
    return {
        "form": form,
        "checked": checked,
        "begun": None,
        "groups": offered,
        "slots": slots,
        "trouble": trouble,
        # What is no longer listed stays chosen, so that nothing of the form is lost.
        "unlisted": [one for one in form.models if one not in listed],
        "judge_rows": [*form.judges, *[JudgeFields()] * (rubrics.MOST_JUDGES - len(form.judges))],
        "listed": listed,
        "by_airflow": bool(context.of(request).settings.airflow_url),
        "shipped": [(name, shipped(name)) for name in SHIPPED],
        "own": [*form.own, *[("", "")] * max(0, min(MOST_OWN, room or max(1, len(form.own))) - len(form.own))],
        "most_own": MOST_OWN,
        "set_size": len(tips()),
        "all_parameters": list(PARAMETERS.values()),
        "form_address": EXPERIMENT_FORM,
    }
