"""`/v1/batches`: a run of one model over an uploaded batch file, as OpenAI's clients start and follow it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence

from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.gateway.api.declare.endpoint import OPENAI, Call, Endpoint
from services.gateway.fields.checks import Check, Field, Problem, integer, one_of, record, text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import Schema
from services.gateway.http.responses import JSONResponse
from services.gateway.openai import objects
from services.gateway.reads import jobs
from services.gateway.reads.catalogue import place_of
from services.words.enums import PRIORITIES
from services.words.fields import EXPIRY_S
from services.words.jobs import LIVE, is_finished
from touchstone.v1 import dataset_service_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

_MOST_LABELS = 15


def _metadata(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield path, f"{path} must be an object of strings."
        return
    if len(value) > _MOST_LABELS:
        yield path, f"{path} has {len(value)} entries; at most {_MOST_LABELS} are kept."
    for key, held in value.items():
        if not 0 < len(key) <= 64 or key == objects.LABEL:
            yield path, f"{path} has the key {key[:70]!r}; keys have 1 to 64 characters and are not {objects.LABEL}."
        if not isinstance(held, str) or len(held) > 512:
            yield path, f"{path}.{key[:64]} must be a string of at most 512 characters."


_METADATA: Schema = {
    "type": "object",
    "maxProperties": _MOST_LABELS,
    "additionalProperties": {"type": "string", "maxLength": 512},
}
_BODY = record(
    {
        "input_file_id": Field(text(100), required=True, about="The uploaded file."),
        "endpoint": Field(one_of(objects.CHAT), required=True, about="The address that the lines are for."),
        "completion_window": Field(one_of(objects.WINDOW), required=True, about="Always `24h`."),
        "output_expires_after": Field(
            record(
                {
                    "anchor": Field(one_of(objects.CREATED), required=True, about="From when it is counted."),
                    "seconds": Field(integer(*EXPIRY_S), required=True, about="How long the files are kept."),
                },
                name="OutputExpiresAfter",
            ),
            about="When the output and error files expire: `seconds` after they are created. Never if absent.",
        ),
        "metadata": Field(Check(_METADATA, _metadata), about="Texts of your own, up to 15."),
        "model": Field(text(400), about="Instead of the model that the file's lines name: model or model@endpoint."),
        "priority": Field(one_of(*PRIORITIES), about="The place in the queue. `normal` if absent."),
    },
    name="BatchRequest",
)


async def create(call: Call) -> JSONResponse:
    """Queues a run. The model is the one that the lines name; an endpoint that lists it is chosen as for any run."""
    found = objects.file_id(call.body["input_file_id"])
    if found.kind != "input":
        raise InvalidRequestError(
            "input_file_id names a batch's answers. Upload a file with purpose batch.", "input_file_id"
        )
    backend = call.ctx.backend
    request = dataset_service_pb2.GetDatasetRequest(dataset_id=found.id)
    dataset = (await call.ask(backend.datasets.GetDataset, request)).dataset
    named = list(dataset.models)
    if not call.body.get("model") and len(named) != 1:
        said = f"{', '.join(named[:5])}" if named else "none"
        raise InvalidRequestError(
            f"The lines of a batch must name one model; these name {said}. Upload one file per model, or send model.",
            "model",
        )
    endpoint, model = await place_of(call.ctx.catalogue, call.body.get("model") or named[0])
    expiry = call.body.get("output_expires_after") or {}
    spec = job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        dataset=job_pb2.DatasetWork(dataset_id=found.id),
        priority=PRIORITIES[call.body.get("priority", "normal")],
        labels={objects.LABEL: objects.label(expiry.get("seconds", 0)), **call.body.get("metadata", {})},
    )
    queued = scheduler_service_pb2.CreateJobRequest(request_id=request_id(call) or uuid.uuid4().hex, spec=spec)
    try:
        job = (await call.ask(backend.scheduler.CreateJob, queued)).job
    except InvalidRequestError as error:
        # The scheduler names fields of its message, which users of the API never see.
        raise InvalidRequestError(error.message) from error
    return JSONResponse(objects.batch(job))


async def retrieve(call: Call) -> JSONResponse:
    return JSONResponse(await _batch(call, await _found(call)))


async def cancel(call: Call) -> JSONResponse:
    """Earlier answers are kept. An ended batch is returned unchanged."""
    job = await _found(call)
    backend = call.ctx.backend
    try:
        request = scheduler_service_pb2.CancelJobRequest(job_id=job.job_id)
        job = (await call.ask(backend.scheduler.CancelJob, request)).job
    except ConflictError:
        job = await _found(call)
    return JSONResponse(await _batch(call, job))


async def list_batches(call: Call) -> JSONResponse:
    found = {objects.batch_id(job): job for job in await all_batches(call)}
    page = objects.page([objects.batch(job) for job in found.values()], call.query["after"], call.query["limit"])
    page["data"] = await asyncio.gather(*(_batch(call, found[one["id"]]) for one in page["data"]))
    return JSONResponse(page)


async def all_batches(call: Call) -> list[job_pb2.Job]:
    """The caller's own, newest first; running ones have their present figures."""
    found = await objects.newest(_job_pages(call), objects.is_batch)
    live = [place for place, job in enumerate(found) if job.state in LIVE]
    fresh = await asyncio.gather(*(jobs.find(call.ctx.backend, found[place].job_id, call.caller) for place in live))
    for place, job in zip(live, fresh, strict=True):
        found[place] = job
    return found


async def _batch(call: Call, job: job_pb2.Job) -> objects.Json:
    """With its usage once it is over."""
    result = await jobs.result_of(call.ctx.backend, job.job_id, call.caller) if is_finished(job) else None
    return objects.batch(job, result)


async def _found(call: Call) -> job_pb2.Job:
    """Raises NotFoundError for a job that is not a batch."""
    job = await jobs.find(call.ctx.backend, objects.job_id(call.path["batch_id"]), call.caller)
    if not objects.is_batch(job):
        raise NotFoundError(f"No batch found with id {call.path['batch_id'][:80]!r}.")
    return job


async def _job_pages(call: Call) -> AsyncIterator[Sequence[job_pb2.Job]]:
    request = results_service_pb2.ResultsServiceListJobsRequest(
        page_size=1000, owner=call.caller.user, datasets=True, without_counts=True
    )
    while True:
        answer = await call.ask(call.ctx.backend.results.ListJobs, request)
        yield answer.jobs
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token


def request_id(call: Call) -> str:
    """From the key that clients send with each of their retries; empty without one."""
    key = call.request.headers.get("idempotency-key", "")
    return uuid.uuid5(uuid.NAMESPACE_URL, key).hex if key else ""


_LIST = (
    Parameter("after", text(100), "The id of the last batch of the page before.", ""),
    Parameter("limit", integer(1, 100), "The most objects on the page.", 20),
)
_PAGE = objects.listing(objects.BATCH, "OpenAIBatchList", paged=True)
ENDPOINTS = (
    Endpoint(
        "POST",
        "/batches",
        create,
        "createBatch",
        "Run a file's requests.",
        answer=objects.BATCH,
        body=_BODY,
        errors=(404, 409),
        base=OPENAI,
    ),
    Endpoint(
        "GET",
        "/batches",
        list_batches,
        "listBatches",
        "List your batches, newest first.",
        answer=_PAGE,
        query=_LIST,
        base=OPENAI,
    ),
    Endpoint("GET", "/batches/{batch_id}", retrieve, "getBatch", "Get a batch.", answer=objects.BATCH, base=OPENAI),
    Endpoint(
        "POST",
        "/batches/{batch_id}/cancel",
        cancel,
        "cancelBatch",
        "Cancel a batch.",
        answer=objects.BATCH,
        base=OPENAI,
    ),
)
