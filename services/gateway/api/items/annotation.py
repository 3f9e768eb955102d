"""`PUT /results/{job_id}/items/{task}/{item}/annotation`: a person's verdict on an answer."""

from __future__ import annotations

from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.items.listing import ITEM, REPEAT, item_body, item_number
from services.gateway.fields.checks import Field, one_of, record, text
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.words.enums import VERDICTS
from touchstone.v1 import results_service_pb2

_BODY = record(
    {
        "verdict": Field(
            one_of(*VERDICTS),
            required=True,
            about="`golden`: an answer to learn from. `fix`: with a corrected answer. `none` takes the verdict back.",
        ),
        "corrected_answer": Field(
            text(64 * 1024), about="What the answer should have been. Required for `fix`, and refused otherwise."
        ),
        "note": Field(text(2000, least=0), about="Why."),
    },
    name="AnnotationRequest",
)


async def annotate(call: Call) -> JSONResponse:
    """Answers the item with its annotation. 403 for other users' jobs, 404 for an item that is not stored."""
    verdict, body = call.body["verdict"], call.body
    if (verdict == "fix") != ("corrected_answer" in body):
        words = "corrected_answer is required for fix and not allowed otherwise."
        raise FieldErrors([("corrected_answer", words)])
    request = results_service_pb2.AnnotateItemRequest(
        job_id=call.job_id,
        task=call.path["task"],
        item=item_number(call),
        repeat=call.query["repeat"],
        verdict=VERDICTS[verdict],
        corrected_answer=body.get("corrected_answer", ""),
        note=body.get("note", ""),
    )
    stored = (await call.ask(call.ctx.backend.results.AnnotateItem, request)).item
    return JSONResponse(item_body(stored))


ANNOTATE = Endpoint(
    "PUT",
    "/results/{job_id}/items/{task}/{item}/annotation",
    annotate,
    "annotateItem",
    "Annotate an answer as golden, to fix, or wrong.",
    answer=ITEM,
    query=(REPEAT,),
    body=_BODY,
    errors=(409,),
)
