"""The form that has a model judge a completed job's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from services.errors import ConflictError, TouchstoneError
from services.gateway import context
from services.gateway.pages.display.work_words import heading
from services.gateway.pages.forms.dataset_form import groups
from services.gateway.pages.forms.judge_form import JudgeForm
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.pages.runs.page import queue_once, refusal
from services.gateway.reads import estimate, jobs
from touchstone.v1 import job_pb2, results_service_pb2
from touchstone.v1.rubric_pb2 import Rubric


@dataclass(frozen=True, slots=True)
class Guess:
    """What the judge may need: its calls at the most, and the forecast from an earlier run in which it judged; None
    without one."""

    calls: int
    forecast: estimate.Forecast | None = None


async def judge_page(request: Request) -> Response:
    """The form that has a model judge a job's answers; for a form that is being filled in, only what it may need.
    Raises ConflictError for a job whose answers cannot be judged."""
    job = await _judged(request)
    form = JudgeForm.read(request.query_params)
    if is_fragment(request):
        values = {"job": job, "form": form, "guess": await _guess(request, job, form)}
        return fragment(request, "jobs/_judge_estimate.html", values)
    if job.spec.experiment_name and "rubric" not in request.query_params:
        # Its scores count in the experiment if they are by the experiment's rubric.
        form.use(await _rubric_of(request, job.spec.experiment_name))
    values = await _form(request, job, form)
    return await render(request, "jobs/judge.html", "history", values)


async def start_judge(request: Request) -> Response:
    """Queues the judge's job and shows it. 422 with a sentence under each wrong field."""
    job, form = await _judged(request), JudgeForm.read(await request.form())
    spec = form.spec(job)
    if not form.errors:
        try:
            (made,) = await queue_once(request, form.request_id, [spec])
            return go_to(request, f"/jobs/{made.job_id}")
        except TouchstoneError as error:
            form.failure = refusal(error)
    values = await _form(request, job, form)
    if "hx-request" in request.headers:
        return fragment(request, "jobs/_judge_form.html", values, 422)
    return await render(request, "jobs/judge.html", "history", values, 422)


async def _judged(request: Request) -> job_pb2.Job:
    ctx = context.of(request)
    return await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))


async def _rubric_of(request: Request, name: str) -> Rubric | None:
    """An experiment's rubric. None for callers who may not see it, and while the results service is silent."""
    ctx = context.of(request)
    call = results_service_pb2.GetExperimentRequest(name=name)
    try:
        found = await ctx.backend.ask(ctx.backend.results.GetExperiment, call, context.identity(request))
    except TouchstoneError:
        return None
    return found.experiment.rubric


async def _guess(request: Request, job: job_pb2.Job, form: JudgeForm) -> Guess:
    ctx, caller = context.of(request), context.identity(request)
    calls = job.progress.items_total * form.repeats * (2 if form.against else 1)
    endpoint, _, model = form.model.partition("|")
    if not model or not calls:
        return Guess(calls)
    try:
        run = await estimate.judging_run(ctx.backend, endpoint, model, caller)
        return Guess(calls, await estimate.forecast(ctx.backend, [run], calls, caller) if run else None)
    except TouchstoneError:
        return Guess(calls)


async def _form(request: Request, job: job_pb2.Job, form: JudgeForm) -> dict[str, Any]:
    """What the form is drawn from; without models while the scheduler is silent."""
    if job.spec.HasField("judging"):
        raise ConflictError(f"Job {job.job_id} judges answers itself.")
    if not jobs.can_judge(job, ""):
        raise ConflictError(f"Job {job.job_id} has not completed. Judge its answers once it has.")
    catalogue, trouble = context.of(request).catalogue, ""
    try:
        # A baseline judges nothing.
        offered = [group for group in await groups(catalogue) if not group.endpoint.baseline]
    except TouchstoneError as error:
        offered, trouble = [], error.message
    listed = {f"{group.endpoint.endpoint}|{choice.model.model}" for group in offered for choice in group.choices}
    values = {"job": job, "title": heading(job), "form": form, "groups": offered, "trouble": trouble}
    values |= {"guess": await _guess(request, job, form), "against": None}
    if form.against:
        values["against"] = await jobs.find(context.of(request).backend, form.against, context.identity(request))
    return values | {"unlisted": "" if form.model in listed else form.model}
