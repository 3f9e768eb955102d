"""What can be run and what waits: queue, evaluators, endpoints, models and suites."""

from __future__ import annotations

from typing import Any

from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import text
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.job import PROGRESS, ROW, STATUS, progress_body, row
from services.gateway.api.prices import PRICES, prices
from services.gateway.api.query import PROJECT, Parameter
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    STRING,
    TIME,
    about,
    array,
    enum,
    null,
    shape,
    table,
)
from services.gateway.responses import JSONResponse
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, scheduler_service_pb2, suite_pb2

_STATES = {
    endpoint_pb2.Endpoint.STATE_REACHABLE: "reachable",
    endpoint_pb2.Endpoint.STATE_LIMITED: "limited",
    endpoint_pb2.Endpoint.STATE_DOWN: "down",
    endpoint_pb2.Endpoint.STATE_NOT_CONFIGURED: "not_configured",
    endpoint_pb2.Endpoint.STATE_ABSENT: "absent",
}


async def queue(call: Call) -> JSONResponse:
    """Jobs that hold a slot and those that wait, in the order in which they start; places count all jobs."""
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
    """Of a job that the caller may not see: that one stands there, and how it goes on."""
    live = {"status": jobs.STATUS[job.state], "progress": progress_body(job)}
    return (row(job) if job.job_id else dict.fromkeys(ROW)) | live


async def evaluators(call: Call) -> JSONResponse:
    """Evaluators, live or not, with their endpoints and the suites that they can read."""
    request = scheduler_service_pb2.ListEvaluatorsRequest(page_size=500)
    found = []
    while True:
        answer = await call.ask(call.ctx.backend.scheduler.ListEvaluators, request)
        found += [_evaluator(one) for one in answer.evaluators]
        request.page_token = answer.next_page_token
        if not answer.next_page_token:
            return JSONResponse({"evaluators": found})


def _evaluator(one: evaluator_pb2.Evaluator) -> dict[str, Any]:
    return {
        "evaluator": one.evaluator,
        "host": one.host,
        "software": one.software,
        "started_at": jobs.iso(one.started_at),
        "announced_at": jobs.iso(one.announced_at),
        "live": one.live,
        "draining": one.draining,
        "units_in_flight": one.units_in_flight,
        "endpoints": [endpoint.endpoint for endpoint in one.endpoints],
        "suites": [suite.suite for suite in one.suites],
    }


async def endpoints(call: Call) -> JSONResponse:
    """Every endpoint ever announced."""
    return JSONResponse({"endpoints": [_endpoint(one) for one in await call.ctx.catalogue.endpoints()]})


def _endpoint(one: endpoint_pb2.Endpoint) -> dict[str, Any]:
    return {
        "endpoint": one.endpoint,
        "kind": one.kind,
        "state": _STATES.get(one.state, "absent"),
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
        "capabilities": figures.capabilities(one.capabilities),
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
        "weighting": figures.weighting_name(one.weighting),
        "tasks": [
            {
                "task": task.task,
                "title": task.title,
                "category": task.category or None,
                "metrics": [spec.metric for spec in task.metrics],
                "modes": [figures.mode_name(mode) for mode in task.modes],
                "max_shots": task.max_shots,
                "reading": figures.reading_name(task.reading),
                "published_items": task.published_items or None,
                "score_group": task.score_group or None,
                "beside": task.beside,
            }
            for task in one.tasks
        ],
    }


_QUEUED = shape(
    {name: null(schema) for name, schema in ROW.items()} | {"status": STATUS, "progress": PROGRESS}, name="QueuedJob"
)
"""All null but the last two for jobs that the caller may not see."""
_ENDPOINT = shape(
    {
        "endpoint": about(STRING, "Name, as `config.provider` takes it."),
        "kind": STRING,
        "state": enum(*_STATES.values()),
        "detail": about(STRING, "What is wrong and what to do; empty when reachable."),
        "server": null(STRING),
        "concurrency": about(COUNT, "Calls at once per evaluator."),
        "slots_total": COUNT,
        "slots_busy": COUNT,
        "exclusive": about(BOOLEAN, "One job at a time."),
        "requests_per_minute": null(COUNT),
        "max_model_b": about(null(NUMBER), "Largest model accepted, in billions of parameters."),
        "resident_model": null(STRING),
        "baseline": BOOLEAN,
        "refreshed_at": null(TIME),
    },
    name="EndpointState",
)
_MODEL = shape(
    {
        "model": about(STRING, "Id, as `config.model` takes it."),
        "digest": null(STRING),
        "parameters_b": about(null(NUMBER), "Billions of parameters."),
        "quantization": null(STRING),
        "disk_bytes": null(COUNT),
        "memory_bytes": null(COUNT),
        "context_length": null(COUNT),
        "description": STRING,
        "baseline": BOOLEAN,
        "capabilities": table(BOOLEAN),
        "input_price": about(null(NUMBER), "US dollars per million tokens."),
        "output_price": null(NUMBER),
        "prices": about(null(PRICES), "With their source."),
    },
    name="Model",
)
_TASK = {
    "task": STRING,
    "title": STRING,
    "category": null(STRING),
    "metrics": about(array(STRING), "The first is the primary one."),
    "modes": array(figures.MODE),
    "max_shots": COUNT,
    "reading": about(null(figures.READING), "Layers by which answers are read unless a job says otherwise."),
    "published_items": null(COUNT),
    "score_group": about(null(STRING), "Tasks of one group count once in a score over tasks."),
    "beside": about(BOOLEAN, "No part of the suite's score."),
}
_SUITE = {
    "suite": STRING,
    "title": STRING,
    "description": STRING,
    "open": about(BOOLEAN, "A job names a task as <suite>:<task>."),
    "weighting": about(figures.WEIGHTING, "What counts alike in its score; null where each of its groups has a rule."),
    "tasks": array(shape(_TASK, name="SuiteTask")),
}
_EVALUATOR = {
    "evaluator": STRING,
    "host": STRING,
    "software": STRING,
    "started_at": null(TIME),
    "announced_at": null(TIME),
    "live": BOOLEAN,
    "draining": BOOLEAN,
    "units_in_flight": COUNT,
    "endpoints": array(STRING),
    "suites": array(STRING),
}
QUEUE = Endpoint(
    "GET",
    "/queue",
    queue,
    "getQueue",
    "The queue: jobs that run and jobs that wait, in order.",
    answer=shape(
        {
            "running": array(_QUEUED),
            "pending": array(_QUEUED),
            "scoring": about(array(_QUEUED), "Jobs whose answers are all there. They hold no slot."),
            "slots": about(COUNT, "Jobs that may run at once."),
            "pending_per_user": about(COUNT, "Waiting jobs that one user may have."),
            "evaluators": about(COUNT, "Live evaluators."),
            "notice": about(null(STRING), "What everybody should know, such as that the disk is full."),
        },
        name="Queue",
    ),
    query=(PROJECT,),
)
EVALUATORS = Endpoint(
    "GET",
    "/evaluators",
    evaluators,
    "listEvaluators",
    "Evaluators with what they serve.",
    answer=shape({"evaluators": array(shape(_EVALUATOR, name="Evaluator"))}),
)
ENDPOINTS = Endpoint(
    "GET",
    "/endpoints",
    endpoints,
    "listEndpoints",
    "Endpoints at which models are reached.",
    answer=shape({"endpoints": array(_ENDPOINT)}),
)
MODELS = Endpoint(
    "GET",
    "/models",
    models,
    "listModels",
    "Models of one endpoint.",
    answer=shape({"endpoint": _ENDPOINT, "models": array(_MODEL)}),
    query=(Parameter("provider", text(200), "An endpoint's name, or its kind when only one has it.", required=True),),
)
SUITES = Endpoint(
    "GET",
    "/suites",
    suites,
    "listSuites",
    "Suites that can be run, with their tasks.",
    answer=shape({"suites": array(shape(_SUITE, name="Suite"))}),
)
