"""`POST /rescore/{job_id}`, `/rerun/{job_id}`, `/retry/{job_id}`: a finished job's answers, used again."""

from __future__ import annotations

from typing import Any

from services.errors import ConflictError, NotFoundError
from services.gateway.api.answers import members
from services.gateway.api.answers.job import ATTEMPT
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.jobs.run import QUEUEING, queue, queueing
from services.gateway.fields.checks import Field, list_of, one_of, record
from services.gateway.fields.job import check_of, option, parameter_about
from services.gateway.fields.schema import shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs
from services.gateway.reads.jobs import copy_of
from services.words.enums import PRIORITIES, READINGS, RERUN
from services.words.sampling import BY_REST_NAME, RAISED
from touchstone.v1 import job_pb2, scheduler_service_pb2

_LIMITS = {name: one for name, one in BY_REST_NAME.items() if one.name in RAISED}
"""What a re-run may raise, by the API's names."""

RESCORED: dict[str, Field] = {
    "reading": option("reading", "The layers by which the stored answers are read. As before if absent.")
}
RESCORE_BODY = record(RESCORED | QUEUEING, name="RescoreRequest")
RERUN_BODY = record(
    {
        "outcomes": Field(
            list_of(one_of(*RERUN), len(RERUN)),
            required=True,
            about="The outcomes whose items are asked again. Items without a final outcome always are.",
        ),
        **{
            name: Field(check_of(one), about=parameter_about(name, "Instead of the job's, and no lower."))
            for name, one in _LIMITS.items()
        },
        "budget_usd": option("budget_usd", "The most that the new job may cost, instead of the job's budget."),
        **QUEUEING,
    },
    name="RerunRequest",
)


async def rescore(call: Call) -> JSONResponse:
    """A new job that scores the stored answers of a job with the present scorer, possibly by other layers, without a
    call. 404 for an unknown id, 409 for a job that is not finished."""
    source = await _source(call)
    spec = copy_of(source, [])
    if "reading" in call.body:
        spec.reading = READINGS[call.body["reading"]]
    return await _queue(call, spec, f"Scoring the stored answers of job {source.job_id} again")


async def rerun(call: Call) -> JSONResponse:
    """A new job that asks again for a job's items with these outcomes, with higher limits if given, and takes the other
    answers from it. 400 if no item has such an outcome."""
    if "num_predict" in call.body and "max_tokens" in call.body:
        raise FieldErrors([("max_tokens", "Give num_predict or max_tokens, not both: they are the same.")])
    source = await _source(call)
    spec = copy_of(source, [RERUN[name] for name in dict.fromkeys(call.body["outcomes"])])
    for name, one in _LIMITS.items():
        if name in call.body:
            setattr(spec.sampling, one.name, call.body[name])
    spec.budget_usd = call.body.get("budget_usd", spec.budget_usd)
    return await _queue(call, spec, f"Running items of job {source.job_id} again")


def priority(call: Call) -> job_pb2.Priority:
    """The requested priority; else the usual one of such jobs, which only an admin may exceed."""
    name = call.body.get("priority")
    return PRIORITIES[name] if name else job_pb2.PRIORITY_UNSPECIFIED


async def _source(call: Call) -> job_pb2.Job:
    return await jobs.find(call.ctx.backend, call.job_id, call.caller)


async def _queue(call: Call, spec: job_pb2.JobSpec, message: str) -> JSONResponse:
    spec.priority = priority(call)
    return await queue(call, spec, message)


async def retry(call: Call) -> JSONResponse:
    """Runs the missing items of a failed, cancelled or incomplete job as its next attempt. 409 if nothing is
    missing."""
    job = await retried(call)
    answer: dict[str, Any] = {
        "job_id": job.job_id,
        "attempt": job.attempt,
        "message": f"Job {job.job_id} runs again, attempt {job.attempt}",
    }
    return JSONResponse(answer)


async def retried(call: Call) -> job_pb2.Job:
    """The job in the path in its next attempt. Raises NotFoundError, and ConflictError if nothing is missing."""
    request = scheduler_service_pb2.RetryJobRequest(job_id=call.job_id)
    try:
        return (await call.ask(call.ctx.backend.scheduler.RetryJob, request)).job
    except NotFoundError:
        # Only the results service remembers jobs that finished more than a day ago.
        old = await jobs.find(call.ctx.backend, call.job_id, call.caller)
        raise ConflictError(
            f"Job {old.job_id} finished more than a day ago. Take its answers into a new one: POST /rerun/{old.job_id}."
        ) from None


RESCORE = Endpoint(
    "POST",
    "/rescore/{job_id}",
    rescore,
    "rescoreJob",
    "Score the stored answers of a finished job again, as a new job that makes no call.",
    errors=(409,),
    **queueing(RESCORE_BODY, needed=False),
)
RERUN_ITEMS = Endpoint(
    "POST",
    "/rerun/{job_id}",
    rerun,
    "rerunItems",
    "Ask again for items with certain outcomes, as a new job that takes the other answers.",
    errors=(409,),
    **queueing(RERUN_BODY),
)
RETRY = Endpoint(
    "POST",
    "/retry/{job_id}",
    retry,
    "retryJob",
    "Run the missing items of a failed, cancelled or incomplete job.",
    answer=shape({"job_id": members.JOB_ID, "attempt": ATTEMPT, "message": members.MESSAGE}, name="Retried"),
    errors=(409,),
)
