"""`/v1/files`: an uploaded batch file is a dataset; a finished batch's answers and failures are files that are created
when they are read.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from services import further_fields
from services.errors import InvalidRequestError, NotFoundError, PermissionDeniedError
from services.gateway import context
from services.gateway.api.declare.endpoint import OPENAI, Call, Endpoint
from services.gateway.fields.checks import integer, one_of, text
from services.gateway.fields.query import Parameter
from services.gateway.fields.schema import BOOLEAN, STRING, about, enum, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.openai import objects
from services.gateway.openai.batches import all_batches, request_id
from services.gateway.openai.objects import CHAT
from services.gateway.reads import jobs
from services.gateway.uploads import body
from services.gateway.uploads.body import chunks, store
from services.gateway.uploads.parts import MULTIPART, boundary, is_form
from services.words import chat, refusals
from services.words.enums import LAST_ASSISTANT
from services.words.fields import EXPIRY_S
from touchstone.v1 import dataset_pb2, dataset_service_pb2, job_pb2, results_service_pb2

_ANCHOR, _SECONDS = "expires_after[anchor]", "expires_after[seconds]"
_OPENAI_FIELDS = ("purpose", _ANCHOR, _SECONDS)
_DELETE_S = 30.0
_EXPORT = results_service_pb2.ExportRequest
_ITEMS = results_service_pb2.ListItemsRequest


async def create(call: Call) -> JSONResponse:
    """The file's lines are checked at once, so that a batch over it can begin. 400 names wrong lines."""
    if context.caller(call.request).session:
        raise PermissionDeniedError("This address is for programs. Send a token: Authorization: Bearer <token>.")
    kind = call.request.headers.get("content-type", "")
    if not is_form(kind):
        raise HTTPException(415, f"Send {MULTIPART} with purpose=batch and the file.")
    settings = call.ctx.settings
    with call.ctx.uploads.slot(call.caller.user):
        arriving = chunks(call.request, settings.upload_max_bytes, settings.upload_idle_s)
        sent = body.Form(arriving, boundary(kind), (*_OPENAI_FIELDS, "last_assistant"), late=_OPENAI_FIELDS)
        fields = await sent.fields()
        last = fields.get("last_assistant", "")
        if last and last not in LAST_ASSISTANT:
            raise InvalidRequestError(f"last_assistant must be one of: {', '.join(LAST_ASSISTANT)}.", "last_assistant")
        options = dataset_pb2.DatasetOptions(
            name=body.clean_name(sent.file_name or "", "batch.jsonl"),
            format=dataset_pb2.Dataset.FORMAT_BATCH,
            is_file=True,
            last_assistant=LAST_ASSISTANT[last] if last else None,
        )
        try:
            stored = await store(
                call.ctx.backend,
                call.caller,
                options,
                _checked(sent),
                request_id(call),
                lambda: int(sent.given.get(_SECONDS, "0")),
            )
        except InvalidRequestError as error:
            # The service names fields of its own message, which the API's users never see.
            if error.field not in ("purpose", _ANCHOR, _SECONDS):
                error.field = "file"
            raise
    return JSONResponse(objects.input_file(stored))


async def _checked(sent: body.Form) -> AsyncIterator[bytes]:
    """The file. Clients send its purpose before or after it; a wrong one ends the upload, and nothing is stored."""
    _check(sent.given, whole=False)
    async for piece in sent.file():
        yield piece
    _check(sent.given, whole=True)


def _check(fields: Mapping[str, str], whole: bool) -> None:
    if fields.get("purpose", "" if whole else "batch") != "batch":
        raise InvalidRequestError("purpose must be batch: files are only for batches.", "purpose")
    if fields.get(_ANCHOR, objects.CREATED) != objects.CREATED:
        raise InvalidRequestError(refusals.not_valid(fields[_ANCHOR], _ANCHOR, (objects.CREATED,)), _ANCHOR)
    seconds = fields.get(_SECONDS, "3600")
    whole_number = seconds.isascii() and seconds.isdecimal() and len(seconds) <= len(str(EXPIRY_S[1]))
    if not (whole_number and EXPIRY_S[0] <= int(seconds) <= EXPIRY_S[1]):
        raise InvalidRequestError(refusals.between(_SECONDS, *EXPIRY_S), _SECONDS)
    if whole and (_ANCHOR in fields) != (_SECONDS in fields):
        missing = _ANCHOR if _SECONDS in fields else _SECONDS
        raise InvalidRequestError(f"expires_after needs both its fields. Add {missing}.", missing)


async def retrieve(call: Call) -> JSONResponse:
    return JSONResponse(await _described(call))


async def content(call: Call) -> Response:
    """The uploaded lines as they were parsed, or a finished batch's answers or failures."""
    found = objects.file_id(call.path["file_id"])
    head = {"Content-Disposition": f'attachment; filename="{found.kind}.jsonl"'}
    if found.kind == "input":
        return StreamingResponse(await _rows(call, found.id), media_type="application/jsonl", headers=head)
    job = await _batch(call, found)
    if found.kind == "output":
        pieces = _pieces(call, job, _ITEMS.FILTER_FINAL)
    elif objects.has_not_run(job):
        pieces = await _failed_or_not_run(call, job)
    else:
        pieces = _pieces(call, job, _ITEMS.FILTER_ERRORS)
    return StreamingResponse(pieces, media_type="application/jsonl", headers=head)


async def delete(call: Call) -> JSONResponse:
    """Batches that have ended keep their answers. 409 while one runs over it."""
    text_id = call.path["file_id"]
    found = objects.file_id(text_id)
    if found.kind != "input":
        raise InvalidRequestError("A batch's answers belong to its run and cannot be deleted separately.")
    backend = call.ctx.backend
    request = dataset_service_pb2.DeleteDatasetRequest(dataset_id=found.id)
    await backend.ask(backend.datasets.DeleteDataset, request, call.caller, timeout_s=_DELETE_S)
    return JSONResponse({"id": text_id, "object": "file", "deleted": True})


async def list_files(call: Call) -> JSONResponse:
    """The caller's own, of both purposes unless one is asked for."""
    purpose = call.query["purpose"]
    inputs, batches = await asyncio.gather(
        _inputs(call) if purpose != "batch_output" else _none(), all_batches(call) if purpose != "batch" else _none()
    )
    found = [(dataset.uploaded_at.ToMicroseconds(), objects.input_file(dataset)) for dataset in inputs]
    now = time.time()
    for job in batches:
        found += [
            (job.finished_at.ToMicroseconds(), objects.made_file(job, kind)) for kind in objects.kept_kinds(job, now)
        ]
    found.sort(key=lambda one: one[0], reverse=call.query["order"] == "desc")
    return JSONResponse(objects.page([one for _, one in found], call.query["after"], call.query["limit"]))


async def _described(call: Call) -> dict[str, Any]:
    found = objects.file_id(call.path["file_id"])
    if found.kind == "input":
        request = dataset_service_pb2.GetDatasetRequest(dataset_id=found.id)
        return objects.input_file((await call.ask(call.ctx.backend.datasets.GetDataset, request)).dataset)
    return objects.made_file(await _batch(call, found), found.kind)


async def _batch(call: Call, found: objects.FileId) -> job_pb2.Job:
    """The job whose answers or failures the file has. Raises NotFoundError, also for a file that has expired."""
    job = await jobs.find(call.ctx.backend, found.id, call.caller)
    if not objects.is_batch(job) or found.kind not in objects.kept_kinds(job, time.time()):
        raise NotFoundError(f"No such File object: {call.path['file_id'][:80]}")
    return job


async def _rows(call: Call, dataset_id: str) -> AsyncIterator[bytes]:
    """Lines of an uploaded file, a page at a time."""
    datasets = call.ctx.backend.datasets
    known = (await call.ask(datasets.GetDataset, dataset_service_pb2.GetDatasetRequest(dataset_id=dataset_id))).dataset
    model = known.models[0] if len(known.models) == 1 else ""
    pages = await _row_pages(call, dataset_id, whole=True)
    return ("".join(f"{batch_line(row, model)}\n" for row in rows).encode() async for rows in pages)


async def _row_pages(call: Call, dataset_id: str, whole: bool) -> AsyncIterator[Sequence[dataset_pb2.DatasetRow]]:
    """In the file's order; without `whole`, long texts are cut. The first page is read at once, so that a fault of the
    dataset becomes an error instead of an incomplete answer."""
    datasets = call.ctx.backend.datasets
    request = dataset_service_pb2.ListDatasetRowsRequest(dataset_id=dataset_id, page_size=500, whole=whole)
    first = await call.ask(datasets.ListDatasetRows, request)

    async def pages() -> AsyncIterator[Sequence[dataset_pb2.DatasetRow]]:
        page = first
        while True:
            yield page.rows
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
            page = await call.ask(datasets.ListDatasetRows, request)

    return pages()


async def _failed_or_not_run(call: Call, job: job_pb2.Job) -> AsyncIterator[bytes]:
    """Lines of an error file, in the file's order, where some requests were not run. If the uploaded file was deleted
    meanwhile, only those that failed: nothing else has the ids of the others."""
    try:
        pages = await _row_pages(call, job.spec.dataset.dataset_id, whole=False)
    except NotFoundError:
        return _pieces(call, job, _ITEMS.FILTER_ERRORS)

    async def lines() -> AsyncIterator[bytes]:
        # Stored items come in the order of the rows, so that one of each is held.
        stored = _lines(_pieces(call, job, _ITEMS.FILTER_UNSPECIFIED))
        async with aclosing(stored):
            item = await anext(stored, None)
            async for rows in pages:
                found: list[objects.Json] = []
                for row in rows:
                    if item is None or item["custom_id"] != row.custom_id:
                        found.append(objects.not_run(job, row.custom_id))
                        continue
                    if item["error"]:
                        found.append(item)
                    item = await anext(stored, None)
                yield "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in found).encode()

    return lines()


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[objects.Json]:
    """The objects of a JSONL file that comes in pieces."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield json.loads(line)


async def _inputs(call: Call) -> list[dataset_pb2.Dataset]:
    return await objects.newest(_dataset_pages(call), lambda dataset: True)


async def _dataset_pages(call: Call) -> AsyncIterator[Sequence[dataset_pb2.Dataset]]:
    request = dataset_service_pb2.ListDatasetsRequest(page_size=500, owner=call.caller.user, files=True)
    while True:
        answer = await call.ask(call.ctx.backend.datasets.ListDatasets, request)
        yield answer.datasets
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token


async def _none() -> list[Any]:
    return []


async def _pieces(
    call: Call, job: job_pb2.Job, chosen: results_service_pb2.ListItemsRequest.Filter
) -> AsyncIterator[bytes]:
    backend = call.ctx.backend
    request = _EXPORT(
        kind=_EXPORT.KIND_BATCH_OUTPUT,
        format=_EXPORT.FORMAT_JSONL,
        items=_ITEMS(job_id=job.job_id, filter=chosen),
    )
    async for piece in backend.stream(backend.results.Export, request, call.caller):
        yield piece.data


AFTER = Parameter("after", text(100), "The id of the last object of the page before.", "")


_ORDER = Parameter("order", one_of("asc", "desc"), "By the time of creation.", "desc")


_PURPOSE = Parameter("purpose", one_of("batch", "batch_output"), "Only files of this purpose.", "")


_UPLOAD = shape(
    {
        "file": about({"type": "string", "format": "binary"}, "The file, as JSONL."),
        "purpose": about(enum("batch"), "Always `batch`."),
        _ANCHOR: about(enum(objects.CREATED), "From when the file's life is counted."),
        _SECONDS: about(integer(*EXPIRY_S).schema, "How long the file is kept, in seconds."),
        "last_assistant": about(enum(*LAST_ASSISTANT), "What becomes of a last message of the assistant."),
    },
    optional=(_ANCHOR, _SECONDS, "last_assistant"),
)
_DELETED = shape(
    {
        "id": about(STRING, "The file's id."),
        "object": about(enum("file"), "Always `file`."),
        "deleted": about(BOOLEAN, "Always true."),
    },
    name="OpenAIFileDeleted",
)
ENDPOINTS = (
    Endpoint(
        "POST",
        "/files",
        create,
        "createFile",
        "Upload a batch file.",
        answer=objects.FILE,
        errors=(409,),
        reads={MULTIPART: _UPLOAD},
        base=OPENAI,
    ),
    Endpoint(
        "GET",
        "/files",
        list_files,
        "listFiles",
        "List your files.",
        answer=objects.listing(objects.FILE, "OpenAIFileList", paged=True),
        query=(
            AFTER,
            Parameter("limit", integer(1, 10_000), "The most objects on the page.", 10_000),
            _ORDER,
            _PURPOSE,
        ),
        base=OPENAI,
    ),
    Endpoint("GET", "/files/{file_id}", retrieve, "getFile", "Get a file.", answer=objects.FILE, base=OPENAI),
    Endpoint(
        "GET",
        "/files/{file_id}/content",
        content,
        "getFileContent",
        "Get a file's content.",
        media=("application/jsonl",),
        streams=True,
        base=OPENAI,
    ),
    Endpoint(
        "DELETE",
        "/files/{file_id}",
        delete,
        "deleteFile",
        "Delete an uploaded file.",
        answer=_DELETED,
        errors=(409,),
        base=OPENAI,
    ),
)


def batch_line(row: dataset_pb2.DatasetRow, model: str) -> str:
    """The row's request, and its "reference" and "metadata" if it has them. `model` is the one in the lines; "", if
    unknown, leaves it out."""
    body: dict[str, Any] = {"model": model} if model else {}
    body["messages"] = [chat.written(message) for message in row.messages]
    for field, value in row.sampling.ListFields():
        if field.name not in further_fields.FIELDS:
            body[field.name] = value
    body |= further_fields.fields(row.sampling)
    if row.stop:
        body["stop"] = list(row.stop)
    line: dict[str, Any] = {"custom_id": row.custom_id, "method": "POST", "url": CHAT, "body": body}
    for name, stored in (("reference", row.reference), ("metadata", row.metadata)):
        if stored:
            line[name] = json.loads(stored)
    return json.dumps(line, ensure_ascii=False)
