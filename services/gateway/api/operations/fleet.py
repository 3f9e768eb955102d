"""What can be run and what waits: queue, evaluators, endpoints, models and suites."""

from __future__ import annotations

from typing import Any

from services.gateway.api.answers import job_results, members
from services.gateway.api.answers.job import PROGRESS, ROW, progress_body, row
from services.gateway.api.answers.members import PRICES, prices
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import text
from services.gateway.fields.query import PROJECT, Parameter
from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, TIME, about, array, enum, null, shape, table
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.endpoints import EVALUATOR_STATES, evaluator_state
from services.words.enums import ENDPOINT_STATES, mode_name, reading_name, weighting_name
from services.words.jobs import stage_of, status_of
from services.words.plugins import PROVIDER, SCORER, SUITE
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, scheduler_service_pb2, suite_pb2


async def queue(call: Call) -> JSONResponse:
    """Jobs that hold a slot and those that wait, in the order in which they start; positions count all jobs."""
    request = scheduler_service_pb2.GetQueueRequest(project_id=call.query["project_id"])
    found = (await call.ask(call.ctx.backend.scheduler.GetQueue, request)).queue
    return JSONResponse(
        {
            "running": [_queued(job) for job in found.running],
            "pending": [_queued(job) for job in found.pending],
            "scoring": [_queued(job) for job in found.scoring],
            "slots": found.slots,
            "pending_per_user": found.pending_per_owner,
            "evaluators": found.evaluators,
            "notice": found.notice or None,
        }
    )


def _queued(job: job_pb2.Job) -> dict[str, Any]:
    """For a job that the caller may not see: only its position and its progress."""
    live = {"status": status_of(job.state), "phase": stage_of(job), "progress": progress_body(job)}
    return (row(job) if job.job_id else dict.fromkeys(ROW)) | live


async def evaluators(call: Call) -> JSONResponse:
    """Evaluators, live or not, with their endpoints and the suites that they can read."""
    return JSONResponse({"evaluators": [_evaluator(one) for one in await call.ctx.catalogue.evaluators()]})


async def drain(call: Call) -> JSONResponse:
    """Lasts until it is resumed, also through restarts. 403 for callers who are not admins, 404 for an unknown one."""
    return await _set_drain(call, drain=True)


async def resume(call: Call) -> JSONResponse:
    """403 for callers who are not admins, 404 for an unknown one. One that is not drained stays as it is."""
    return await _set_drain(call, drain=False)


async def _set_drain(call: Call, *, drain: bool) -> JSONResponse:
    request = scheduler_service_pb2.SetEvaluatorDrainRequest(evaluator=call.path["evaluator"], drain=drain)
    answer = await call.ask(call.ctx.backend.scheduler.SetEvaluatorDrain, request)
    call.ctx.catalogue.forget_evaluators()
    return JSONResponse(_evaluator(answer.evaluator))


def _evaluator(one: evaluator_pb2.Evaluator) -> dict[str, Any]:
    return {
        "evaluator": one.evaluator,
        "host": one.host,
        "software": one.software,
        "started_at": jobs.iso(one.started_at),
        "announced_at": jobs.iso(one.announced_at),
        "live": one.live,
        "draining": one.draining or one.drain_requested,
        "state": evaluator_state(one),
        "units_in_flight": one.units_in_flight,
        "endpoints": [endpoint.endpoint for endpoint in one.endpoints],
        "suites": [suite.suite for suite in one.suites],
        "plugins": [_plugin(plugin) for plugin in one.plugins],
    }


def _plugin(one: evaluator_pb2.Plugin) -> dict[str, Any]:
    return {
        "package": one.package,
        "version": one.version,
        "parts": [
            {"part": part.part, "name": part.name, "title": part.title or None, "left_out": part.left_out or None}
            for part in one.parts
        ],
    }


async def endpoints(call: Call) -> JSONResponse:
    """Every endpoint ever announced."""
    return JSONResponse({"endpoints": [_endpoint(one) for one in await call.ctx.catalogue.endpoints()]})


def _endpoint(one: endpoint_pb2.Endpoint) -> dict[str, Any]:
    return {
        "endpoint": one.endpoint,
        "kind": one.kind,
        "state": ENDPOINT_STATES.of(one.state, "absent"),
        "detail": one.detail,
        "server": one.server or None,
        "concurrency": one.concurrency,
        "slots_total": one.slots_total,
        "slots_busy": one.slots_busy,
        "exclusive": one.exclusive,
        "requests_per_minute": one.requests_per_minute or None,
        "max_model_b": one.max_model_b or None,
        "resident_model": one.resident_model or None,
        "baseline": one.baseline,
        "refreshed_at": jobs.iso(one.refreshed_at),
    }


async def models(call: Call) -> JSONResponse:
    """Models of one endpoint. 400 for an unknown provider."""
    endpoint = await call.ctx.catalogue.endpoint(call.query["provider"], "provider")
    found = await call.ctx.catalogue.models(endpoint.endpoint)
    return JSONResponse({"endpoint": _endpoint(endpoint), "models": [_model(one) for one in found]})


def _model(one: endpoint_pb2.Model) -> dict[str, Any]:
    return {
        "model": one.model,
        "digest": one.digest or None,
        "parameters_b": one.parameters_b or None,
        "quantization": one.quantization or None,
        "disk_bytes": one.disk_bytes or None,
        "memory_bytes": one.memory_bytes or None,
        "context_length": one.context_length or None,
        "description": one.description,
        "baseline": one.baseline,
        "capabilities": job_results.capabilities(one.capabilities),
        "input_price": one.input_price if one.HasField("input_price") else None,
        "output_price": one.output_price if one.HasField("output_price") else None,
        "prices": prices(one.prices) if one.HasField("prices") else None,
    }


async def suites(call: Call) -> JSONResponse:
    """Suites that some evaluator can read, with their tasks."""
    return JSONResponse({"suites": [_suite(one) for one in await call.ctx.catalogue.suites()]})


def _suite(one: suite_pb2.Suite) -> dict[str, Any]:
    return {
        "suite": one.suite,
        "title": one.title,
        "description": one.description,
        "open": one.open,
        "weighting": weighting_name(one.weighting),
        "plugin": one.plugin or None,
        "tasks": [
            {
                "task": task.task,
                "title": task.title,
                "category": task.category or None,
                "metrics": [spec.metric for spec in task.metrics],
                "modes": [mode_name(mode) for mode in task.modes],
                "max_shots": task.max_shots,
                "reading": reading_name(task.reading),
                "published_items": task.published_items or None,
                "score_group": task.score_group or None,
                "beside": task.beside,
            }
            for task in one.tasks
        ],
    }


_QUEUED = shape(
    {name: null(schema) for name, schema in ROW.items()}
    | {"status": members.STATUS, "phase": members.PHASE, "progress": about(PROGRESS, "Its progress.")},
    name="QueuedJob",
)
"""All null but status, phase and progress for jobs that the caller may not see."""
_ENDPOINT = shape(
    {
        "endpoint": about(STRING, "The endpoint's name, which `config.provider` takes."),
        "kind": about(STRING, "Its provider kind."),
        "state": about(enum(*ENDPOINT_STATES), "Whether models can be called there now."),
        "detail": about(STRING, "What is wrong and what to do. Empty if it is reachable."),
        "server": about(null(STRING), "The server's product and version."),
        "concurrency": about(COUNT, "Calls at once per evaluator."),
        "slots_total": about(COUNT, "Calls at once over all evaluators."),
        "slots_busy": about(COUNT, "Calls that are being made."),
        "exclusive": about(BOOLEAN, "Whether it serves one job at a time."),
        "requests_per_minute": about(null(COUNT), "Its rate limit. null without one."),
        "max_model_b": about(null(NUMBER), "The largest model that it accepts, in billions of parameters."),
        "resident_model": about(null(STRING), "The model that is loaded."),
        "baseline": about(BOOLEAN, "Whether it serves the bundled baselines."),
        "refreshed_at": about(null(TIME), "When its state was found."),
    },
    name="EndpointState",
)
_MODEL = shape(
    {
        "model": about(STRING, "The model's id, which `config.model` takes."),
        "digest": about(null(STRING), "The digest of its weights."),
        "parameters_b": about(null(NUMBER), "Its size in billions of parameters."),
        "quantization": about(null(STRING), "Its quantization."),
        "disk_bytes": about(null(COUNT), "Bytes of its weights on disk."),
        "memory_bytes": about(null(COUNT), "Bytes that it needs in memory."),
        "context_length": about(null(COUNT), "Its context window in tokens."),
        "description": about(STRING, "What the server says about it."),
        "baseline": members.BASELINE,
        "capabilities": about(table(BOOLEAN), "Its capabilities, by name."),
        "input_price": about(null(NUMBER), "US dollars per million tokens of prompts."),
        "output_price": about(null(NUMBER), "US dollars per million generated tokens."),
        "prices": about(null(PRICES), "Its prices with their source. null if they are not known."),
    },
    name="Model",
)
_TASK = {
    "task": members.TASK,
    "title": about(STRING, "Its title."),
    "category": about(null(STRING), "Its category."),
    "metrics": about(array(STRING), "Its metrics. The first one is the primary one."),
    "modes": about(array(members.MODE), "The modes that it can run in."),
    "max_shots": about(COUNT, "The most worked examples that a prompt may have."),
    "reading": about(null(members.READING), "The layers by which answers are read unless a job says otherwise."),
    "published_items": about(null(COUNT), "The number of items in the published split. null if unknown."),
    "score_group": about(null(STRING), "Tasks of one group count once in a score over tasks."),
    "beside": about(BOOLEAN, "Reported, not scored."),
}
_SUITE = {
    "suite": about(STRING, "The suite's name."),
    "title": about(STRING, "Its title."),
    "description": about(STRING, "What it measures."),
    "open": about(BOOLEAN, "Whether a job names one of its tasks, as `suite:task`."),
    "weighting": about(members.WEIGHTING, "What has equal weight in its score. null if each of its groups has a rule."),
    "plugin": about(null(STRING), "The installed package that it comes from, with its version. null if built in."),
    "tasks": about(array(shape(_TASK, name="SuiteTask")), "Its tasks."),
}
_PLUGIN_PART = {
    "part": about(enum(SUITE, SCORER, PROVIDER), "What it is."),
    "name": about(STRING, "The name of the suite, the scorer or the provider kind."),
    "title": about(null(STRING), "Its title. null if it is left out."),
    "left_out": about(null(STRING), "Why it is left out. null if it is used."),
}
_PLUGIN = {
    "package": about(STRING, "The name of the installed package."),
    "version": about(STRING, "Its version."),
    "parts": about(array(shape(_PLUGIN_PART, name="PluginPart")), "What it offers."),
}
_EVALUATOR = {
    "evaluator": about(STRING, "The evaluator's name."),
    "host": about(STRING, "Its machine."),
    "software": about(STRING, "Its version of Touchstone."),
    "started_at": about(null(TIME), "When it started."),
    "announced_at": about(null(TIME), "When it last reported."),
    "live": about(BOOLEAN, "Whether it still reports."),
    "draining": about(BOOLEAN, "Whether it takes no new work, as it is about to stop or an admin drains it."),
    "state": about(
        enum(*EVALUATOR_STATES),
        "`silent` if it no longer reports. `draining` while it finishes what it has begun. `drained` when it has, and "
        "an admin can resume it.",
    ),
    "units_in_flight": about(COUNT, "Units that it works on."),
    "endpoints": about(array(STRING), "The endpoints that it can call."),
    "suites": about(array(STRING), "The suites that it can read."),
    "plugins": about(array(shape(_PLUGIN, name="Plugin")), "The installed packages that extend it."),
}
QUEUE = Endpoint(
    "GET",
    "/queue",
    queue,
    "getQueue",
    "Get the queue: running jobs, and waiting jobs in order.",
    answer=shape(
        {
            "running": about(array(_QUEUED), "Jobs that hold a slot."),
            "pending": about(
                array(_QUEUED),
                "Waiting jobs, in the order in which they start: by priority, then in turns of their users.",
            ),
            "scoring": about(
                array(_QUEUED), "Jobs with all answers, whose metrics are being computed. They hold no slot."
            ),
            "slots": about(COUNT, "The number of jobs that may run at once."),
            "pending_per_user": about(COUNT, "The number of waiting jobs that a user may have."),
            "evaluators": about(COUNT, "The number of live evaluators."),
            "notice": about(null(STRING), "A notice for all users, such as a full disk."),
        },
        name="Queue",
    ),
    query=(PROJECT,),
)
_ONE = shape(_EVALUATOR, name="Evaluator")
DRAIN = Endpoint(
    "POST",
    "/evaluators/{evaluator}/drain",
    drain,
    "drainEvaluator",
    "Drain an evaluator: it finishes what it has begun and takes no new work. For admins.",
    answer=_ONE,
)
RESUME = Endpoint(
    "POST",
    "/evaluators/{evaluator}/resume",
    resume,
    "resumeEvaluator",
    "Let a drained evaluator take work again. For admins.",
    answer=_ONE,
)
EVALUATORS = Endpoint(
    "GET",
    "/evaluators",
    evaluators,
    "listEvaluators",
    "List the evaluators and what they serve.",
    answer=shape(
        {"evaluators": about(array(_ONE), "Including those that are no longer live.")},
        name="Evaluators",
    ),
    gives={"evaluator": "/evaluators/0/evaluator"},
)
ENDPOINTS = Endpoint(
    "GET",
    "/endpoints",
    endpoints,
    "listEndpoints",
    "List the endpoints and their states.",
    answer=shape(
        {"endpoints": about(array(_ENDPOINT), "Every endpoint that an evaluator ever announced.")}, name="Endpoints"
    ),
)
MODELS = Endpoint(
    "GET",
    "/models",
    models,
    "listModels",
    "List the models of an endpoint.",
    answer=shape(
        {"endpoint": about(_ENDPOINT, "The endpoint."), "models": about(array(_MODEL), "Its models.")}, name="Models"
    ),
    query=(
        Parameter("provider", text(200), "An endpoint's name, or its kind if only one endpoint has it.", required=True),
    ),
)
SUITES = Endpoint(
    "GET",
    "/suites",
    suites,
    "listSuites",
    "List the suites with their tasks.",
    answer=shape(
        {"suites": about(array(shape(_SUITE, name="Suite")), "The suites that some evaluator can read.")}, name="Suites"
    ),
)
