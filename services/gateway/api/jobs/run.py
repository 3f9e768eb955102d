"""`POST /run`: queue one job."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from services.errors import InvalidRequestError, LimitReachedError
from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import Check, Field, Problem, list_of, record, text
from services.gateway.fields.checks import members as judged
from services.gateway.fields.job import (
    CUSTOM_SCHEMA,
    custom_problems,
    in_rest,
    option,
    options_of,
    parameter_problems,
    parameter_schema,
    sampling,
)
from services.gateway.fields.judges import of_model, rubric_of
from services.gateway.fields.schema import STRING, UUID, about, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import estimate
from services.words import rubrics
from services.words.job_options import MOST_MODEL, fill
from touchstone.v1 import job_pb2, scheduler_service_pb2, suite_pb2

QUEUE_FULL = "Queue is full. Please try again later."

PARAMETERS = judged(parameter_problems, parameter_schema())
CUSTOM = judged(custom_problems, CUSTOM_SCHEMA)
MODEL: dict[str, Field] = {
    "provider": Field(text(200), required=True, about="An endpoint's name, or its kind if only one endpoint has it."),
    "model": Field(text(MOST_MODEL), required=True, about="The model's id at that endpoint."),
    "ollama_params": Field(
        PARAMETERS, about="Sampling parameters. Absent ones are not sent, so that the provider's defaults hold."
    ),
    "params": Field(PARAMETERS, about="The same as `ollama_params`, for any provider. Give one of the two."),
    "custom_config": Field(CUSTOM),
}
CONFIG = record(MODEL, name="ModelConfig")
WORK: dict[str, Field] = {
    "project_id": option("project_id", required=True),
    "config": Field(CONFIG, required=True, about="The model and its parameters."),
    "suite": Field(text(200), default="glue", about="The suite, such as `superglue`, `mmlu`, `medical` or `demo`."),
    **{name: option(name) for name in ("tasks", "limit", "mode", "shots", "repeats", "seed", "reading", "stream")},
    "reuse": Field(
        record({name: option(name) for name in ("any_job", "without_digest")}),
        about="Which stored answers to take. The endpoint must report the digest of the model's weights, unless "
        "`without_digest` is true.",
    ),
    **{name: option(name) for name in ("webhook_url", "labels", "budget_usd")},
    "judges": Field(
        list_of(record(of_model(CONFIG), name="JudgeOfRun"), rubrics.MOST_JUDGES),
        about="Judges of the answers. Each starts in a job of its own once this one has completed.",
    ),
}
"""The fields of a job."""
QUEUEING: dict[str, Field] = {
    "priority": option("priority"),
    "request_id": Field(
        text(64), about="A repeated request with the same id gives the same job, for a day. With another body, 409."
    ),
}
BODY = record(WORK | QUEUEING, name="RunRequest")
WEBHOOK_SECRET = about(STRING, "The key that signs the calls of `webhook_url`, the same for all of your jobs.")
QUEUED = {
    "job_id": members.JOB_ID,
    "message": members.MESSAGE,
    "estimated_duration": about(
        STRING, 'A range, such as "10-30 minutes". Absent while no run of the model shows how long its answers take.'
    ),
    "source_job": about(UUID, "The job whose answers are taken."),
    "webhook_secret": WEBHOOK_SECRET,
}
STARTED = shape(QUEUED, name="Started", optional=("estimated_duration", "source_job", "webhook_secret"))


async def run(call: Call) -> JSONResponse:
    """Answers once the job is queued. 400 for an unknown suite or provider, 422 for wrong fields, 429 when full."""
    spec = await spec_of(call, call.body)
    spec.priority = spec.priority or job_pb2.PRIORITY_HIGH
    return await queue(call, spec, f"Benchmarking started for suite: {spec.suite.suite}")


async def spec_of(call: Call, body: Mapping[str, Any], path: str = "") -> job_pb2.JobSpec:
    """The spec from checked members of WORK, and possibly a priority; `path` precedes its fields' names.

    Raises InvalidRequestError for an unknown suite or provider, FieldErrors for the rest.
    """
    config = body["config"]
    name = body.get("suite") or "glue"
    suite = await call.ctx.catalogue.suite(name)
    endpoint = await call.ctx.catalogue.endpoint(config["provider"])
    if problems := task_problems(body.get("tasks") or [], suite, f"{path}tasks"):
        raise FieldErrors(problems)
    spec = job_pb2.JobSpec(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling_of(config, f"{path}config"),
        suite=job_pb2.SuiteWork(suite=name),
    )
    fill(spec, options_of(body))
    spec.judges.extend([await judge_of(call, one, f"{path}judges[{place}].") for place, one in judges_in(body)])
    return spec


def judges_in(body: Mapping[str, Any]) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """The judges of a checked body with their places."""
    return enumerate(body.get("judges") or [])


async def judge_of(call: Call, body: Mapping[str, Any], path: str = "") -> job_pb2.Judge:
    """A judge from its checked members; those of experiments have no rubric. Raises InvalidRequestError for an unknown
    provider, and FieldErrors."""
    config = body["config"]
    endpoint = await call.ctx.catalogue.endpoint(config["provider"], f"{path}config.provider")
    return job_pb2.Judge(
        endpoint=endpoint.endpoint,
        model=config["model"].strip(),
        sampling=sampling_of(config, f"{path}config"),
        rubric=rubrics.written(rubric_of(body["rubric"])) if body.get("rubric") else "",
        repeats=body.get("repeats") or 0,
        budget_usd=body.get("budget_usd") or 0,
    )


def sampling_of(config: Mapping[str, Any], path: str) -> job_pb2.Sampling:
    """The parameters of a checked CONFIG, which is at the path. Raises FieldErrors."""
    given = [params for params in ("ollama_params", "params") if config.get(params) is not None]
    if len(given) == 2:
        raise FieldErrors([(f"{path}.params", f"Give {path}.params or {path}.ollama_params, not both.")])
    return sampling(_given(config[given[0]]) if given else {}, config.get("custom_config"))


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
    # Calls are repeated when a scheduler is silent: without an id that would start two jobs.
    request_id = call.body.get("request_id") or uuid.uuid4().hex
    request = scheduler_service_pb2.CreateJobRequest(request_id=request_id, spec=spec)
    try:
        made = await call.ask(call.ctx.backend.scheduler.CreateJob, request)
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        # The scheduler names fields of its message, which users of the API never see.
        raise InvalidRequestError(in_rest(error.message)) from error
    job, items = made.job, await _answers_of(call, spec)
    estimated = await estimate.duration(call.ctx.backend, job, items, call.caller)
    return JSONResponse(
        {
            "job_id": job.job_id,
            "message": message,
            **({"estimated_duration": estimated} if estimated else {}),
            **({"source_job": spec.reuse.job_id} if spec.reuse.job_id else {}),
            **({"webhook_secret": made.webhook_secret} if made.webhook_secret else {}),
        }
    )


async def _answers_of(call: Call, spec: job_pb2.JobSpec) -> int:
    if spec.HasField("judging"):
        return 0
    if spec.HasField("dataset"):
        return await estimate.rows_of(call.ctx.backend, spec.dataset, call.caller)
    work = spec.suite
    suite = await call.ctx.catalogue.suite(work.suite)
    return estimate.items_of(suite, list(work.tasks), work.limit) * max(1, work.repeats)


def _given(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def queueing(check: Check, *, needed: bool = True) -> dict[str, Any]:
    """The common fields of the endpoints that queue a job."""
    return {"answer": STARTED, "body": check, "body_needed": needed, "gives": {"job_id": "/job_id"}}


RUN = Endpoint(
    "POST",
    "/run",
    run,
    "runBenchmark",
    "Queue a job. The answer comes at once, with the job's id.",
    errors=(409,),
    **queueing(BODY),
)
