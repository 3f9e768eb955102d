"""`POST /admin/datasets/upload`: a file as a form's part or as the body itself, stored as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.api.checks import integer, one_of, text
from services.gateway.api.datasets import scoring
from services.gateway.api.datasets.body import FORMATS, LAST_ASSISTANT, UPLOADED, uploaded_body
from services.gateway.api.endpoint import ADMIN, Call, Endpoint
from services.gateway.api.query import Parameter, values_of
from services.gateway.api.schema import STRING, Schema, about
from services.gateway.auth import CSRF_FIELD, CSRF_HEADER, require_csrf
from services.gateway.parameters import INT64_MAX
from services.gateway.responses import JSONResponse
from services.gateway.uploads import form, names
from services.gateway.uploads.body import chunks
from services.gateway.uploads.storing import store
from touchstone.v1 import dataset_pb2

MULTIPART = "multipart/form-data"
_UPLOADED_FORMATS = [name for name in FORMATS if name != "hub"]
_MOST_TEMPLATE = 64 * 1024
NAME = text(200)
TEMPLATE = text(_MOST_TEMPLATE)
LAST = one_of(*LAST_ASSISTANT)
LAST_ABOUT = (
    "What becomes of a last message of the assistant's: it is the row's reference and leaves the prompt, begins the "
    "answer, or is a wrong line. A file with such a row needs it."
)
REQUEST_ID = "Within a day, repeating a request with the same one gives the same dataset."
OPTIONS = (
    Parameter("name", NAME, "The dataset's name; the file's when left out."),
    Parameter("format", one_of(*_UPLOADED_FORMATS), "What the lines are; told by the content when left out."),
    Parameter("template", TEMPLATE, "Makes messages of columns: text or a JSON list of messages, with {{column}}."),
    Parameter("custom_id_field", text(200), "Column with the row's own id; `custom_id` when left out."),
    Parameter("last_assistant", LAST, LAST_ABOUT),
    Parameter("project_id", integer(0, INT64_MAX), "A label to group by; 0 means none.", 0),
    *scoring.OPTIONS,
    Parameter("request_id", text(64), REQUEST_ID),
)
"""What an upload may say beside its file: in the query, or in a form's fields before the file."""
_KNOWN = tuple(one.name for one in OPTIONS)
RAW = {
    "application/jsonl": "dataset.jsonl",
    "application/x-ndjson": "dataset.jsonl",
    "text/csv": "dataset.csv",
    "application/gzip": "dataset.jsonl.gz",
}
"""Types of a body that is the file itself, and what the file is called that has no name."""


async def upload(call: Call) -> JSONResponse:
    """400 with `lines` for wrong lines; nothing is stored unless all are right. 415 for what is neither a form nor a
    file, 409 for a `request_id` of other rows or options, 429 while as many uploads as may be are under way."""
    return JSONResponse(uploaded_body(await received(call.request)))


async def received(request: Request) -> dataset_pb2.Dataset:
    """The body's dataset, once it is stored whole. Raises as `upload` answers."""
    ctx, user = context.of(request), context.identity(request)
    settings = ctx.settings
    kind = request.headers.get("content-type", "")
    media = kind.partition(";")[0].strip().lower()
    if media != MULTIPART and media not in RAW:
        kinds = f"{MULTIPART} with a part {form.FILE!r}, or the file itself as {', '.join(RAW)}"
        raise HTTPException(415, f"The body's type is {media[:80]!r}. Send {kinds}.")
    given = {name: value for name, value in request.query_params.items() if value}
    with ctx.uploads.slot(user.user):
        arriving = chunks(request, settings.upload_max_bytes, settings.upload_idle_s)
        if media == MULTIPART:
            sent = form.Form(arriving, form.boundary(kind), _KNOWN, (CSRF_FIELD,))
            fields = await sent.fields()
            _require_own(request, fields.pop(CSRF_FIELD, ""))
            values = values_of(_together(given, fields), OPTIONS)
            options = _options(values, names.clean(sent.file_name or "", "dataset.jsonl"))
            return await store(ctx.backend, user, options, sent.file(), values["request_id"] or "")
        _require_own(request, "")
        values = values_of(given, OPTIONS)
        return await store(ctx.backend, user, _options(values, RAW[media]), arriving, values["request_id"] or "")


def _require_own(request: Request, token: str) -> None:
    """A browser's session shows its CSRF token in a header, or in a form's field before the file."""
    caller = context.caller(request)
    if not caller.session:
        return
    require_csrf(caller, request.headers.get(CSRF_HEADER) or token)


def _together(query: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidRequestError for what is given in both."""
    given = {name: value for name, value in fields.items() if value}
    for name in given:
        if name in query:
            raise InvalidRequestError(f"{name} is given in the query and in the form; give it once.", name)
    return given | dict(query)


def _options(values: Mapping[str, Any], file_name: str) -> dataset_pb2.DatasetOptions:
    return dataset_pb2.DatasetOptions(
        name=values["name"] or file_name,
        format=FORMATS[values["format"]] if values["format"] else None,
        template=values["template"] or "",
        scoring=scoring.scoring_of(values),
        project_id=values["project_id"],
        custom_id_field=values["custom_id_field"] or "",
        last_assistant=LAST_ASSISTANT[values["last_assistant"]] if values["last_assistant"] else None,
    )


_FILE: Schema = {"type": "string", "format": "binary"}
_FORM: Schema = {
    "type": "object",
    "properties": {one.name: about(one.schema, one.about) for one in OPTIONS}
    | {form.FILE: about(STRING | {"format": "binary"}, "The last part: what comes after it is refused.")},
    "required": [form.FILE],
    "additionalProperties": False,
}
UPLOAD = Endpoint(
    "POST",
    "/datasets/upload",
    upload,
    "uploadDataset",
    "Upload rows: batch lines, plain lines, columns or CSV, perhaps compressed with gzip.",
    answer=UPLOADED,
    query=OPTIONS,
    reads={MULTIPART: _FORM} | dict.fromkeys(RAW, _FILE),
    errors=(409,),
    gives={"dataset_id": "/dataset_id"},
    base=ADMIN,
)
