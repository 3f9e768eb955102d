"""`POST /admin/benchmarks/run`: queue one model, or several, over a dataset."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway import jobs
from services.gateway.api.benchmarks import choosing
from services.gateway.api.benchmarks.body import MEMBERS, benchmark_body
from services.gateway.api.checks import Field, boolean, integer, list_of, one_of, record, text
from services.gateway.api.datasets import scoring
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.figures import READINGS
from services.gateway.api.job import PRIORITIES
from services.gateway.api.run import CUSTOM, PARAMETERS, QUEUEING, WORK
from services.gateway.api.schema import STRING, Schema, about, array, shape
from services.gateway.api.wording import in_rest
from services.gateway.parameters import INT32_MAX, INT64_MAX, sampling
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2

MOST_MODELS = 20
SCORING_FIELDS: dict[str, Field] = {
    "scorer": Field(one_of(*scoring.SCORERS), about="In place of the dataset's own, without its options."),
    "scoring": Field(scoring.SCORING, about="In place of the dataset's own."),
}
FIELDS: dict[str, Field] = {
    "model_id": Field(text(400), about="A model, or model@endpoint."),
    "model_ids": Field(list_of(text(400), MOST_MODELS), about="Several of them: a run for each."),
    "dataset_id": Field(text(100), required=True),
    "provider": Field(text(200), about="The only endpoint that lists the model when left out."),
    "parameters": Field(PARAMETERS, about="Sampling parameters; a row's own count before them."),
    "custom_config": Field(CUSTOM),
    "limit": Field(integer(1, INT32_MAX), about="Most rows: a seeded, nested sample."),
    "seed": Field(integer(-INT64_MAX - 1, INT64_MAX), about="Of that sample."),
    **SCORING_FIELDS,
    "provider_batch": Field(boolean, about="Send the rows through the provider's own batch API, cheaper and slower."),
    **{name: WORK[name] for name in ("reading", "stream", "reuse", "webhook_url", "labels", "budget_usd")},
    "project_id": Field(integer(0, INT64_MAX), about="A label to group runs by; 0 means none."),
    "priority": Field(one_of(*PRIORITIES), about="normal when left out."),
    "request_id": QUEUEING["request_id"],
}
_SECRET = about(STRING, "Key that signs the calls of `webhook_url`; the same for all of your jobs.")
STARTED: Schema = shape(MEMBERS | {"webhook_secret": _SECRET}, name="StartedBenchmark", optional=("webhook_secret",))


async def run(call: Call) -> JSONResponse:
    """Answers once the runs are queued: with the one of `model_id`, or a list for `model_ids`. Where one of several is
    refused, none is queued."""
    started = await start(call, await specs_of(call))
    return JSONResponse(started[0] if "model_id" in call.body else {"benchmarks": started})


async def specs_of(call: Call) -> list[job_pb2.JobSpec]:
    """A spec for each model. Raises FieldErrors, and what `choosing.place_of` raises before anything is queued."""
    body = call.body
    if ("model_id" in body) == ("model_ids" in body):
        raise FieldErrors([("model_id", "Give model_id, or model_ids for several.")])
    dataset_id = jobs.checked_dataset(body["dataset_id"])
    models = body.get("model_ids") or [body["model_id"]]
    catalogue = call.ctx.catalogue
    places = [await choosing.place_of(catalogue, model, body.get("provider", "")) for model in models]
    for place, chosen in enumerate(places):
        if chosen in places[:place]:
            raise FieldErrors([(f"model_ids[{place}]", f"{models[place][:200]!r} is given twice; give it once.")])
    return [_spec(body, dataset_id, endpoint, model) for endpoint, model in places]


def _spec(body: Mapping[str, Any], dataset_id: str, endpoint: str, model: str) -> job_pb2.JobSpec:
    spec = job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        sampling=sampling(
            {name: value for name, value in body.get("parameters", {}).items() if value is not None},
            body.get("custom_config"),
        ),
        mode=suite_pb2.MODE_GENERATE,
        priority=PRIORITIES[body["priority"]] if "priority" in body else None,
        project_id=body.get("project_id", 0),
        dataset=job_pb2.DatasetWork(dataset_id=dataset_id, limit=body.get("limit", 0), seed=body.get("seed", 0)),
        stream=body.get("stream", False),
        webhook_url=body.get("webhook_url", ""),
        labels=body.get("labels", {}),
        budget_usd=body.get("budget_usd", 0),
        provider_batch=body.get("provider_batch", False),
    )
    set_scoring(spec, body)
    if body.get("reuse", {}).get("any_job"):
        spec.reuse.any_job = True
    return spec


def set_scoring(spec: job_pb2.JobSpec, body: Mapping[str, Any]) -> None:
    """What `scorer` or `scoring` say, and `reading`; without them the job keeps what it has, but that another scoring
    takes its own reading. Raises FieldErrors for both of the first two."""
    work = spec.dataset
    if "scorer" in body and "scoring" in body:
        raise FieldErrors([("scorer", "Give scorer, or scoring with its options, not both.")])
    if "scorer" in body:
        # The scheduler fills in the rest.
        work.ClearField("scoring")
        work.scorer = body["scorer"]
    if "scoring" in body:
        work.ClearField("scorer")
        work.scoring.CopyFrom(scoring.scoring_of(body["scoring"]))
    if "scorer" in body or "scoring" in body:
        spec.ClearField("reading")
    if "reading" in body:
        spec.reading = READINGS[body["reading"]]


async def start(call: Call, specs: list[job_pb2.JobSpec]) -> list[dict[str, Any]]:
    """The runs, queued: all of them or none.

    Raises LimitReachedError when the user's queue has no room, NotFoundError for an unknown dataset,
    InvalidRequestError for what the scheduler refuses.
    """
    backend = call.ctx.backend
    # Calls are repeated when a scheduler falls silent: without an id that would start the runs twice.
    request_id = call.body.get("request_id") or uuid.uuid4().hex
    request = scheduler_service_pb2.CreateJobsRequest(request_id=request_id, specs=specs)
    try:
        made = await call.ask(backend.scheduler.CreateJobs, request)
    except InvalidRequestError as error:
        raise InvalidRequestError(in_rest(error.message)) from error
    # Lists are the results service's, which hears of the runs a moment later: who lists at once shall find them.
    with suppress(TouchstoneError):
        for job in made.jobs:
            await call.ask(backend.results.GetJob, results_service_pb2.ResultsServiceGetJobRequest(job_id=job.job_id))
    secret = {"webhook_secret": made.webhook_secret} if made.webhook_secret else {}
    return [benchmark_body(job) | secret for job in made.jobs]


ONE_OR_SEVERAL: Schema = {"anyOf": [STARTED, shape({"benchmarks": array(STARTED)}, name="StartedBenchmarks")]}
RUN_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/run",
    run,
    "runOnDataset",
    "Queue a model, or several, over a dataset.",
    answer=ONE_OR_SEVERAL,
    body=record(FIELDS, name="RunBenchmarkRequest"),
    errors=(404, 409),
    gives={"benchmark_id": "/benchmark_id"},
    base=ADMIN,
)
