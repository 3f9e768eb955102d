"""`POST /run`: queues one job."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from services.errors import InvalidRequestError, LimitReachedError
from services.gateway import context, estimate
from services.gateway.api.checks import Field, Problem, integer, list_of, members, one_of, parse, record, text
from services.gateway.parameters import INT32_MAX, INT64_MAX, custom_problems, parameter_problems, sampling
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import job_pb2, scheduler_service_pb2, suite_pb2

PRIORITIES = {"low": job_pb2.PRIORITY_LOW, "normal": job_pb2.PRIORITY_NORMAL, "high": job_pb2.PRIORITY_HIGH}
QUEUE_FULL = "Queue is full. Please try again later."

_config = record(
    {
        "provider": Field(text(200), required=True),
        "model": Field(text(400), required=True),
        "ollama_params": Field(members(parameter_problems)),
        "params": Field(members(parameter_problems)),
        "custom_config": Field(members(custom_problems)),
    }
)
BODY = record(
    {
        "project_id": Field(integer(0, INT64_MAX), required=True),
        "config": Field(_config, required=True),
        "suite": Field(text(100)),
        "tasks": Field(list_of(text(100), 1000)),
        "limit": Field(integer(1, INT32_MAX)),
        "priority": Field(one_of(*PRIORITIES)),
        "request_id": Field(text(64)),
    }
)


def task_problems(tasks: list[str], suite: suite_pb2.Suite) -> list[Problem]:
    known = [task.task for task in suite.tasks]
    return [
        ("tasks", f"{suite.suite} has no task {task!r}. Its tasks: {', '.join(known)}.")
        for task in tasks
        if task not in known
    ]


async def run(request: Request) -> JSONResponse:
    """Answers once the job is queued. 400 for an unknown suite or provider, 422 for wrong fields, 429 when full."""
    ctx, caller = context.of(request), context.identity(request)
    body: dict[str, Any] = parse(await request.body(), BODY)
    config = body["config"]
    suite = await ctx.catalogue.suite(body.get("suite", "glue"))
    endpoint = await ctx.catalogue.endpoint(config["provider"])
    problems = task_problems(body.get("tasks", []), suite)
    given = [name for name in ("ollama_params", "params") if config.get(name) is not None]
    if len(given) == 2:
        problems.append(("config.params", "Give config.params or config.ollama_params, not both."))
    if problems:
        raise FieldErrors(problems)
    spec = job_pb2.JobSpec(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling(_given(config.get(given[0])) if given else {}, config.get("custom_config")),
        mode=suite_pb2.MODE_GENERATE,
        priority=PRIORITIES[body.get("priority", "high")],
        project_id=body["project_id"],
        suite=job_pb2.SuiteWork(suite=suite.suite, tasks=body.get("tasks", []), limit=body.get("limit", 0)),
    )
    # Calls are repeated when a scheduler falls silent: without an id that would start two jobs.
    call = scheduler_service_pb2.CreateJobRequest(request_id=body.get("request_id") or uuid.uuid4().hex, spec=spec)
    try:
        job = (await ctx.backend.ask(ctx.backend.scheduler.CreateJob, call, caller)).job
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        # The scheduler names fields of its own message, which the API's users never see.
        raise InvalidRequestError(error.message) from error
    return JSONResponse(
        {
            "job_id": job.job_id,
            "message": f"Benchmarking started for suite: {suite.suite}",
            "estimated_duration": await estimate.duration(ctx.backend, job, suite, caller),
        }
    )


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
