"""`POST /admin/datasets/upload`: a file as a form's part or as the body itself, stored as it comes."""

from __future__ import annotations

from services.gateway.api.datasets.body import UPLOADED, uploaded_body
from services.gateway.api.declare.endpoint import ADMIN, Call, Endpoint
from services.gateway.fields.schema import STRING, Schema, about
from services.gateway.http.responses import JSONResponse
from services.gateway.uploads import form
from services.gateway.uploads.dataset import MULTIPART, OPTIONS, RAW, received


async def upload(call: Call) -> JSONResponse:
    """400 with `lines` for wrong lines; nothing is stored unless all are right. 415 for what is neither a form nor a
    file, 409 for a `request_id` of other rows or options, 429 while as many uploads as may be are under way."""
    return JSONResponse(uploaded_body(await received(call.request)))


_FILE: Schema = {"type": "string", "format": "binary"}
_FORM: Schema = {
    "type": "object",
    "properties": {one.name: about(one.schema, one.about) for one in OPTIONS}
    | {form.FILE: about(STRING | {"format": "binary"}, "The file. It must be the last part.")},
    "required": [form.FILE],
    "additionalProperties": False,
}
UPLOAD = Endpoint(
    "POST",
    "/datasets/upload",
    upload,
    "uploadDataset",
    "Upload a dataset: batch lines, plain lines, columns or CSV, perhaps compressed with gzip.",
    answer=UPLOADED,
    query=OPTIONS,
    reads={MULTIPART: _FORM} | dict.fromkeys(RAW, _FILE),
    errors=(409,),
    gives={"dataset_id": "/dataset_id"},
    base=ADMIN,
)
