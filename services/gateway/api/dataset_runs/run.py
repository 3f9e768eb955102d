"""`POST /admin/benchmarks/run`: queue one model, or several, over a dataset.

And `/admin/benchmarks/{id}/rescore`, `/cancel` and `/retry`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from services.errors import InvalidRequestError, TouchstoneError
from services.gateway.api.dataset_runs.body import BENCHMARK, MEMBERS, benchmark_body, find
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.jobs import listing, reuse
from services.gateway.api.jobs.reuse import RESCORED
from services.gateway.api.jobs.run import CUSTOM, PARAMETERS, QUEUEING, WEBHOOK_SECRET, WORK, judge_of, judges_in
from services.gateway.fields import scoring
from services.gateway.fields.checks import Field, list_of, record, text
from services.gateway.fields.job import in_rest, option, options_of, sampling
from services.gateway.fields.schema import Schema, about, array, shape
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs
from services.gateway.reads.catalogue import place_of
from services.gateway.reads.jobs import copy_of
from services.words.enums import READINGS
from services.words.job_options import ALL, fill
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2

MOST_MODELS = 20
SCORING_FIELDS: dict[str, Field] = {
    "scorer": Field(scoring.SCORER, about="The scorer, without options, instead of the dataset's own."),
    "scoring": Field(scoring.SCORING, about="The scorer with options, instead of the dataset's own."),
    ALL["further"].rest: Field(scoring.FURTHER, about=ALL["further"].about),
}
FIELDS: dict[str, Field] = {
    "model_id": Field(text(400), about="A model, or `model@endpoint`. This or `model_ids` is required."),
    "model_ids": Field(
        list_of(text(400), MOST_MODELS), about="Several models: a run for each. If one is refused, none is queued."
    ),
    "dataset_id": Field(text(100), required=True, about="The dataset's id."),
    "provider": Field(
        text(200),
        about="An endpoint's name, or its kind if only one has it. If absent, the only endpoint with the model.",
    ),
    "parameters": Field(PARAMETERS, about="Sampling parameters. Those of a row come first."),
    "custom_config": Field(CUSTOM),
    "limit": option("limit", "The most rows: a seeded, nested sample."),
    "seed": option("seed", "The seed of that sample. 0 if absent."),
    **SCORING_FIELDS,
    "provider_batch": option("provider_batch"),
    **{name: WORK[name] for name in ("reading", "stream", "reuse", "webhook_url", "labels", "budget_usd", "judges")},
    "project_id": option("project_id"),
    "priority": option("priority", "The place in the queue. `normal` if absent."),
    "request_id": QUEUEING["request_id"],
}
STARTED: Schema = shape(
    MEMBERS | {"webhook_secret": WEBHOOK_SECRET}, name="StartedBenchmark", optional=("webhook_secret",)
)


async def run(call: Call) -> JSONResponse:
    """Answers once the runs are queued: with the one of `model_id`, or a list for `model_ids`. If one of several is
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
    places = [await place_of(catalogue, model, body.get("provider", "")) for model in models]
    for place, chosen in enumerate(places):
        if chosen in places[:place]:
            raise FieldErrors([(f"model_ids[{place}]", f"{models[place][:200]!r} is given twice. Give it once.")])
    judges = [await judge_of(call, one, f"judges[{place}].") for place, one in judges_in(body)]
    return [_spec(body, dataset_id, endpoint, model, judges) for endpoint, model in places]


def _spec(
    body: Mapping[str, Any], dataset_id: str, endpoint: str, model: str, judges: Sequence[job_pb2.Judge]
) -> job_pb2.JobSpec:
    spec = job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        sampling=sampling(
            {name: value for name, value in body.get("parameters", {}).items() if value is not None},
            body.get("custom_config"),
        ),
        mode=suite_pb2.MODE_GENERATE,
        dataset=job_pb2.DatasetWork(dataset_id=dataset_id),
        judges=judges,
    )
    fill(spec, options_of(body))
    set_scoring(spec, body)
    return spec


def set_scoring(spec: job_pb2.JobSpec, body: Mapping[str, Any]) -> None:
    """Applies `scorer` or `scoring`, `further_scorers`, and `reading`. Without them the job keeps its values, except
    that another scoring brings its default reading. Raises FieldErrors if both of the first two are given."""
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
    if (given := body.get(ALL["further"].rest)) is not None:
        work.ClearField("further")
        work.further.extend(map(scoring.scoring_of, given))
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
    # Calls are repeated when a scheduler is silent: without an id that would start the runs twice.
    request_id = call.body.get("request_id") or uuid.uuid4().hex
    request = scheduler_service_pb2.CreateJobsRequest(request_id=request_id, specs=specs)
    try:
        made = await call.ask(backend.scheduler.CreateJobs, request)
    except InvalidRequestError as error:
        raise InvalidRequestError(in_rest(error.message)) from error
    # Lists come from the results service, which learns of the runs a moment later. Wait, so that a list right after
    # this finds them.
    with suppress(TouchstoneError):
        for job in made.jobs:
            await call.ask(backend.results.GetJob, results_service_pb2.ResultsServiceGetJobRequest(job_id=job.job_id))
    secret = {"webhook_secret": made.webhook_secret} if made.webhook_secret else {}
    return [benchmark_body(job) | secret for job in made.jobs]


ONE_OR_SEVERAL: Schema = {
    "anyOf": [STARTED, shape({"benchmarks": about(array(STARTED), "A run per model.")}, name="StartedBenchmarks")]
}
RUN_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/run",
    run,
    "runOnDataset",
    "Run a model, or several, over a dataset.",
    answer=ONE_OR_SEVERAL,
    body=record(FIELDS, name="RunBenchmarkRequest"),
    errors=(404, 409),
    gives={"benchmark_id": "/benchmark_id"},
    base=ADMIN,
)


_BODY = record(SCORING_FIELDS | RESCORED | QUEUEING, name="RescoreBenchmarkRequest")


async def rescore(call: Call) -> JSONResponse:
    """A new run that scores the stored answers of a run without a call, possibly with another scorer. 409 for a run
    that is not finished."""
    source = await find(call)
    spec = copy_of(source, [])
    set_scoring(spec, call.body)
    spec.priority = reuse.priority(call)
    (started,) = await start(call, [spec])
    return JSONResponse(started)


async def cancel(call: Call) -> JSONResponse:
    """409 for one that is finished."""
    await find(call)
    await listing.stop(call)
    return JSONResponse(benchmark_body(await find(call)))


async def retry(call: Call) -> JSONResponse:
    """409 if nothing is missing."""
    await find(call)
    return JSONResponse(benchmark_body(await reuse.retried(call)))


RESCORE_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/rescore",
    rescore,
    "rescoreBenchmark",
    "Score the stored answers of a finished run again, as a new run that makes no call.",
    answer=STARTED,
    body=_BODY,
    body_needed=False,
    errors=(409,),
    gives={"benchmark_id": "/benchmark_id"},
    base=ADMIN,
)
CANCEL_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/cancel",
    cancel,
    "cancelBenchmark",
    "Cancel a run. Its answers are kept.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
RETRY_BENCHMARK = Endpoint(
    "POST",
    "/benchmarks/{benchmark_id}/retry",
    retry,
    "retryBenchmark",
    "Run the missing items of a failed, cancelled or incomplete run.",
    answer=BENCHMARK,
    errors=(409,),
    base=ADMIN,
)
