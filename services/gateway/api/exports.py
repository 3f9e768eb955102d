"""`GET /results/{job_id}/export` and `GET /export`: rows as files, streamed as they are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import Response, StreamingResponse

from services.gateway import jobs
from services.gateway.api.checks import one_of
from services.gateway.api.endpoint import JSON, Call, Endpoint
from services.gateway.api.items import CHOICE, chosen
from services.gateway.api.query import Parameter
from services.gateway.api.results import FILTERS, listing
from services.gateway.api.schema import about
from services.gateway.responses import FieldErrors
from touchstone.v1 import results_service_pb2

_EXPORT = results_service_pb2.ExportRequest
KINDS = {
    "jobs": _EXPORT.KIND_JOBS,
    "metrics": _EXPORT.KIND_METRICS,
    "items": _EXPORT.KIND_ITEMS,
    "batch": _EXPORT.KIND_BATCH_OUTPUT,
    "golden": _EXPORT.KIND_GOLDEN,
}
_WRITTEN = {"batch": ("jsonl", "csv"), "golden": ("jsonl",)}
"""Formats of kinds that have not all of them; the first is the usual one."""
LEFT_OUT = "Touchstone-Left-Out"
"""Header that counts annotated items without an example in an export of golden ones."""
FORMATS = {
    "csv": (_EXPORT.FORMAT_CSV, "text/csv; charset=utf-8; header=present"),
    "json": (_EXPORT.FORMAT_JSON, JSON),
    "jsonl": (_EXPORT.FORMAT_JSONL, "application/jsonl"),
    "parquet": (_EXPORT.FORMAT_PARQUET, "application/vnd.apache.parquet"),
}


async def export_job(call: Call) -> Response:
    """A job's metrics, also before it is finished, or its items as a file. 404 for an unknown job."""
    kind = call.query["kind"]
    given = [one.name for one in CHOICE if call.query[one.name] != one.default]
    if kind == "metrics" and given:
        raise FieldErrors([(name, f"{name} chooses items; give it with kind=items.") for name in given])
    word = call.query["format"] or _WRITTEN.get(kind, ("csv",))[0]
    if word not in _WRITTEN.get(kind, FORMATS):
        raise FieldErrors([("format", f"kind={kind} is written as {' or '.join(_WRITTEN[kind])}.")])
    request = results_service_pb2.ExportRequest(kind=KINDS[kind], items=chosen(call))
    job = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    return await _file(call, request, f"{jobs.suite_of(job)}-{jobs.short_id(job.job_id)}-{kind}", word)


async def export_jobs(call: Call) -> Response:
    """Jobs, or their metrics, as a file; the filters are those of the list. 400 for an unknown suite."""
    kind = call.query["kind"]
    request = results_service_pb2.ExportRequest(kind=KINDS[kind], jobs=listing(call))
    return await _file(call, request, kind, call.query["format"] or "csv")


async def _file(call: Call, request: results_service_pb2.ExportRequest, name: str, word: str) -> Response:
    request.format, media = FORMATS[word]
    pieces = call.ctx.backend.stream(call.ctx.backend.results.Export, request, call.caller)
    # Errors come before the first piece: while there is still a status to answer with.
    first = await anext(pieces, None)
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in name)
    headers = {
        "Content-Disposition": f'attachment; filename="touchstone-{safe}.{word}"',
        "X-Content-Type-Options": "nosniff",
    }
    if first is not None and first.left_out:
        headers[LEFT_OUT] = str(first.left_out)
    return StreamingResponse(_bytes(first, pieces), media_type=media, headers=headers)


async def _bytes(
    first: results_service_pb2.ExportResponse | None, rest: AsyncGenerator[results_service_pb2.ExportResponse]
) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        if first is not None:
            yield first.data
        async for piece in rest:
            yield piece.data


def _kind(*kinds: str) -> Parameter:
    return Parameter("kind", one_of(*kinds), "What a row is.", kinds[0])


_FORMAT = Parameter("format", one_of(*FORMATS), "How rows are written; csv when absent, of batch and golden jsonl.", "")
_MEDIA = tuple(media.partition(";")[0] for _, media in FORMATS.values())
_FILE = about({}, "The file's content.")
EXPORT_JOB = Endpoint(
    "GET",
    "/results/{job_id}/export",
    export_job,
    "exportResults",
    "A job's metrics or items as a file; items also as batch output or fine-tuning examples.",
    answer=_FILE,
    media=_MEDIA,
    query=(_kind("metrics", "items", "batch", "golden"), _FORMAT, *CHOICE),
    streams=True,
)
EXPORT = Endpoint(
    "GET",
    "/export",
    export_jobs,
    "exportJobs",
    "Jobs, or the metrics of jobs, as a file.",
    answer=_FILE,
    media=_MEDIA,
    query=(_kind("jobs", "metrics"), _FORMAT, *FILTERS),
    streams=True,
)
