"""`PUT /results/{job_id}/items/{task}/{item}/annotation`: what a person thinks of an answer."""

from __future__ import annotations

from services.gateway.api.checks import Field, one_of, record, text
from services.gateway.api.conditions import VERDICTS
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.items import ITEM, REPEAT, item_body, item_number
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import results_service_pb2

_BODY = record(
    {
        "verdict": Field(one_of(*VERDICTS), required=True, about="golden, fix, wrong; none takes it back."),
        "corrected_answer": Field(text(64 * 1024), about="For fix: what the answer should have been."),
        "note": Field(text(2000, least=0)),
    },
    name="AnnotationRequest",
)


async def annotate(call: Call) -> JSONResponse:
    """Answers the item with its annotation. 403 for other users' jobs, 404 for an item that is not stored."""
    verdict, body = call.body["verdict"], call.body
    if (verdict == "fix") != ("corrected_answer" in body):
        words = "corrected_answer is needed for fix: the answer as it should have been; and for nothing else."
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
    "Say of an answer that it is golden, needs a fix, or is wrong.",
    answer=ITEM,
    query=(REPEAT,),
    body=_BODY,
    errors=(409,),
)
