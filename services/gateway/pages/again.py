"""From a finished job to a new one that takes its answers: score them again, or run some items again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from services.errors import InvalidRequestError
from services.gateway import context, jobs
from services.gateway.api.again import RERUN, copy_of
from services.gateway.pages.job import go_to
from services.gateway.pages.run import queue_once
from services.gateway.parameters import INT32_MAX
from touchstone.v1 import job_pb2


async def rescore(request: Request) -> Response:
    """Scores the stored answers with the present scorer, without a call, as a new job."""
    return await _start(request, copy_of(await _source(request), []))


async def rerun(request: Request) -> Response:
    """Runs the ticked kinds of items again, with more room where it is given, as a new job."""
    form = await request.form()
    outcomes = [RERUN[name] for name in form.getlist("outcome") if isinstance(name, str) and name in RERUN]
    if not outcomes:
        raise InvalidRequestError("Tick at least one kind of items.", "outcome")
    spec = copy_of(await _source(request), outcomes)
    for name in ("max_tokens", "context_length"):
        text = str(form.get(name, "")).strip().replace(",", "")
        if text:
            if not text.isdecimal() or not 0 < int(text) <= INT32_MAX:
                raise InvalidRequestError(f"{name} must be a whole number above 0.", name)
            setattr(spec.sampling, name, int(text))
    return await _start(request, spec)


async def _source(request: Request) -> job_pb2.Job:
    ctx = context.of(request)
    return await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))


async def _start(request: Request, spec: job_pb2.JobSpec) -> Response:
    form = await request.form()
    job = await queue_once(request, str(form.get("request_id", "")), spec)
    return go_to(request, f"/jobs/{job.job_id}")
