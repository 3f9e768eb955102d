"""The Run page: endpoint, models, settings and suite from top to bottom, and a summary next to them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.errors import InvalidRequestError, TouchstoneError, UnavailableError
from services.gateway import context
from services.gateway.pages.display import palette
from services.gateway.pages.forms.run_form import Checked, Form, categories, left_out, modes, shots_of, takes_reading
from services.gateway.pages.layout.shell import fragment, go_to, is_fragment, render
from services.gateway.reads import estimate, jobs
from services.words.enums import PRIORITIES
from services.words.sampling import offered
from services.words.suites import ECHO
from touchstone.v1 import endpoint_pb2, job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2

LIMITS = (50, 100, 200, 400, 1000)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of the chosen endpoint, its last score, and the reason if it cannot be chosen."""

    model: endpoint_pb2.Model
    entry: metric_pb2.LeaderboardEntry | None
    slot: int | None
    refused: str


@dataclass(frozen=True, slots=True)
class Guess:
    """Seconds until the first job starts (None: not known) and for all jobs together; `why` says what is missing.
    `forecast` has intervals, tokens and cost; None while they are unknown."""

    wait: float | None = None
    work: float = 0
    why: str = ""
    forecast: estimate.Forecast | None = None


async def run_page(request: Request) -> Response:
    """The page, or only the form for htmx after a choice."""
    earlier = request.query_params.get("from", "")
    if earlier:
        ctx = context.of(request)
        job = await jobs.find(ctx.backend, earlier, context.identity(request))
        if job.spec.HasField("dataset"):
            return RedirectResponse(f"/datasets/{job.spec.dataset.dataset_id}", 303)
        form = Form.of(job.spec)
    else:
        form = Form.read(request.query_params)
    values = await _values(request, form)
    _check(form, values)
    if is_fragment(request):
        part = fragment(request, "run/_form.html", values)
        # The form's own address would name every empty field.
        part.headers["HX-Replace-Url"] = form.address(values["suite"])
        return part
    return await render(request, "run/index.html", "run", values)


async def start(request: Request) -> Response:
    """Queues a job for each chosen model. 422 with a sentence under each wrong field."""
    form = Form.read(await request.form())
    values = await _values(request, form)
    chosen = _check(form, values)
    if not form.models and "model" not in form.errors:
        form.errors["model"] = "Choose at least one model."
    if values["suite"] is not None and values["suite"].open and not form.open_task:
        form.errors["open_task"] = "Name a task."
    if not form.errors:
        try:
            made = await queue_once(request, form.request_id, form.specs(chosen, values["suite"]))
            return go_to(request, f"/jobs/{made[0].job_id}" if len(made) == 1 else "/jobs")
        except TouchstoneError as error:
            form.failure = refusal(error)
    if "hx-request" in request.headers:
        return fragment(request, "run/_form.html", values, 422)
    return await render(request, "run/index.html", "run", values, 422)


async def baselines(request: Request) -> Response:
    """Starts every baseline that runs suites on one suite, the demo if none is named: what an empty leaderboard
    offers."""
    ctx = context.of(request)
    sent = await request.form()
    form, suite = Form.read(sent), str(sent.get("suite") or "demo")
    if (await ctx.catalogue.suite(suite)).open:
        raise InvalidRequestError(f"Name a task of {suite} on the Run page.", "suite")
    specs = []
    for endpoint in await ctx.catalogue.endpoints():
        if endpoint.baseline:
            for model in await ctx.catalogue.models(endpoint.endpoint):
                if model.model == ECHO:
                    continue
                spec = job_pb2.JobSpec(
                    endpoint=endpoint.endpoint,
                    model=model.model,
                    mode=suite_pb2.MODE_GENERATE,
                    priority=job_pb2.PRIORITY_HIGH,
                    suite=job_pb2.SuiteWork(suite=suite),
                )
                specs.append(spec)
    if specs:
        await queue_once(request, form.request_id, specs)
    return go_to(request, "/jobs")


async def _values(request: Request, form: Form) -> dict[str, Any]:
    """What the form is drawn from. Fills what was not chosen yet with the first choice that works."""
    catalogue = context.of(request).catalogue
    endpoints, suites = await catalogue.endpoints(), await catalogue.suites()
    endpoint = _chosen_endpoint(form, endpoints)
    suite = _chosen_suite(form, suites, endpoint)
    rows, counts = await asyncio.gather(
        _rows(request, form, endpoint),
        asyncio.gather(*(_model_count(request, known.endpoint) for known in endpoints)),
    )
    form.models = [row.model.model for row in rows if row.model.model in form.models and not row.refused]
    queue = await catalogue.queue()
    memory = [row.model.memory_bytes for row in rows if row.model.model in form.models and row.model.memory_bytes]
    return {
        "memory": max(memory, default=0),
        "form": form,
        "endpoints": list(zip(endpoints, counts, strict=True)),
        "suites": suites,
        "missing_parts": await catalogue.left_out(),
        "limits": LIMITS,
        "priorities": tuple(PRIORITIES),
        "queue": queue,
        "ahead": estimate.ahead_of(queue, context.identity(request).user),
        **_model_values(endpoint, rows),
        **await _suite_values(request, form, suite, endpoint),
    }


def _chosen_endpoint(form: Form, endpoints: Sequence[endpoint_pb2.Endpoint]) -> endpoint_pb2.Endpoint | None:
    """The form's endpoint; if it names none, the first reachable one."""
    if form.endpoint not in [known.endpoint for known in endpoints]:
        usable = [known for known in endpoints if known.state == endpoint_pb2.Endpoint.STATE_REACHABLE]
        form.endpoint = (usable or endpoints)[0].endpoint if endpoints else ""
    return next((known for known in endpoints if known.endpoint == form.endpoint), None)


def _chosen_suite(
    form: Form, suites: Sequence[suite_pb2.Suite], endpoint: endpoint_pb2.Endpoint | None
) -> suite_pb2.Suite | None:
    """The form's suite, or the default; with all of the suite's tasks if it names none of them."""
    suite = next((s for s in suites if s.suite == form.suite), None)
    if suite is None:
        # Glue is the API's default; a baseline alone is there for the demo.
        default = "demo" if endpoint and endpoint.baseline else "glue"
        suite = next((s for s in suites if s.suite == default), suites[0] if suites else None)
        form.suite = suite.suite if suite else ""
    if suite is not None:
        known_tasks = [task.task for task in suite.tasks]
        form.tasks = [task for task in known_tasks if task in form.tasks] or known_tasks
    return suite


async def _rows(request: Request, form: Form, endpoint: endpoint_pb2.Endpoint | None) -> list[ModelRow]:
    """The endpoint's models, with what each scored last on the suite."""
    catalogue = context.of(request).catalogue
    models = await catalogue.models(form.endpoint) if endpoint else []
    entries = await _entries(request, form.suite)
    slots = palette.assign(await catalogue.model_keys())
    return [
        ModelRow(
            model,
            entries.get((form.endpoint, model.model)),
            slots.get((form.endpoint, model.model)),
            _refusal(endpoint, model),
        )
        for model in models
    ]


def _model_values(endpoint: endpoint_pb2.Endpoint | None, rows: Sequence[ModelRow]) -> dict[str, Any]:
    """What the list of models and their parameters are drawn from."""
    return {
        "endpoint": endpoint,
        "rows": rows,
        "has_prices": any(row.model.HasField("prices") for row in rows),
        "has_sizes": any(row.model.parameters_b or row.model.disk_bytes for row in rows),
        "parameters": offered([endpoint.kind] if endpoint else []),
        "takes_custom": bool(endpoint and endpoint.kind not in ("ollama", "baseline")),
    }


async def _suite_values(
    request: Request, form: Form, suite: suite_pb2.Suite | None, endpoint: endpoint_pb2.Endpoint | None
) -> dict[str, Any]:
    """What the choice of tasks, and what will run, are drawn from."""
    items = estimate.items_of(suite, form.tasks, form.limit) if suite else 0
    answers = items * max(1, int(form.texts["repeats"]) if form.texts["repeats"].isdecimal() else 1)
    offered = modes(suite, form.tasks, endpoint)
    if dict(offered)[form.mode]:
        form.mode = "generate"
    return {
        "suite": suite,
        "items": items,
        "answers": answers,
        "modes": offered,
        "takes_reading": takes_reading(suite, form.mode),
        "left_out": left_out(suite, form.tasks, form.mode, form.texts["shots"]),
        "most_shots": shots_of(suite, form.tasks),
        "categories": categories(suite, form.tasks) if suite else [],
        "command": form.command(suite),
        "smaller": form.address(suite, limit=str(LIMITS[0])),
        "tells_apart": 100 * estimate.smallest_difference(items),
        "published": estimate.items_of(suite, [], 0) if suite else 0,
        "guess": await _guess(request, form, answers, (suite.title or suite.suite) if suite else "the suite"),
    }


async def _model_count(request: Request, endpoint: str) -> int:
    try:
        return len(await context.of(request).catalogue.models(endpoint))
    except TouchstoneError:
        return 0


async def _entries(request: Request, suite: str) -> dict[tuple[str, str], metric_pb2.LeaderboardEntry]:
    """What each model scored last on the suite; empty while the results service is silent."""
    ctx = context.of(request)
    call = results_service_pb2.GetLeaderboardRequest(suite=suite, metric="score", limit=200)
    try:
        answer = await ctx.backend.ask(ctx.backend.results.GetLeaderboard, call, context.identity(request))
    except TouchstoneError:
        return {}
    return {(entry.endpoint, entry.model): entry for entry in answer.entries}


async def _guess(request: Request, form: Form, items: int, title: str) -> Guess:
    """How long the chosen models will take, each at the pace of its newest completed run."""
    ctx = context.of(request)
    if not form.models:
        return Guess(why="Choose a model.")
    if not items:
        return Guess(why="No estimate yet: the number of items is known after planning.")
    try:
        queue = await ctx.catalogue.queue()
        runs = await asyncio.gather(
            *(estimate.newest_run(ctx.backend, m, form.suite, context.identity(request)) for m in form.models[:20])
        )
    except TouchstoneError as error:
        return Guess(why=f"No estimate: {error.message}")
    timed = dict(zip(form.models, runs, strict=False))
    never = [model for model, run in timed.items() if run is None]
    if never:
        return Guess(why=f"No completed run of {', '.join(never)} on {title} to estimate from.")
    paces = {model: estimate.seconds_per_item(run) for model, run in timed.items() if run is not None}
    untimed = [model for model, pace in paces.items() if pace is None]
    if untimed:
        return Guess(
            why=(
                f"The last run of {', '.join(untimed)} on {title} took several attempts, so it gives no estimate of "
                "the time."
            )
        )
    wait = estimate.waiting_s(queue, estimate.ahead_of(queue, context.identity(request).user))
    work = sum(items * pace for pace in paces.values() if pace is not None)
    try:
        known = [run for run in runs if run is not None]
        told = await estimate.forecast(ctx.backend, known, items, context.identity(request))
    except TouchstoneError:
        # A run with too few answers still gives its pace.
        return Guess(wait, work)
    return Guess(wait, told.seconds.value, forecast=told)


def _refusal(endpoint: endpoint_pb2.Endpoint | None, model: endpoint_pb2.Model) -> str:
    if endpoint and endpoint.max_model_b and model.parameters_b > endpoint.max_model_b:
        return f"more than {endpoint.max_model_b:g} B"
    return ""


def _check(form: Form, values: dict[str, Any]) -> Checked:
    checked = form.check(values["parameters"], values["suite"], values["takes_custom"])
    if values["endpoint"] is None:
        form.errors["endpoint"] = "No endpoint is known yet. Start an evaluator."
    if values["suite"] is None:
        form.errors["suite"] = "No suite is installed yet. Start an evaluator."
    return checked


async def queue_once(request: Request, request_id: str, specs: Iterable[job_pb2.JobSpec]) -> Sequence[job_pb2.Job]:
    """A job for each spec, all or none, in order: sending the form again does not repeat them, unless it was
    changed."""
    ctx = context.of(request)
    call = scheduler_service_pb2.CreateJobsRequest(specs=specs)
    digest = hashlib.sha256(request_id.encode() + call.SerializeToString(deterministic=True)).hexdigest()
    call.request_id = digest[:40]
    return (await ctx.backend.ask(ctx.backend.scheduler.CreateJobs, call, context.identity(request))).jobs


def refusal(error: TouchstoneError) -> str:
    """The form's message if its jobs were not queued. After a silence that is unknown."""
    return error.message if isinstance(error, UnavailableError) else f"{error.message} Nothing was started."
