"""`GET /results/{job_id}/items` and one item of them."""

from __future__ import annotations

import math
from typing import Any

from services.errors import InvalidRequestError
from services.gateway import jobs
from services.gateway.api import figures
from services.gateway.api.checks import JOB_ID, integer, one_of, text
from services.gateway.api.conditions import ANNOTATION, CONDITIONS, annotation_body, conditions_of
from services.gateway.api.endpoint import Call, Endpoint
from services.gateway.api.query import PAGE_TOKEN, Parameter, limit
from services.gateway.api.results import TOKEN
from services.gateway.api.schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    OBJECT,
    STRING,
    about,
    array,
    enum,
    null,
    shape,
    table,
)
from services.gateway.parameters import INT32_MAX
from services.gateway.responses import FieldErrors, JSONResponse
from touchstone.v1 import item_result_pb2, results_service_pb2

PAGE = 100
"""Items asked for at once: five hundred with their texts may be more than one gRPC message holds."""
_LISTING = results_service_pb2.ListItemsRequest
FILTERS = {
    "all": _LISTING.FILTER_UNSPECIFIED,
    "failures": _LISTING.FILTER_FAILURES,
    "unparsed": _LISTING.FILTER_UNPARSED,
    "errors": _LISTING.FILTER_ERRORS,
    "correct": _LISTING.FILTER_CORRECT,
    "truncated": _LISTING.FILTER_TRUNCATED,
    "refused": _LISTING.FILTER_REFUSED,
    "final": _LISTING.FILTER_FINAL,
    "different": _LISTING.FILTER_DIFFERENT,
    "regressed": _LISTING.FILTER_REGRESSED,
    "improved": _LISTING.FILTER_IMPROVED,
}
_AGAINST_BASELINE = ("different", "regressed", "improved")
_COUNTED = ("all", "failures", "unparsed", "errors", "truncated", "refused", *_AGAINST_BASELINE)


async def items(call: Call) -> JSONResponse:
    """Items with texts cut to 2 KB, in stable order. 404 for an unknown job or baseline."""
    request = chosen(call)
    request.page_token = call.query["page_token"]
    left, first = call.query["limit"], None
    found: list[dict[str, Any]] = []
    beside: list[dict[str, Any] | None] = []
    while True:
        request.page_size = min(left, PAGE)
        answer = await call.ask(call.ctx.backend.results.ListItems, request)
        first = first or answer
        found += [item_body(stored) for stored in answer.items]
        beside += [item_body(stored) if stored.job_id else None for stored in answer.baselines]
        left -= len(answer.items)
        if left <= 0 or not answer.items or not answer.next_page_token:
            break
        request.page_token = answer.next_page_token
    body: dict[str, Any] = {
        "items": found,
        "total": first.total_size,
        "counts": {name: getattr(first, f"count_{name}") for name in _COUNTED},
        "next_page_token": answer.next_page_token,
    }
    return JSONResponse(body | ({"baselines": beside} if request.baseline_job_id else {}))


def chosen(call: Call) -> results_service_pb2.ListItemsRequest:
    """The items that the query's filters ask for. Raises FieldErrors where a filter lacks its baseline."""
    query = call.query
    if query["filter"] in _AGAINST_BASELINE and not query["baseline"]:
        raise FieldErrors([("baseline", f"filter={query['filter']} needs baseline, the id of another job.")])
    return results_service_pb2.ListItemsRequest(
        job_id=call.job_id,
        task=query["task"],
        filter=FILTERS[query["filter"]],
        query=query["query"],
        baseline_job_id=jobs.checked_id(query["baseline"]) if query["baseline"] else "",
        conditions=conditions_of(query),
    )


async def item(call: Call) -> JSONResponse:
    """One item with whole texts."""
    request = results_service_pb2.GetItemRequest(
        job_id=call.job_id, task=call.path["task"], item=item_number(call), repeat=call.query["repeat"]
    )
    stored = (await call.ask(call.ctx.backend.results.GetItem, request)).item
    return JSONResponse(item_body(stored))


def item_number(call: Call) -> int:
    """The item in the path. Raises InvalidRequestError for what is no number."""
    number = call.path["item"]
    if not (number.isascii() and number.isdecimal()) or int(number[:20]) > INT32_MAX:
        raise InvalidRequestError(f"{number[:80]!r} is no item. Items are numbered from 0, as in the published split.")
    return int(number)


def item_body(stored: results_service_pb2.StoredItem) -> dict[str, Any]:
    result = stored.result
    correct = result.statistics.get("correct")
    return {
        "task": stored.task,
        "item": result.item,
        "repeat": result.repeat,
        "position": result.position,
        "outcome": figures.outcome_name(result.outcome),
        "correct": None if correct is None else correct == 1,
        "prediction": result.prediction,
        "reference": result.reference,
        "extraction": result.extraction,
        "statistics": dict(result.statistics),
        "prompt": result.prompt,
        "response": result.response,
        "reasoning": result.reasoning,
        "continuations": [_continuation(one) for one in result.continuations],
        "error": result.error or None,
        "finish_reason": result.finish_reason or None,
        "calls": result.calls,
        "latency_ms": result.latency_ms,
        "ttft_ms": result.ttft_ms or None,
        "input_tokens": figures.tokens(result.input_tokens, result.input_untold),
        "output_tokens": figures.tokens(result.output_tokens, result.output_untold),
        "reasoning_tokens": figures.tokens(result.reasoning_tokens, result.output_untold),
        "cost_usd": figures.cost(result),
        "reused": result.reused,
        "parameters": figures.members(result.parameters),
        "served_model": result.served_model or None,
        "scorer_version": result.scorer_version,
        "item_hash": result.item_hash,
        "prompt_hash": result.prompt_hash,
        "identity": result.identity or None,
        "group": result.group or None,
        "custom_id": result.custom_id or None,
        "metadata": figures.parsed(result.metadata),
        "messages": figures.parsed(result.messages),
        "score": stored.score if stored.HasField("score") else None,
        "annotation": annotation_body(stored),
        "attempt": stored.attempt,
        "evaluator": stored.evaluator,
    }


def _continuation(one: item_result_pb2.Continuation) -> dict[str, Any]:
    # Some tools write -inf for a text of no probability, which JSON does not have.
    value = one.loglikelihood if math.isfinite(one.loglikelihood) else None
    return {"text": one.text, "loglikelihood": value, "tokens": one.tokens, "greedy": one.greedy}


ITEM = shape(
    {
        "task": STRING,
        "item": about(COUNT, "Row in the published split, from 0."),
        "repeat": COUNT,
        "position": COUNT,
        "outcome": enum(*figures.OUTCOMES),
        "correct": about(null(BOOLEAN), "null where the metric has no right and wrong, or no answer came."),
        "prediction": STRING,
        "reference": STRING,
        "extraction": about(STRING, "How the answer was read."),
        "statistics": about(table(NUMBER), "What metrics are computed from."),
        "prompt": STRING,
        "response": STRING,
        "reasoning": STRING,
        "continuations": array(
            shape({"text": STRING, "loglikelihood": null(NUMBER), "tokens": COUNT, "greedy": BOOLEAN})
        ),
        "error": null(STRING),
        "finish_reason": null(STRING),
        "calls": COUNT,
        "latency_ms": NUMBER,
        "ttft_ms": null(NUMBER),
        "input_tokens": about(null(COUNT), "null where the provider does not tell."),
        "output_tokens": null(COUNT),
        "reasoning_tokens": null(COUNT),
        "cost_usd": null(NUMBER),
        "reused": BOOLEAN,
        "parameters": about(null(OBJECT), "What the request carried beside the prompt."),
        "served_model": null(STRING),
        "scorer_version": STRING,
        "item_hash": STRING,
        "prompt_hash": STRING,
        "identity": null(STRING),
        "group": null(STRING),
        "custom_id": null(STRING),
        "metadata": about({}, "The uploaded row's own; null without any."),
        "messages": about({}, "The messages as sent, where `prompt` does not tell them apart; else null."),
        "score": about(null(NUMBER), "What it counts in the task's first metric; null without a reference."),
        "annotation": about(null(ANNOTATION), "What a person thinks of the answer; null before anyone said."),
        "attempt": COUNT,
        "evaluator": STRING,
    },
    name="Item",
)
CHOICE = (
    Parameter("task", text(200), "Only this task.", ""),
    Parameter(
        "filter",
        one_of(*FILTERS),
        "Which items; the last three against `baseline`.",
        "all",
    ),
    Parameter("query", text(200), "Text in the prompt, response, prediction, reference, id or metadata.", ""),
    Parameter("baseline", JOB_ID, "Job to stand beside.", ""),
    *CONDITIONS,
)
REPEAT = Parameter("repeat", integer(0, INT32_MAX), "Which of the item's answers, from 0.", 0)
ITEMS = Endpoint(
    "GET",
    "/results/{job_id}/items",
    items,
    "listItems",
    "Items of a job with texts cut to 2 KB; filtered, searched, beside a baseline.",
    answer=shape(
        {
            "items": array(ITEM),
            "baselines": about(array(null(ITEM)), "The baseline's items in the order of `items`."),
            "total": about(COUNT, "Matches, counted to 10,001."),
            "counts": about(shape(dict.fromkeys(_COUNTED, COUNT)), "Matches of every filter, same task and query."),
            "next_page_token": TOKEN,
        },
        name="Items",
        optional=("baselines",),
    ),
    query=(*CHOICE, limit(100, 500), PAGE_TOKEN),
    gives={"task": "/items/0/task", "item": "/items/0/item"},
)
ITEM_DETAIL = Endpoint(
    "GET",
    "/results/{job_id}/items/{task}/{item}",
    item,
    "getItem",
    "One item with whole texts.",
    answer=ITEM,
    query=(REPEAT,),
)
