"""`GET /results/{job_id}/export` and `GET /export`: rows as files, streamed as they are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from starlette.responses import Response, StreamingResponse

from services.gateway.api.declare.endpoint import JSON, Call, Endpoint
from services.gateway.api.items.listing import CHOICE, chosen
from services.gateway.api.jobs.listing import FILTERS, listing
from services.gateway.fields.checks import one_of
from services.gateway.fields.query import DAYS, Parameter
from services.gateway.fields.schema import about
from services.gateway.http.responses import FieldErrors
from services.gateway.reads import jobs
from services.words.enums import EXPORT_FORMATS, EXPORT_KINDS, FORMATS_OF_KINDS
from services.words.jobs import suite_of
from touchstone.v1 import results_service_pb2

LEFT_OUT = "Touchstone-Left-Out"
"""Header that counts annotated items without an example in an export of golden ones."""
_MEDIA = {
    "csv": "text/csv; charset=utf-8; header=present",
    "json": JSON,
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


async def export_job(call: Call) -> Response:
    """A job's metrics, also before it is finished, its items, or what people prefer of its answers, as a file. 404 for
    an unknown job."""
    kind = call.query["kind"]
    given = [one.name for one in CHOICE if call.query[one.name] != one.default]
    if kind in ("metrics", "preferences") and given:
        raise FieldErrors([(name, f"{name} selects items. Use it with kind=items.") for name in given])
    word = call.query["format"] or FORMATS_OF_KINDS.get(kind, ("csv",))[0]
    if word not in FORMATS_OF_KINDS.get(kind, EXPORT_FORMATS):
        raise FieldErrors([("format", f"kind={kind} is written as {' or '.join(FORMATS_OF_KINDS[kind])}.")])
    request = results_service_pb2.ExportRequest(kind=EXPORT_KINDS[kind], items=chosen(call))
    job = await jobs.find(call.ctx.backend, call.job_id, call.caller)
    return await _file(call, request, f"{suite_of(job.spec)}-{jobs.short_id(job.job_id)}-{kind}", word)


async def export_jobs(call: Call) -> Response:
    """Jobs, or their metrics, as a file; the filters are those of the list. 400 for an unknown suite."""
    kind = call.query["kind"]
    request = results_service_pb2.ExportRequest(kind=EXPORT_KINDS[kind], jobs=listing(call))
    if call.query["days"]:
        request.jobs.created_after.FromMilliseconds(jobs.days_start(call.query["days"], "")[0])
    return await _file(call, request, kind, call.query["format"] or "csv")


async def _file(call: Call, request: results_service_pb2.ExportRequest, name: str, word: str) -> Response:
    request.format = EXPORT_FORMATS[word]
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
    return StreamingResponse(_bytes(first, pieces), media_type=_MEDIA[word], headers=headers)


async def _bytes(
    first: results_service_pb2.ExportResponse | None, rest: AsyncGenerator[results_service_pb2.ExportResponse]
) -> AsyncIterator[bytes]:
    async with aclosing(rest):
        if first is not None:
            yield first.data
        async for piece in rest:
            yield piece.data


def _kind(*kinds: str) -> Parameter:
    return Parameter("kind", one_of(*kinds), "What each row is.", kinds[0])


_FORMAT = Parameter(
    "format", one_of(*EXPORT_FORMATS), "How rows are written. `csv` if absent, or `jsonl` for `batch` and `golden`.", ""
)
_DAYS = replace(DAYS, about="The days to look back. All jobs if absent.", default=None)
_FILE = about({}, "The file's content.")
EXPORT_JOB = Endpoint(
    "GET",
    "/results/{job_id}/export",
    export_job,
    "exportResults",
    "Get a job's metrics, items or preferences as a file. Items also come as batch output or fine-tuning examples.",
    answer=_FILE,
    media=tuple(media.partition(";")[0] for media in _MEDIA.values()),
    query=(_kind("metrics", "items", "batch", "golden", "preferences"), _FORMAT, *CHOICE),
    streams=True,
)
EXPORT = Endpoint(
    "GET",
    "/export",
    export_jobs,
    "exportJobs",
    "Get jobs, or the metrics of jobs, as a file.",
    answer=_FILE,
    media=tuple(media.partition(";")[0] for media in _MEDIA.values()),
    query=(_kind("jobs", "metrics"), _FORMAT, *FILTERS, _DAYS),
    streams=True,
)
