"""`GET /admin/benchmarks/{id}/results`: every row of a run, streamed, or page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response, StreamingResponse

from services.gateway.api.answers import members
from services.gateway.api.dataset_runs.body import MEMBERS, benchmark_body, find
from services.gateway.api.declare.endpoint import ADMIN, JSON, Call, Endpoint
from services.gateway.api.items.conditions import ANNOTATION, CONDITIONS, annotation_body, conditions_of
from services.gateway.api.items.listing import PAGE
from services.gateway.fields.checks import integer, one_of, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter
from services.gateway.fields.schema import COUNT, NUMBER, OBJECT, STRING, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse, json_text
from services.gateway.reads import values
from services.words import chat
from services.words.enums import ITEM_FILTERS, OUTCOMES
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2

_STATUSES = {name: one for name, one in ITEM_FILTERS.items() if name not in ("different", "regressed", "improved")}
_EXPORT = results_service_pb2.ExportRequest
_USUAL_PAGE, _MOST_PAGE = 100, 500
_CUT, _CUT_BYTES = "…", 2040
"""Texts that end like this and have at least this many bytes may be cut."""
_WHOLE_AT_ONCE = 8
_HEAD = ("benchmark_id", "model_name", "dataset_name", "status", "total_time_seconds", "throughput")


async def results(call: Call) -> Response:
    """Without `page_size` and `page_token` all rows as they are read from one snapshot; with either, a page of rows
    with more fields. 404 for an unknown id."""
    job = await find(call)
    head = {name: value for name, value in benchmark_body(job).items() if name in _HEAD}
    chosen = _chosen(call, job)
    if call.query["page_size"] or call.query["page_token"]:
        return await _page(call, chosen, head)
    request = _EXPORT(kind=_EXPORT.KIND_BATCH_OUTPUT, format=_EXPORT.FORMAT_JSONL, items=chosen)
    pieces = call.ctx.backend.stream(call.ctx.backend.results.Export, request, call.caller)
    # Errors come before the first piece: while there is still a status to answer with.
    first = await anext(pieces, None)
    return StreamingResponse(_whole(head, first, pieces), media_type=JSON)


def _chosen(call: Call, job: job_pb2.Job) -> results_service_pb2.ListItemsRequest:
    return results_service_pb2.ListItemsRequest(
        job_id=job.job_id,
        filter=_STATUSES[call.query["status"]],
        query=call.query["query"],
        conditions=conditions_of(call.query),
    )


async def _whole(
    head: dict[str, Any],
    first: results_service_pb2.ExportResponse | None,
    rest: AsyncGenerator[results_service_pb2.ExportResponse],
) -> AsyncIterator[bytes]:
    """The lines of the export as the members of a list."""
    yield f'{json_text(head)[:-1]}, "results": [\n'.encode()
    held = b""
    async with aclosing(rest):
        async for data in _data(first, rest):
            # A line's end becomes a comma if another line follows, which only the next piece shows.
            lines = held + data
            body = lines.rstrip(b"\n")
            held = lines[len(body) :]
            yield body.replace(b"\n", b",\n")
    yield b"\n]}\n"


async def _data(
    first: results_service_pb2.ExportResponse | None, rest: AsyncIterator[results_service_pb2.ExportResponse]
) -> AsyncIterator[bytes]:
    if first is not None:
        yield first.data
    async for piece in rest:
        yield piece.data


async def _page(call: Call, request: results_service_pb2.ListItemsRequest, head: dict[str, Any]) -> JSONResponse:
    request.page_token = call.query["page_token"]
    left = call.query["page_size"] or _USUAL_PAGE
    found: list[results_service_pb2.StoredItem] = []
    while True:
        request.page_size = min(left, PAGE)
        answer = await call.ask(call.ctx.backend.results.ListItems, request)
        found += await _uncut(call, list(answer.items))
        left -= len(answer.items)
        if left <= 0 or not answer.items or not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    rows = [row_body(stored) for stored in found]
    return JSONResponse(head | {"results": rows, "total": answer.total_size, "next_page_token": answer.next_page_token})


async def _uncut(call: Call, listed: list[results_service_pb2.StoredItem]) -> list[results_service_pb2.StoredItem]:
    """The items with whole texts, a few at a time."""
    slots = asyncio.Semaphore(_WHOLE_AT_ONCE)

    async def whole(stored: results_service_pb2.StoredItem) -> results_service_pb2.StoredItem:
        response = stored.result.response
        cut = response.endswith(_CUT) and len(response.encode()) >= _CUT_BYTES
        if not cut and not any(call.arguments.endswith(_CUT) for call in stored.result.tool_calls):
            return stored
        request = results_service_pb2.GetItemRequest(
            job_id=stored.job_id, task=stored.task, item=stored.result.item, repeat=stored.result.repeat
        )
        async with slots:
            return (await call.ask(call.ctx.backend.results.GetItem, request)).item

    return list(await asyncio.gather(*(whole(stored) for stored in listed)))


def row_body(stored: results_service_pb2.StoredItem) -> dict[str, Any]:
    """A row in the documented shape, and further fields for a table of rows."""
    result = stored.result
    failed = result.outcome == item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    message: dict[str, Any] = {"role": "assistant", "content": result.response}
    if result.tool_calls:
        message |= {"content": result.response or None, "tool_calls": chat.calls(result.tool_calls)}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": result.finish_reason or "stop",
    }
    return {
        "custom_id": result.custom_id,
        "response": None if failed else {"status_code": 200, "body": {"choices": [choice]}},
        "error": {"code": OUTCOMES.of(result.outcome), "message": result.error} if failed else None,
        "task": stored.task,
        "item": result.item,
        "repeat": result.repeat,
        "outcome": OUTCOMES.of(result.outcome),
        "prediction": result.prediction or None,
        "reference": result.reference or None,
        "score": stored.score if stored.HasField("score") else None,
        "metadata": values.parsed(result.metadata),
        "latency_ms": result.latency_ms,
        "input_tokens": values.tokens(result.input_tokens, result.input_untold),
        "output_tokens": values.tokens(result.output_tokens, result.output_untold),
        "cost_usd": values.cost(result),
        "annotation": annotation_body(stored),
    }


_ROW = shape(
    {
        "custom_id": about(STRING, "The id that the uploaded row has."),
        "response": about(
            null(
                shape(
                    {
                        "status_code": about(COUNT, "200."),
                        "request_id": about(STRING, "The id of the answer. Not in pages."),
                        "body": about(OBJECT, "A chat completion. `choices[0].message.content` is the answer."),
                    },
                    name="RowResponse",
                    optional=("request_id",),
                )
            ),
            "The answer. null if its calls failed.",
        ),
        "error": about(
            null(
                shape(
                    {"code": about(STRING, "The outcome."), "message": about(STRING, "What went wrong.")},
                    name="RowError",
                )
            ),
            "Why there is no response. null if there is one.",
        ),
        "id": about(STRING, "The id of the answer. Not in pages."),
        "task": about(STRING, "The task, for the address of the item. This and all that follows: only in pages."),
        "item": about(COUNT, "The row in the dataset, from 0."),
        "repeat": members.REPEAT,
        "outcome": about(enum(*OUTCOMES), "How the row ended."),
        "prediction": about(null(STRING), "The answer that was read from the response."),
        "reference": about(null(STRING), "The right answer."),
        "score": about(null(NUMBER), "What the answer counts. null without a reference or an answer."),
        "metadata": about({}, "The metadata of the row. null without any."),
        "latency_ms": about(NUMBER, "Milliseconds from the request to the whole answer."),
        "input_tokens": members.INPUT_TOKENS,
        "output_tokens": members.OUTPUT_TOKENS,
        "cost_usd": members.COST_USD,
        "annotation": about(null(ANNOTATION), "A person's annotation of the answer. null without one."),
    },
    name="Row",
    optional=(
        *("id", "task", "item", "repeat", "outcome", "prediction", "reference", "score", "metadata", "latency_ms"),
        *("input_tokens", "output_tokens", "cost_usd", "annotation"),
    ),
)
BENCHMARK_RESULTS = Endpoint(
    "GET",
    "/benchmarks/{benchmark_id}/results",
    results,
    "getBenchmarkResults",
    "Get every row of a run with its answer, all at once or in pages.",
    answer=shape(
        {"benchmark_id": MEMBERS["benchmark_id"]}
        | {name: MEMBERS[name] for name in _HEAD[1:]}
        | {
            "results": about(array(_ROW), "The rows in their order."),
            "total": about(COUNT, "The number of matches. Counting stops at 10,001. Only in pages."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="BenchmarkResults",
        optional=("total", "next_page_token"),
    ),
    query=(
        Parameter("query", text(200), "A text in the prompt, response, prediction, reference, id or metadata.", ""),
        Parameter("status", one_of(*_STATUSES), "Which rows. `final` means all but errors.", "all"),
        *CONDITIONS,
        Parameter(
            "page_size",
            integer(1, _MOST_PAGE),
            f"The most rows of a page. All rows at once if this and `page_token` are absent, else {_USUAL_PAGE}.",
        ),
        PAGE_TOKEN,
    ),
    streams=True,
    base=ADMIN,
)
