"""`POST /admin/benchmarks/run`: queue one model, or several, over a dataset."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from services.errors import InvalidRequestError, LimitReachedError, TouchstoneError
from services.gateway import jobs
from services.gateway.api.benchmarks import choosing
from services.gateway.api.benchmarks.body import MEMBERS, benchmark_body
from services.gateway.api.checks import Field, boolean, integer, list_of, one_of, record, text
from services.gateway.api.datasets import scoring
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.job import PRIORITIES
from services.gateway.api.run import CUSTOM, PARAMETERS, QUEUE_FULL, QUEUEING, WORK
from services.gateway.api.schema import COUNT, STRING, Schema, about, array, null, shape
from services.gateway.api.wording import in_rest
from services.gateway.parameters import INT32_MAX, INT64_MAX, sampling
from services.gateway.responses import FieldErrors, JSONResponse, sentence_of, status_of
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
    **{name: WORK[name] for name in ("stream", "reuse", "webhook_url", "labels", "budget_usd")},
    "project_id": Field(integer(0, INT64_MAX), about="A label to group runs by; 0 means none."),
    "priority": Field(one_of(*PRIORITIES), about="normal when left out."),
    "request_id": QUEUEING["request_id"],
}
_SECRET = about(STRING, "Key that signs the calls of `webhook_url`; the same for all of your jobs.")
REFUSED = shape({"model_id": STRING, "status": COUNT, "detail": STRING, "retry_after": null(COUNT)}, name="RefusedRun")
STARTED: Schema = shape(MEMBERS | {"webhook_secret": _SECRET}, name="StartedBenchmark", optional=("webhook_secret",))


async def run(call: Call) -> JSONResponse:
    """Answers once the runs are queued: with the one of `model_id`, or a list for `model_ids`. Of several, those that
    could not be queued stand in `refused`; where none could, the first one's refusal is the answer."""
    started, refused = await start(call, await specs_of(call))
    if "model_id" in call.body:
        return JSONResponse(started[0])
    return JSONResponse({"benchmarks": started, "refused": refused})


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
    set_scoring(spec.dataset, body)
    if body.get("reuse", {}).get("any_job"):
        spec.reuse.any_job = True
    return spec


def set_scoring(work: job_pb2.DatasetWork, body: Mapping[str, Any]) -> None:
    """What `scorer` or `scoring` say; without either the work keeps what it has. Raises FieldErrors for both."""
    if "scorer" in body and "scoring" in body:
        raise FieldErrors([("scorer", "Give scorer, or scoring with its options, not both.")])
    if "scorer" in body:
        # The scheduler fills in the rest.
        work.ClearField("scoring")
        work.scorer = body["scorer"]
    if "scoring" in body:
        work.ClearField("scorer")
        work.scoring.CopyFrom(scoring.scoring_of(body["scoring"]))


async def start(call: Call, specs: list[job_pb2.JobSpec]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Queues all that can be; answers those, and those that cannot. Raises the first refusal where none can."""
    started: list[dict[str, Any]] = []
    refusals: list[tuple[job_pb2.JobSpec, TouchstoneError]] = []
    for spec in specs:
        try:
            started.append(await queue(call, spec))
        except TouchstoneError as error:
            refusals.append((spec, error))
    if not started:
        raise refusals[0][1]
    return started, [_refusal(spec, error) for spec, error in refusals]


async def queue(call: Call, spec: job_pb2.JobSpec) -> dict[str, Any]:
    """The run, queued. Raises LimitReachedError when the user's queue is full, NotFoundError for an unknown dataset."""
    backend = call.ctx.backend
    request = scheduler_service_pb2.CreateJobRequest(request_id=_request_id(call, spec), spec=spec)
    try:
        made = await call.ask(backend.scheduler.CreateJob, request)
    except LimitReachedError as error:
        raise LimitReachedError(QUEUE_FULL, error.retry_after_s) from error
    except InvalidRequestError as error:
        raise InvalidRequestError(in_rest(error.message)) from error
    # Lists are the results service's, which hears of the run a moment later: who lists at once shall find it.
    with suppress(TouchstoneError):
        await call.ask(backend.results.GetJob, results_service_pb2.ResultsServiceGetJobRequest(job_id=made.job.job_id))
    return benchmark_body(made.job) | ({"webhook_secret": made.webhook_secret} if made.webhook_secret else {})


def _request_id(call: Call, spec: job_pb2.JobSpec) -> str:
    """Of a request for several runs each has an id of its own, the same for the same request id."""
    # Calls are repeated when a scheduler falls silent: without an id that would start two runs.
    given = call.body.get("request_id") or uuid.uuid4().hex
    if "model_ids" not in call.body:
        return str(given)
    return hashlib.sha256(f"{given} {spec.endpoint} {spec.model}".encode()).hexdigest()


def _refusal(spec: job_pb2.JobSpec, error: TouchstoneError) -> dict[str, Any]:
    return {
        "model_id": spec.model,
        "status": status_of(error),
        "detail": sentence_of(error),
        "retry_after": error.retry_after_s if isinstance(error, LimitReachedError) else None,
    }


ONE_OR_SEVERAL: Schema = {
    "anyOf": [STARTED, shape({"benchmarks": array(STARTED), "refused": array(REFUSED)}, name="StartedBenchmarks")]
}
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
