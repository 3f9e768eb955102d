"""From a finished job to a new one that takes its answers: score them again, or run some items again."""

from __future__ import annotations

import uuid
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.fields import checks
from services.gateway.pages.forms.scoring_form import ScoringForm
from services.gateway.pages.jobs.page import dataset_of
from services.gateway.pages.layout.shell import fragment, go_to
from services.gateway.pages.runs.page import queue_once
from services.gateway.reads import jobs
from services.gateway.reads.jobs import copy_of
from services.words.enums import READINGS, RERUN
from services.words.job_options import NUMBERS
from services.words.sampling import PARAMETERS, RAISED
from services.words.scorers import plain
from touchstone.v1 import job_pb2, scoring_pb2


async def rescore(request: Request) -> Response:
    """Scores the stored answers without a call, as a new job: with the present scorer, possibly by other layers; rows
    also with another scorer or with other options. 422 with a sentence under each wrong field."""
    source = await _source(request)
    spec = copy_of(source, [])
    sent = await request.form()
    if "reading" in sent:
        spec.reading = READINGS.get(str(sent["reading"]), scoring_pb2.READING_UNSPECIFIED)
    if spec.HasField("dataset"):
        form = ScoringForm.read(sent)
        asked, also = form.scoring(), form.further()
        if form.errors and "hx-request" in request.headers:
            form.own = ScoringForm.of(spec.dataset.scoring).own
            dataset = await dataset_of(context.of(request), source, context.identity(request))
            columns = dataset.metadata_fields if dataset else []
            values = {"job": source, "scoring": form, "columns": columns, "new_id": uuid.uuid4().hex}
            values["scorers"] = await context.of(request).catalogue.scorers()
            return fragment(request, "jobs/_rescore.html", values, 422)
        if form.errors:
            raise InvalidRequestError(" ".join(form.errors.values()), next(iter(form.errors)))
        if asked is not None:
            spec.dataset.ClearField("scorer")
            spec.dataset.scoring.CopyFrom(asked)
            # What is the first scorer now need not be taken out of the others by hand.
            further = [one for one in (also if form.offers_also else spec.dataset.further) if not _is(one, asked)]
            spec.dataset.ClearField("further")
            spec.dataset.further.extend(further)
            spec.reading = form.layers()
    return await _start(request, spec)


async def rerun(request: Request) -> Response:
    """Runs the ticked kinds of items again, with higher limits if given, as a new job."""
    form = await request.form()
    outcomes = [RERUN[name] for name in form.getlist("outcome") if isinstance(name, str) and name in RERUN]
    if not outcomes:
        raise InvalidRequestError("Select at least one outcome.", "outcome")
    spec = copy_of(await _source(request), outcomes)
    asked = {name: str(form.get(name, "")).strip() for name in (*RAISED, "budget_usd")}
    fields = [*(replace(PARAMETERS[name], rest=name) for name in RAISED), NUMBERS["budget_usd"]]
    values, problems = checks.read(asked, fields)
    for name, problem in problems.items():
        raise InvalidRequestError(problem, name)
    for name in values:
        setattr(spec if name == "budget_usd" else spec.sampling, name, values[name])
    return await _start(request, spec)


async def again(request: Request) -> Response:
    """Runs the same job afresh, without stored answers, as a new job."""
    source = await _source(request)
    spec = job_pb2.JobSpec()
    spec.CopyFrom(source.spec)
    spec.ClearField("reuse")
    return await _start(request, spec)


def _is(further: scoring_pb2.Scoring, first: scoring_pb2.Scoring) -> bool:
    whole = scoring_pb2.Scoring()
    whole.CopyFrom(further)
    whole.reference_field = further.reference_field or first.reference_field
    whole.group_field = first.group_field
    return plain(whole) == plain(first)


async def _source(request: Request) -> job_pb2.Job:
    ctx = context.of(request)
    return await jobs.find(ctx.backend, request.path_params["job_id"], context.identity(request))


async def _start(request: Request, spec: job_pb2.JobSpec) -> Response:
    form = await request.form()
    (job,) = await queue_once(request, str(form.get("request_id", "")), [spec])
    return go_to(request, f"/jobs/{job.job_id}")
