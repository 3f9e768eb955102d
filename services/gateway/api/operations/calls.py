"""Calls of models through `/v1`: what each took, and their sums."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.fields.checks import integer, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, TIME, about, array, enum, null, shape
from services.gateway.http.responses import JSONResponse
from services.gateway.reads import jobs
from services.words.enums import CALL_APIS, CALL_OUTCOMES
from touchstone.v1 import call_pb2, results_service_pb2

_UNFINISHED = "unfinished"


async def calls(call: Call) -> JSONResponse:
    """Newest first."""
    request = results_service_pb2.ListCallsRequest(
        page_size=call.query["limit"],
        page_token=call.query["page_token"],
        owner=call.query["user"],
        endpoint=call.query["endpoint"],
        model=call.query["model"],
    )
    found = await call.ask(call.ctx.backend.results.ListCalls, request)
    return JSONResponse({"calls": [_call(one) for one in found.calls], "next_page_token": found.next_page_token})


def _call(one: call_pb2.Call) -> dict[str, Any]:
    return {
        "call_id": one.call_id,
        "user": one.owner,
        "endpoint": one.endpoint,
        "model": one.model,
        "served_model": one.served_model or None,
        "api": CALL_APIS.of(one.api),
        "stream": one.stream,
        "started_at": jobs.iso(one.started_at),
        "outcome": CALL_OUTCOMES.of(one.outcome, _UNFINISHED),
        "status": one.status or None,
        "error": one.error or None,
        "latency_ms": one.latency_ms if one.outcome else None,
        "ttft_ms": one.ttft_ms or None,
        "input_tokens": one.input_tokens if one.HasField("input_tokens") else None,
        "output_tokens": one.output_tokens if one.HasField("output_tokens") else None,
        "reasoning_tokens": one.reasoning_tokens,
        "cost_usd": one.cost_usd if one.HasField("cost_usd") else None,
        "evaluator": one.evaluator,
    }


async def usage(call: Call) -> JSONResponse:
    """For each user and model, those that cost most first."""
    request = results_service_pb2.GetCallUsageRequest(owner=call.query["user"])
    request.started_after.FromDatetime(datetime.now(UTC) - timedelta(days=call.query["days"]))
    found = await call.ask(call.ctx.backend.results.GetCallUsage, request)
    return JSONResponse({"usage": [_usage(one) for one in found.usage]})


def _usage(one: call_pb2.CallUsage) -> dict[str, Any]:
    return {
        "user": one.owner,
        "endpoint": one.endpoint,
        "model": one.model,
        "calls": one.calls,
        "answered": one.answered,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "cost_usd": one.cost_usd,
        "unpriced": one.unpriced,
        "last_at": jobs.iso(one.last_at),
    }


_PLACE = {
    "user": about(STRING, "The user who sent it."),
    "endpoint": about(STRING, "The endpoint that was called."),
    "model": about(STRING, "The model that was named."),
}
_CALL = {
    "call_id": about(STRING, "Its id, which the answer's `x-request-id` has."),
    **_PLACE,
    "served_model": about(null(STRING), "The model as the provider named it."),
    "api": about(enum(*CALL_APIS), "`chat` for `/v1/chat/completions`, `responses` for `/v1/responses`."),
    "stream": about(BOOLEAN, "Whether the answer was streamed."),
    "started_at": about(null(TIME), "When it began."),
    "outcome": about(
        enum(_UNFINISHED, *CALL_OUTCOMES),
        "`unfinished`: under way, or its evaluator was lost. `refused`: the request was wrong. `failed`: the provider "
        "failed. `cancelled`: the client went away.",
    ),
    "status": about(null(COUNT), "The HTTP status of the answer. 499 if the client went away."),
    "error": about(null(STRING), "Why there is no answer."),
    "latency_ms": about(null(NUMBER), "Milliseconds from its start to its end."),
    "ttft_ms": about(null(NUMBER), "Milliseconds to the first text of a streamed answer."),
    "input_tokens": about(null(COUNT), "Tokens of the prompt. null if the provider does not tell."),
    "output_tokens": about(null(COUNT), "Generated tokens. null if the provider does not tell."),
    "reasoning_tokens": about(COUNT, "Those of them that are reasoning."),
    "cost_usd": about(null(NUMBER), "Its cost in US dollars. null if it is not known."),
    "evaluator": about(STRING, "The evaluator that made it."),
}
_USAGE = {
    **_PLACE,
    "calls": about(COUNT, "The number of calls."),
    "answered": about(COUNT, "Those with an answer."),
    "input_tokens": about(COUNT, "Tokens of their prompts."),
    "output_tokens": about(COUNT, "Their generated tokens."),
    "cost_usd": about(NUMBER, "Their known cost in US dollars."),
    "unpriced": about(COUNT, "Calls that may have been charged, with a cost that is not known."),
    "last_at": about(null(TIME), "When the last one began."),
}
_USER = Parameter("user", text(200), "Only those of this user.", "")
CALLS = Endpoint(
    "GET",
    "/calls",
    calls,
    "listCalls",
    "List the calls of models through /v1.",
    answer=shape(
        {
            "calls": about(array(shape(_CALL, name="ModelCall")), "Newest first."),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="ModelCalls",
    ),
    query=(
        _USER,
        Parameter("endpoint", text(200), "Only those at this endpoint.", ""),
        Parameter("model", text(400), "Only those of this model.", ""),
        limit(100),
        PAGE_TOKEN,
    ),
)
USAGE = Endpoint(
    "GET",
    "/usage",
    usage,
    "getUsage",
    "Get what the calls through /v1 took, by user and model.",
    answer=shape(
        {"usage": about(array(shape(_USAGE, name="ModelUsage")), "Those that cost most first.")}, name="Usage"
    ),
    query=(_USER, Parameter("days", integer(1, 3650), "The last days that count.", 30)),
)
