"""`POST /rescore/{job_id}`, `/rerun/{job_id}`, `/retry/{job_id}`: a finished job's answers, used again."""

from __future__ import annotations

from typing import Any

from services.errors import ConflictError, NotFoundError
from services.gateway import jobs
from services.gateway.api.checks import Field, integer, list_of, one_of, record
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.figures import READINGS, outcome_name
from services.gateway.api.job import PRIORITIES
from services.gateway.api.run import BUDGET, QUEUEING, queue, queueing
from services.gateway.api.schema import COUNT, STRING, UUID, shape
from services.gateway.parameters import INT32_MAX
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import item_result_pb2, job_pb2, scheduler_service_pb2

_RERUN = (
    item_result_pb2.OUTCOME_UNPARSED,
    item_result_pb2.OUTCOME_OUTPUT_TRUNCATED,
    item_result_pb2.OUTCOME_REFUSED,
    item_result_pb2.OUTCOME_INPUT_TRUNCATED,
    item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR,
)
RERUN = {outcome_name(outcome): outcome for outcome in _RERUN}
"""Outcomes whose items can run again, by their names in the API."""
_LIMITS = {"num_predict": "max_tokens", "max_tokens": "max_tokens", "num_ctx": "context_length"}
"""The API's names of what a re-run may raise, and their places in `Sampling`."""

RESCORED: dict[str, Field] = {
    "reading": Field(one_of(*READINGS), about="Layers by which the stored answers are read; as before when left out.")
}
RESCORE_BODY = record(RESCORED | QUEUEING, name="RescoreRequest")
RERUN_BODY = record(
    {
        "outcomes": Field(
            list_of(one_of(*RERUN), len(RERUN)),
            required=True,
            about="How items ended that are asked for again; those without a final answer are in any case.",
        ),
        "num_predict": Field(integer(1, INT32_MAX), about="Instead of the job's, and no lower."),
        "max_tokens": Field(integer(1, INT32_MAX), about="The same as num_predict."),
        "num_ctx": Field(integer(1, INT32_MAX), about="Instead of the job's, and no lower."),
        "budget_usd": Field(BUDGET, about="Of the new job, instead of the job's."),
        **QUEUEING,
    },
    name="RerunRequest",
)


async def rescore(call: Call) -> JSONResponse:
    """A new job that scores the stored answers of one with the present scorer, perhaps by other layers, without a call.
    404 for an unknown id, 409 for a job that is not finished."""
    source = await _source(call)
    spec = copy_of(source, [])
    if "reading" in call.body:
        spec.reading = READINGS[call.body["reading"]]
    return await _queue(call, spec, f"Scoring the stored answers of job {source.job_id} again")


async def rerun(call: Call) -> JSONResponse:
    """A new job that asks for the items of one again that ended so, with more room where it is given; the other
    answers are taken from there. 400 when no item ended so."""
    if "num_predict" in call.body and "max_tokens" in call.body:
        raise FieldErrors([("max_tokens", "Give num_predict or max_tokens, which are the same; not both.")])
    source = await _source(call)
    spec = copy_of(source, [RERUN[name] for name in dict.fromkeys(call.body["outcomes"])])
    for name, field in _LIMITS.items():
        if name in call.body:
            setattr(spec.sampling, field, call.body[name])
    spec.budget_usd = call.body.get("budget_usd", spec.budget_usd)
    return await _queue(call, spec, f"Running items of job {source.job_id} again")


def copy_of(source: job_pb2.Job, rerun: list[item_result_pb2.Outcome]) -> job_pb2.JobSpec:
    """The job's spec over again, with its answers taken; items that ended as in `rerun` are asked for again."""
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.reuse.CopyFrom(job_pb2.Reuse(job_id=source.job_id, rerun=rerun))
    # Who asked for the first job to be announced did not ask for this one.
    spec.webhook_url = spec.schedule_id = ""
    if not rerun:
        # Nobody is called, so that nothing is spent and no provider's day is waited for.
        for field in ("provider_batch", "budget_usd", "time_limit_s"):
            spec.ClearField(field)
    return spec


def priority(call: Call) -> job_pb2.Priority:
    """What is asked for; else what jobs of the kind usually get, above which only an admin may ask."""
    name = call.body.get("priority")
    return PRIORITIES[name] if name else job_pb2.PRIORITY_UNSPECIFIED


async def _source(call: Call) -> job_pb2.Job:
    return await jobs.find(call.ctx.backend, call.job_id, call.caller)


async def _queue(call: Call, spec: job_pb2.JobSpec, message: str) -> JSONResponse:
    spec.priority = priority(call)
    return await queue(call, spec, message)


async def retry(call: Call) -> JSONResponse:
    """Runs what is missing of a failed, cancelled or incomplete job as its next attempt. 409 where nothing is."""
    job = await retried(call)
    answer: dict[str, Any] = {
        "job_id": job.job_id,
        "attempt": job.attempt,
        "message": f"Job {job.job_id} runs again, attempt {job.attempt}",
    }
    return JSONResponse(answer)


async def retried(call: Call) -> job_pb2.Job:
    """The job in the path in its next attempt. Raises NotFoundError, and ConflictError where nothing is missing."""
    request = scheduler_service_pb2.RetryJobRequest(job_id=call.job_id)
    try:
        return (await call.ask(call.ctx.backend.scheduler.RetryJob, request)).job
    except NotFoundError:
        # Only results remembers jobs that finished more than a day ago.
        old = await jobs.find(call.ctx.backend, call.job_id, call.caller)
        raise ConflictError(
            f"Job {old.job_id} finished more than a day ago. Take its answers into a new one: POST /rerun/{old.job_id}."
        ) from None


RESCORE = Endpoint(
    "POST",
    "/rescore/{job_id}",
    rescore,
    "rescoreJob",
    "Score the stored answers of a finished job again, as a new job without a call.",
    errors=(409,),
    **queueing(RESCORE_BODY, needed=False),
)
RERUN_ITEMS = Endpoint(
    "POST",
    "/rerun/{job_id}",
    rerun,
    "rerunItems",
    "Ask again for items that ended badly, as a new job that takes the other answers.",
    errors=(409,),
    **queueing(RERUN_BODY),
)
RETRY = Endpoint(
    "POST",
    "/retry/{job_id}",
    retry,
    "retryJob",
    "Run what is missing of a failed, cancelled or incomplete job.",
    answer=shape({"job_id": UUID, "attempt": COUNT, "message": STRING}, name="Retried"),
    errors=(409,),
)
