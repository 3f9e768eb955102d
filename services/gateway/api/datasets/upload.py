"""`POST /admin/datasets/upload` and `/admin/datasets/hub`: a file, or a split of a Hub dataset, becomes a dataset.

A file comes as a form's part or as the body itself, and is stored as it comes. An evaluator reads the split, which is
kept as an upload is.
"""

from __future__ import annotations

from services.gateway.api.datasets.body import PREVIEWED, UPLOADED, preview_body, uploaded_body
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.fields import scoring
from services.gateway.fields.checks import Field, integer, record, text
from services.gateway.fields.schema import STRING, Schema, about
from services.gateway.http.responses import JSONResponse
from services.gateway.uploads.body import FILE
from services.gateway.uploads.dataset import (
    LAST,
    LAST_ABOUT,
    NAME,
    OPTIONS,
    RAW,
    REQUEST_ID,
    TEMPLATE,
    previewed,
    received,
)
from services.gateway.uploads.parts import MULTIPART
from services.words.enums import DATASET_FORMATS, LAST_ASSISTANT
from services.words.fields import INT32_MAX, INT64_MAX
from touchstone.v1 import dataset_pb2, dataset_service_pb2, suite_pb2


async def upload(call: Call) -> JSONResponse:
    """400 with `lines` for wrong lines; nothing is stored unless all are right. 415 for a body that is neither a form
    nor a file, 409 for a `request_id` of other rows or options, 429 while the allowed number of uploads is under
    way."""
    return JSONResponse(uploaded_body(await received(call.request)))


async def preview(call: Call) -> JSONResponse:
    """Nothing is stored. 400 for a file that cannot be read with any options; where other options may help, the answer
    is 200 and `why` says which."""
    return JSONResponse(preview_body(await previewed(call.request)))


_FILE: Schema = {"type": "string", "format": "binary"}
_FORM: Schema = {
    "type": "object",
    "properties": {one.name: about(one.schema, one.about) for one in OPTIONS}
    | {FILE: about(STRING | {"format": "binary"}, "The file. It must be the last part.")},
    "required": [FILE],
    "additionalProperties": False,
}
UPLOAD = Endpoint(
    "POST",
    "/datasets/upload",
    upload,
    "uploadDataset",
    "Upload a dataset: JSON Lines, a JSON array, CSV, Excel, Parquet or YAML, perhaps compressed with gzip.",
    answer=UPLOADED,
    query=OPTIONS,
    reads={MULTIPART: _FORM} | dict.fromkeys(RAW, _FILE),
    errors=(409,),
    gives={"dataset_id": "/dataset_id"},
    base=ADMIN,
)


PREVIEW = Endpoint(
    "POST",
    "/datasets/preview",
    preview,
    "previewDataset",
    "Preview an upload: how its rows would be read, how many fit, and which do not. Nothing is stored.",
    answer=PREVIEWED,
    query=OPTIONS,
    reads={MULTIPART: _FORM} | dict.fromkeys(RAW, _FILE),
    base=ADMIN,
)


TIMEOUT_S = 600.0
_BODY = record(
    {
        "dataset": Field(text(200), required=True, about="The data set's id on the Hub, such as `openai/gsm8k`."),
        "split": Field(text(100), required=True, about="The split to read."),
        "template": Field(TEMPLATE, required=True, about="Makes messages of columns, as for an upload."),
        "config": Field(text(200), about="The data set's configuration. `default` if absent."),
        "revision": Field(
            text(200), about=("The revision. The newest if absent. The answer has the revision that was read.")
        ),
        "limit": Field(integer(1, INT32_MAX), about="The most rows, from the first one on."),
        "name": Field(
            NAME, about="The dataset's name. If absent: data set, configuration and split, joined by slashes."
        ),
        "custom_id_field": Field(text(200), about="The column with the rows' ids."),
        "last_assistant": Field(LAST, about=LAST_ABOUT),
        "project_id": Field(integer(0, INT64_MAX), about="A number to group datasets by. 0 means none."),
        "scoring": Field(scoring.SCORING, about="How answers are scored unless a run says otherwise."),
        "request_id": Field(text(64), about=REQUEST_ID),
    },
    name="HubRequest",
)


async def hub(call: Call) -> JSONResponse:
    """400 for a dataset or split that cannot be read, 409 for a `request_id` of something else, 503 without a live
    evaluator."""
    body = call.body
    options = dataset_pb2.DatasetOptions(
        name=body.get("name", ""),
        format=DATASET_FORMATS["hub"],
        template=body["template"],
        scoring=scoring.scoring_of(body.get("scoring", {})),
        project_id=body.get("project_id", 0),
        custom_id_field=body.get("custom_id_field", ""),
        last_assistant=LAST_ASSISTANT[body["last_assistant"]] if "last_assistant" in body else None,
    )
    source = suite_pb2.DataSource(
        dataset=body["dataset"],
        config=body.get("config", ""),
        split=body["split"],
        revision=body.get("revision", ""),
    )
    request = dataset_service_pb2.CreateHubDatasetRequest(
        options=options, source=source, limit=body.get("limit", 0), request_id=body.get("request_id", "")
    )
    backend = call.ctx.backend
    made = await backend.ask(backend.datasets.CreateHubDataset, request, call.caller, timeout_s=TIMEOUT_S)
    return JSONResponse(uploaded_body(made.dataset))


HUB = Endpoint(
    "POST",
    "/datasets/hub",
    hub,
    "createHubDataset",
    "Make a dataset of a split of the Hub.",
    answer=UPLOADED,
    body=_BODY,
    errors=(404, 409),
    gives={"dataset_id": "/dataset_id"},
    base=ADMIN,
)
