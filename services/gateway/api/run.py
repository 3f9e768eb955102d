"""`POST /run`, `/rescore/{job_id}` and `/rerun/{job_id}`: queue one job."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from services import rpc
from services.errors import InvalidRequestError, LimitReachedError
from services.gateway import context, estimate, jobs
from services.gateway.api.checks import Field, Problem, boolean, integer, list_of, members, one_of, parse, record, text
from services.gateway.api.figures import MODES, outcome_name
from services.gateway.parameters import INT32_MAX, INT64_MAX, custom_problems, parameter_problems, sampling
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import item_result_pb2, job_pb2, scheduler_service_pb2, suite_pb2

PRIORITIES = {"low": job_pb2.PRIORITY_LOW, "normal": job_pb2.PRIORITY_NORMAL, "high": job_pb2.PRIORITY_HIGH}
QUEUE_FULL = "Queue is full. Please try again later."
MOST_SHOTS = 100
MOST_REPEATS = 64
_RERUN = (
    item_result_pb2.OUTCOME_UNPARSED,
    item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    item_result_pb2.OUTCOME_REFUSED,
    item_result_pb2.OUTCOME_INPUT_TRUNCATED,
    item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
)
RERUN = {outcome_name(outcome): outcome for outcome in _RERUN}
"""Outcomes whose items can run again, by their names in the API."""

_config = record(
    {
        "provider": Field(text(200), required=True),
        "model": Field(text(400), required=True),
        "ollama_params": Field(members(parameter_problems)),
        "params": Field(members(parameter_problems)),
        "custom_config": Field(members(custom_problems)),
    }
)
_queueing = {"priority": Field(one_of(*PRIORITIES)), "request_id": Field(text(64))}
BODY = record(
    {
        "project_id": Field(integer(0, INT64_MAX), required=True),
        "config": Field(_config, required=True),
        "suite": Field(text(200)),
        "tasks": Field(list_of(text(100), 1000)),
        "limit": Field(integer(1, INT32_MAX)),
        "mode": Field(one_of(*MODES)),
        "shots": Field(integer(0, MOST_SHOTS)),
        "repeats": Field(integer(0, MOST_REPEATS)),
        "seed": Field(integer(-INT64_MAX - 1, INT64_MAX)),
        "stream": Field(boolean),
        "reuse": Field(record({"any_job": Field(boolean)})),
        **_queueing,
    }
)
RESCORE = record(_queueing)
RERUN_BODY = record(
    {
        "outcomes": Field(list_of(one_of(*RERUN), len(RERUN)), required=True),
        "max_tokens": Field(integer(1, 1_000_000)),
        "context_length": Field(integer(1, 10_000_000)),
        **_queueing,
    }
)


def task_problems(tasks: list[str], suite: suite_pb2.Suite) -> list[Problem]:
    if suite.open:
        return [("tasks", f"Name the task in suite, as {suite.suite}:<task>, and leave tasks out.")] if tasks else []
    known = [task.task for task in suite.tasks]
    return [
        ("tasks", f"{suite.suite} has no task {task!r}. Its tasks: {', '.join(known)}.")
        for task in tasks
        if task not in known
    ]


async def run(request: Request) -> JSONResponse:
    """Answers once the job is queued. 400 for an unknown suite or provider, 422 for wrong fields, 429 when full."""
    ctx = context.of(request)
    body: dict[str, Any] = parse(await request.body(), BODY)
    config = body["config"]
    name = body.get("suite", "glue")
    suite = await ctx.catalogue.suite(name)
    endpoint = await ctx.catalogue.endpoint(config["provider"])
    problems = task_problems(body.get("tasks", []), suite)
    given = [params for params in ("ollama_params", "params") if config.get(params) is not None]
    if len(given) == 2:
        problems.append(("config.params", "Give config.params or config.ollama_params, not both."))
    if problems:
        raise FieldErrors(problems)
    spec = job_pb2.JobSpec(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling(_given(config.get(given[0])) if given else {}, config.get("custom_config")),
        mode=MODES[body.get("mode", "generate")],
        project_id=body["project_id"],
        suite=job_pb2.SuiteWork(
            suite=name,
            tasks=body.get("tasks", []),
            limit=body.get("limit", 0),
            shots=body.get("shots", 0),
            repeats=body.get("repeats", 0),
            seed=body.get("seed", 0),
        ),
        stream=body.get("stream", False),
    )
    if _given(body.get("reuse", {})).get("any_job"):
        spec.reuse.any_job = True
    return await _queue(request, spec, body, f"Benchmarking started for suite: {name}")


async def rescore(request: Request) -> JSONResponse:
    """A new job that scores the stored answers of one with the present scorer, without a call. 404 for an unknown id,
    409 for a job that is not finished."""
    body = _optional(await request.body(), RESCORE)
    source = await _source(request)
    spec = copy_of(source, [])
    return await _queue(request, spec, body, f"Scoring the stored answers of job {source.job_id} again")


async def rerun(request: Request) -> JSONResponse:
    """A new job that asks for the items of one again that ended so, with more room where it is given; the other
    answers are taken from there."""
    body: dict[str, Any] = parse(await request.body(), RERUN_BODY)
    source = await _source(request)
    spec = copy_of(source, [RERUN[name] for name in body["outcomes"]])
    for limit in ("max_tokens", "context_length"):
        if limit in body:
            setattr(spec.sampling, limit, body[limit])
    return await _queue(request, spec, body, f"Running items of job {source.job_id} again")


def _optional(body: bytes, check: Any) -> dict[str, Any]:
    return parse(body, check) if body.strip() else {}


async def _source(request: Request) -> job_pb2.Job:
    ctx, caller = context.of(request), context.identity(request)
    return await jobs.find(ctx.backend, request.path_params["job_id"], caller)


def copy_of(source: job_pb2.Job, rerun: list[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    """The job's spec over again, with its answers taken; items that ended as in `rerun` are asked for again."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=rerun))
    return spec


async def _queue(request: Request, spec: job_pb2.JobSpec, body: Mapping[str, Any], message: str) -> JSONResponse:
    ctx, caller = context.of(request), context.identity(request)
    spec.priority = PRIORITIES[body.get("priority", "high")]
    # Calls are repeated when a scheduler falls silent: without an id that would start two jobs.
    call = scheduler_service_pb2.CreateJobRequest(request_id=body.get("request_id") or uuid.uuid4().hex, spec=spec)
    job = await _create(ctx, call, caller)
    suite = await ctx.catalogue.suite(spec.suite.suite)
    return JSONResponse(
        {
            "job_id": job.job_id,
            "message": message,
            "estimated_duration": await estimate.duration(ctx.backend, job, suite, caller),
            **({"source_job": spec.reuse.job_id} if spec.reuse.job_id else {}),
        }
    )


async def _create(
    ctx: context.Context, call: scheduler_service_pb2.CreateJobRequest, caller: rpc.Identity
) -> job_pb2.Job:
    try:
        return (await ctx.backend.ask(ctx.backend.scheduler.CreateJob, call, caller)).job
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        # The scheduler names fields of its own message, which the API's users never see.
        raise InvalidRequestError(error.message) from error


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
