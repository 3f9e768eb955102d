"""`POST /run`: queue one job."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from services.errors import InvalidRequestError, LimitReachedError
from services.gateway import estimate
from services.gateway.api.checks import (
    Check,
    Field,
    Problem,
    boolean,
    integer,
    list_of,
    members,
    number,
    one_of,
    record,
    text,
    texts,
)
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.figures import MODES, READINGS
from services.gateway.api.job import PRIORITIES
from services.gateway.api.schema import STRING, UUID, about, shape
from services.gateway.api.wording import in_rest
from services.gateway.parameters import (
    CUSTOM_SCHEMA,
    INT32_MAX,
    INT64_MAX,
    custom_problems,
    parameter_problems,
    parameter_schema,
    sampling,
)
from services.gateway.responses import FieldErrors, JSONResponse
from services.numbers import MOST_BUDGET_USD
from touchstone.v1 import job_pb2, scheduler_service_pb2, suite_pb2

QUEUE_FULL = "Queue is full. Please try again later."
MOST_SHOTS = 100
MOST_REPEATS = 64

URL = text(2000, pattern=r"https?://[^\s/?#]+[^\s]*", means="an http or https address")
BUDGET = number(0, MOST_BUDGET_USD, above=True)
PARAMETERS = members(parameter_problems, parameter_schema())
CUSTOM = members(custom_problems, CUSTOM_SCHEMA)
_config = record(
    {
        "provider": Field(text(200), required=True, about="An endpoint's name, or its kind when only one has it."),
        "model": Field(text(400), required=True, about="A model id at that endpoint."),
        "ollama_params": Field(PARAMETERS, about="Sampling parameters. What is absent is not sent."),
        "params": Field(PARAMETERS, about="The same under a neutral name; give one of the two."),
        "custom_config": Field(CUSTOM),
    },
    name="ModelConfig",
)
WORK: dict[str, Field] = {
    "project_id": Field(integer(0, INT64_MAX), required=True, about="A label to group jobs by; 0 means none."),
    "config": Field(_config, required=True),
    "suite": Field(text(200), default="glue"),
    "tasks": Field(list_of(text(100), 1000), about="Only these tasks of the suite."),
    "limit": Field(integer(1, INT32_MAX), about="Most items a task: a seeded, nested sample."),
    "mode": Field(one_of(*MODES), default="generate"),
    "shots": Field(integer(0, MOST_SHOTS), about="Few-shot examples in a prompt."),
    "repeats": Field(integer(0, MOST_REPEATS), about="Answers per item; 0 and 1 both mean one."),
    "seed": Field(integer(-INT64_MAX - 1, INT64_MAX), about="Of the sample and of sampled examples."),
    "reading": Field(one_of(*READINGS), about="Layers by which answers are read; each task's own when left out."),
    "stream": Field(boolean, about="Ask for streamed answers, to know the time to the first token."),
    "reuse": Field(
        record({"any_job": Field(boolean, about="Take the answers that any job had to the very same request.")})
    ),
    "webhook_url": Field(URL, about="Told when the job is finished."),
    "labels": Field(texts(16, 64, 512), about="Notes of your own, shown with the job."),
    "budget_usd": Field(BUDGET, about="No call begins that could cost more in all."),
}
"""What a job is made of."""
QUEUEING: dict[str, Field] = {
    "priority": Field(one_of(*PRIORITIES), about="high for what someone waits for, normal for background, low."),
    "request_id": Field(text(64), about="Repeating a request with the same one gives the same job."),
}
BODY = record(WORK | QUEUEING, name="RunRequest")
QUEUED = {
    "job_id": UUID,
    "message": STRING,
    "estimated_duration": about(STRING, 'A range, e.g. "10-30 minutes".'),
    "source_job": about(UUID, "Job whose answers are taken."),
    "webhook_secret": about(STRING, "Key that signs the calls of `webhook_url`; the same for all of your jobs."),
}
STARTED = shape(QUEUED, name="Started", optional=("source_job", "webhook_secret"))


async def run(call: Call) -> JSONResponse:
    """Answers once the job is queued. 400 for an unknown suite or provider, 422 for wrong fields, 429 when full."""
    spec = await spec_of(call, call.body)
    spec.priority = PRIORITIES[call.body.get("priority", "high")]
    return await queue(call, spec, f"Benchmarking started for suite: {spec.suite.suite}")


async def spec_of(call: Call, body: Mapping[str, Any], path: str = "") -> job_pb2.JobSpec:
    """The spec that checked members of WORK come to, without a priority; `path` stands before its fields' names.

    Raises InvalidRequestError for an unknown suite or provider, FieldErrors for the rest.
    """
    config = body["config"]
    name = body.get("suite") or "glue"
    suite = await call.ctx.catalogue.suite(name)
    endpoint = await call.ctx.catalogue.endpoint(config["provider"])
    problems = task_problems(body.get("tasks") or [], suite, f"{path}tasks")
    given = [params for params in ("ollama_params", "params") if config.get(params) is not None]
    if len(given) == 2:
        words = f"Give {path}config.params or {path}config.ollama_params, not both."
        problems.append((f"{path}config.params", words))
    if problems:
        raise FieldErrors(problems)
    spec = job_pb2.JobSpec(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling(_given(config.get(given[0])) if given else {}, config.get("custom_config")),
        mode=MODES[body.get("mode") or "generate"],
        project_id=body["project_id"],
        suite=job_pb2.SuiteWork(
            suite=name,
            tasks=body.get("tasks") or [],
            limit=body.get("limit") or 0,
            shots=body.get("shots") or 0,
            repeats=body.get("repeats") or 0,
            seed=body.get("seed") or 0,
        ),
        stream=body.get("stream") or False,
        webhook_url=body.get("webhook_url") or "",
        labels=body.get("labels") or {},
        budget_usd=body.get("budget_usd") or 0,
        reading=READINGS[body["reading"]] if body.get("reading") else None,
    )
    if _given(body.get("reuse") or {}).get("any_job"):
        spec.reuse.any_job = True
    return spec


def task_problems(tasks: list[str], suite: suite_pb2.Suite, path: str = "tasks") -> list[Problem]:
    if suite.open:
        return [(path, f"Name the task in suite, as {suite.suite}:<task>, and leave tasks out.")] if tasks else []
    known = [task.task for task in suite.tasks]
    return [
        (path, f"{suite.suite} has no task {task!r}. Its tasks: {', '.join(known)}.")
        for task in tasks
        if task not in known
    ]


async def queue(call: Call, spec: job_pb2.JobSpec, message: str) -> JSONResponse:
    """Queues the job and says how long it may take. Raises LimitReachedError when the user's queue is full."""
    # Calls are repeated when a scheduler falls silent: without an id that would start two jobs.
    request_id = call.body.get("request_id") or uuid.uuid4().hex
    request = scheduler_service_pb2.CreateJobRequest(request_id=request_id, spec=spec)
    try:
        made = await call.ask(call.ctx.backend.scheduler.CreateJob, request)
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        # The scheduler names fields of its own message, which the API's users never see.
        raise InvalidRequestError(in_rest(error.message)) from error
    job, items = made.job, await _answers_of(call, spec)
    return JSONResponse(
        {
            "job_id": job.job_id,
            "message": message,
            "estimated_duration": await estimate.duration(call.ctx.backend, job, items, call.caller),
            **({"source_job": spec.reuse.job_id} if spec.reuse.job_id else {}),
            **({"webhook_secret": made.webhook_secret} if made.webhook_secret else {}),
        }
    )


async def _answers_of(call: Call, spec: job_pb2.JobSpec) -> int:
    if spec.HasField("dataset"):
        return await estimate.rows_of(call.ctx.backend, spec.dataset, call.caller)
    work = spec.suite
    suite = await call.ctx.catalogue.suite(work.suite)
    return estimate.items_of(suite, list(work.tasks), work.limit) * max(1, work.repeats)


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def queueing(check: Check, *, needed: bool = True) -> dict[str, Any]:
    """What the endpoints have in common that queue a job."""
    return {"answer": STARTED, "body": check, "body_needed": needed, "gives": {"job_id": "/job_id"}}


RUN = Endpoint(
    "POST",
    "/run",
    run,
    "runBenchmark",
    "Queue a job; answers at once with its id.",
    errors=(409,),
    **queueing(BODY),
)
