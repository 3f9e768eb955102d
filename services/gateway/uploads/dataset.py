"""An uploaded dataset: a file as a form's part or as the body itself, with its options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.access.auth import CSRF_FIELD
from services.gateway.fields import scoring
from services.gateway.fields.checks import integer, one_of, text
from services.gateway.fields.query import Parameter, values_of
from services.gateway.uploads import body
from services.gateway.uploads.body import chunks, preview, require_own, store
from services.gateway.uploads.parts import MULTIPART, boundary
from services.words.enums import LAST_ASSISTANT, UPLOAD_FORMATS
from services.words.fields import INT64_MAX
from touchstone.v1 import dataset_pb2, dataset_service_pb2

_MOST_TEMPLATE = 64 * 1024
NAME = text(200)
TEMPLATE = text(_MOST_TEMPLATE)
LAST = one_of(*LAST_ASSISTANT)
LAST_ABOUT = (
    "What the assistant's last message of a row becomes: the row's reference, or the beginning of the answer. `refuse` "
    "refuses such rows. A file with such a row needs it."
)
REQUEST_ID = (
    "For a day, a repeated request with the same id returns the same dataset. With other rows or options, the "
    "answer is 409."
)
OPTIONS = (
    Parameter("name", NAME, "The dataset's name. The file's name if absent."),
    Parameter("format", one_of(*UPLOAD_FORMATS), "What the rows are. Recognised from the first row if absent."),
    Parameter(
        "template",
        TEMPLATE,
        "Makes messages of columns: a text or a JSON list of messages, with `{{column}}` for values.",
    ),
    Parameter("custom_id_field", text(200), "The column with the rows' ids. `custom_id` if absent."),
    Parameter("sheet", text(200), "The visible sheet of an Excel workbook that has the rows. The first if absent."),
    Parameter("last_assistant", LAST, LAST_ABOUT),
    Parameter("project_id", integer(0, INT64_MAX), "A number to group datasets by. 0 means none.", 0),
    *scoring.OPTIONS,
    Parameter("request_id", text(64), REQUEST_ID),
)
"""Options of an upload: in the query, or in a form's fields before the file."""
_KNOWN = tuple(one.name for one in OPTIONS)
RAW = {
    "application/jsonl": "dataset.jsonl",
    "application/x-ndjson": "dataset.jsonl",
    "application/json": "dataset.json",
    "text/csv": "dataset.csv",
    "text/tab-separated-values": "dataset.tsv",
    "application/yaml": "dataset.yaml",
    "application/vnd.apache.parquet": "dataset.parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "dataset.xlsx",
    "application/gzip": "dataset.jsonl.gz",
}
"""Types of a body that is the file itself, and the name of a file without one."""


async def received(request: Request) -> dataset_pb2.Dataset:
    """The body's dataset, once it is stored whole. Raises as `upload` answers."""
    backend, user = context.of(request).backend, context.identity(request)
    async with _sent(request) as (options, pieces, request_id):
        return await store(backend, user, options, pieces, request_id)


async def previewed(request: Request) -> dataset_service_pb2.PreviewDatasetResponse:
    """What storing the body would make of it. Raises as `preview` answers."""
    backend, user = context.of(request).backend, context.identity(request)
    async with _sent(request) as (options, pieces, _):
        return await preview(backend, user, options, pieces)


@asynccontextmanager
async def _sent(request: Request) -> AsyncIterator[tuple[dataset_pb2.DatasetOptions, AsyncIterator[bytes], str]]:
    """The options, the file's pieces and the request id, while the user has a place for uploads."""
    ctx, user = context.of(request), context.identity(request)
    settings = ctx.settings
    kind = request.headers.get("content-type", "")
    media = kind.partition(";")[0].strip().lower()
    if media != MULTIPART and media not in RAW:
        kinds = f"{MULTIPART} with a part {body.FILE!r}, or the file itself as {', '.join(RAW)}"
        raise HTTPException(415, f"The body's type is {media[:80]!r}. Send {kinds}.")
    given = {name: value for name, value in request.query_params.items() if value}
    with ctx.uploads.slot(user.user):
        arriving = chunks(request, settings.upload_max_bytes, settings.upload_idle_s)
        if media == MULTIPART:
            sent = body.Form(arriving, boundary(kind), _KNOWN, (CSRF_FIELD,))
            fields = await sent.fields()
            require_own(request, fields.pop(CSRF_FIELD, ""))
            values = values_of(_together(given, fields), OPTIONS)
            options = _options(values, body.clean_name(sent.file_name or "", "dataset.jsonl"))
            yield options, sent.file(), values["request_id"] or ""
            return
        require_own(request, "")
        values = values_of(given, OPTIONS)
        yield _options(values, RAW[media]), arriving, values["request_id"] or ""


def _together(query: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidRequestError for an option that is given in both."""
    given = {name: value for name, value in fields.items() if value}
    for name in given:
        if name in query:
            raise InvalidRequestError(f"{name} is given in the query and in the form. Give it once.", name)
    return given | dict(query)


def _options(values: Mapping[str, Any], file_name: str) -> dataset_pb2.DatasetOptions:
    return dataset_pb2.DatasetOptions(
        name=values["name"] or file_name,
        format=UPLOAD_FORMATS[values["format"]] if values["format"] else None,
        template=values["template"] or "",
        scoring=scoring.scoring_of(values),
        project_id=values["project_id"],
        custom_id_field=values["custom_id_field"] or "",
        sheet=values["sheet"] or "",
        last_assistant=LAST_ASSISTANT[values["last_assistant"]] if values["last_assistant"] else None,
    )
