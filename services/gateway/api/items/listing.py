"""`GET /results/{job_id}/items` and one item of them."""

from __future__ import annotations

import math
from typing import Any

from services.errors import InvalidRequestError
from services.gateway.api.answers import members
from services.gateway.api.declare.endpoint import Call, Endpoint
from services.gateway.api.items.conditions import ANNOTATION, CONDITIONS, annotation_body, conditions_of
from services.gateway.fields.checks import JOB_ID, boolean, integer, one_of, text
from services.gateway.fields.query import NEXT_PAGE_TOKEN, PAGE_TOKEN, Parameter, limit
from services.gateway.fields.schema import (
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
from services.gateway.http.responses import FieldErrors, JSONResponse
from services.gateway.reads import jobs, values
from services.words import chat
from services.words.enums import ITEM_FILTERS, ITEM_ORDERS, OUTCOMES
from services.words.fields import INT32_MAX
from touchstone.v1 import item_result_pb2, results_service_pb2

PAGE = 100
"""Items per request: five hundred with their texts may be too large for one gRPC message."""
_AGAINST_BASELINE = ("different", "regressed", "improved")
_COUNTED = ("all", "failures", "unparsed", "errors", "truncated", "refused", *_AGAINST_BASELINE)


async def items(call: Call) -> JSONResponse:
    """Items with texts cut to 2 KB, in stable order. 404 for an unknown job or baseline."""
    request = chosen(call)
    request.page_token = call.query["page_token"]
    request.order = ITEM_ORDERS[call.query["order"]]
    request.with_classes = call.query["classes"]
    if request.with_classes and not request.task:
        raise FieldErrors([("task", "classes=true needs task, the name of one of the job's tasks.")])
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
    if request.baseline_job_id:
        body["baselines"] = beside
    if request.with_classes:
        body["classes"] = [_class(one) for one in first.classes]
    return JSONResponse(body)


def _class(one: results_service_pb2.ClassCount) -> dict[str, Any]:
    prediction = one.prediction if one.HasField("prediction") else None
    return {"reference": one.reference, "prediction": prediction, "items": one.items}


def chosen(call: Call) -> results_service_pb2.ListItemsRequest:
    """The items that the query's filters choose. Raises FieldErrors if a filter lacks its baseline."""
    query = call.query
    if query["filter"] in _AGAINST_BASELINE and not query["baseline"]:
        raise FieldErrors([("baseline", f"filter={query['filter']} needs baseline, the id of another job.")])
    return results_service_pb2.ListItemsRequest(
        job_id=call.job_id,
        task=query["task"],
        filter=ITEM_FILTERS[query["filter"]],
        query=query["query"],
        baseline_job_id=jobs.checked_id(query["baseline"]) if query["baseline"] else "",
        conditions=conditions_of(query),
    )


async def item(call: Call) -> JSONResponse:
    """Get one item with whole texts."""
    request = results_service_pb2.GetItemRequest(
        job_id=call.job_id, task=call.path["task"], item=item_number(call), repeat=call.query["repeat"]
    )
    stored = (await call.ask(call.ctx.backend.results.GetItem, request)).item
    return JSONResponse(item_body(stored))


def item_number(call: Call) -> int:
    """The item in the path. Raises InvalidRequestError for anything but a number."""
    number = call.path["item"]
    if not (number.isascii() and number.isdecimal()) or int(number[:20]) > INT32_MAX:
        raise InvalidRequestError(
            f"{number[:80]!r} is not an item number. Items are numbered from 0, as in the published split."
        )
    return int(number)


def item_body(stored: results_service_pb2.StoredItem) -> dict[str, Any]:
    result = stored.result
    correct = result.statistics.get("correct")
    body = {
        "task": stored.task,
        "item": result.item,
        "repeat": result.repeat,
        "position": result.position,
        "outcome": OUTCOMES.of(result.outcome),
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
        "input_tokens": values.tokens(result.input_tokens, result.input_untold),
        "output_tokens": values.tokens(result.output_tokens, result.output_untold),
        "reasoning_tokens": values.tokens(result.reasoning_tokens, result.output_untold),
        "cost_usd": values.cost(result),
        "reused": result.reused,
        "parameters": values.members(result.parameters),
        "served_model": result.served_model or None,
        "scorer_version": result.scorer_version,
        "item_hash": result.item_hash,
        "prompt_hash": result.prompt_hash,
        "identity": result.identity or None,
        "group": result.group or None,
        "custom_id": result.custom_id or None,
        "metadata": values.parsed(result.metadata),
        "messages": values.parsed(result.messages),
        "score": stored.score if stored.HasField("score") else None,
        "annotation": annotation_body(stored),
        "attempt": stored.attempt,
        "evaluator": stored.evaluator,
    }
    if result.tool_calls:
        body["tool_calls"] = chat.calls(result.tool_calls)
    if result.logprobs:
        body["logprobs"] = chat.logprobs(result.logprobs)
    return body


def _continuation(one: item_result_pb2.Continuation) -> dict[str, Any]:
    # Some tools write -inf for a text of no probability, which JSON does not have.
    value = one.loglikelihood if math.isfinite(one.loglikelihood) else None
    return {"text": one.text, "loglikelihood": value, "tokens": one.tokens, "greedy": one.greedy}


ITEM = shape(
    {
        "task": members.TASK,
        "item": members.ITEM,
        "repeat": members.REPEAT,
        "position": about(COUNT, "The answer's place in the task, from 0."),
        "outcome": about(enum(*OUTCOMES), "How the item ended."),
        "correct": about(null(BOOLEAN), "Whether the answer is right. null without an answer, or for correlations."),
        "prediction": about(STRING, "The answer that was read from the response."),
        "reference": about(STRING, "The right answer."),
        "extraction": about(STRING, "How the answer was read."),
        "statistics": about(table(NUMBER), "The numbers that metrics are computed from."),
        "prompt": about(STRING, "The prompt as sent."),
        "response": about(STRING, "The text that the model wrote."),
        "reasoning": about(STRING, "The model's reasoning, if the provider returns it."),
        "continuations": about(
            array(
                shape(
                    {
                        "text": about(STRING, "The choice."),
                        "loglikelihood": about(null(NUMBER), "Its log-probability after the prompt."),
                        "tokens": about(COUNT, "Its number of tokens."),
                        "greedy": about(BOOLEAN, "Whether each of its tokens was the most probable one."),
                    }
                )
            ),
            "The scored choices, in mode `loglikelihood`.",
        ),
        "error": about(null(STRING), "What went wrong, or that a text was cut for storage."),
        "finish_reason": about(null(STRING), "Why the model stopped, by the provider's word."),
        "calls": about(COUNT, "The number of calls, retries included."),
        "latency_ms": about(NUMBER, "Milliseconds from the request to the whole answer."),
        "ttft_ms": about(null(NUMBER), "Milliseconds to the first token. null if the answer was not streamed."),
        "input_tokens": members.INPUT_TOKENS,
        "output_tokens": members.OUTPUT_TOKENS,
        "reasoning_tokens": about(null(COUNT), "Tokens of reasoning, which `output_tokens` includes."),
        "cost_usd": members.COST_USD,
        "reused": about(BOOLEAN, "Whether the answer was taken from the store, without a call."),
        "parameters": about(null(OBJECT), "What the request carried with the prompt."),
        "served_model": about(null(STRING), "The model that answered, by the provider's word."),
        "scorer_version": about(STRING, "The version of the scorer."),
        "item_hash": about(STRING, "A hash of the item's input and reference."),
        "prompt_hash": about(STRING, "A hash of the prompt."),
        "identity": about(null(STRING), "A hash of model and request, by which stored answers are found."),
        "group": about(null(STRING), "Items of one group share a passage, or what the dataset groups rows by."),
        "custom_id": about(null(STRING), "The id that the uploaded row has."),
        "metadata": about({}, "The metadata of the uploaded row. null without any."),
        "messages": about(
            {},
            "The messages as sent, if there are several, or one has more than a text. null otherwise. An image is "
            "named by its type, size and SHA-256.",
        ),
        "score": about(null(NUMBER), "The item's score in the task's first metric. null without a reference."),
        "annotation": about(null(ANNOTATION), "A person's annotation of the answer. null without one."),
        "attempt": about(COUNT, "The attempt that got the answer."),
        "evaluator": about(STRING, "The evaluator that made the call."),
        "tool_calls": members.TOOL_CALLS,
        "logprobs": about(
            array(
                shape(
                    {
                        "token": about(STRING, "The token."),
                        "logprob": about(NUMBER, "Its log-probability."),
                        "top_logprobs": about(
                            array(
                                shape(
                                    {
                                        "token": about(STRING, "The token."),
                                        "logprob": about(NUMBER, "Its log-probability."),
                                    },
                                    name="TopLogprob",
                                )
                            ),
                            "The most probable tokens in its place, as many as were asked for.",
                        ),
                    },
                    name="TokenLogprob",
                )
            ),
            "The log-probabilities of the response's tokens. Absent if the request asked for none, and in lists.",
        ),
    },
    name="Item",
    optional=("tool_calls", "logprobs"),
)
CHOICE = (
    Parameter("task", text(200), "Only this task.", ""),
    Parameter(
        "filter",
        one_of(*ITEM_FILTERS),
        "Which items. `different`, `regressed` and `improved` compare with `baseline`. `final` means all but errors.",
        "all",
    ),
    Parameter("query", text(200), "A text in the prompt, response, prediction, reference, id or metadata.", ""),
    Parameter("baseline", JOB_ID, "Another job, whose items are in `baselines`.", ""),
    *CONDITIONS,
)
REPEAT = Parameter("repeat", integer(0, INT32_MAX), "The answer of the item, from 0.", 0)
ITEMS = Endpoint(
    "GET",
    "/results/{job_id}/items",
    items,
    "listItems",
    "List a job's items, with filters, a search, and a baseline to compare with.",
    answer=shape(
        {
            "items": about(array(ITEM), "The items, in the order asked for."),
            "baselines": about(
                array(null(ITEM)), "The baseline's items, in the order of `items`. null if it has none."
            ),
            "total": about(COUNT, "The number of matches. Counting stops at 10,001."),
            "counts": about(
                shape({name: about(COUNT, f"Matches with `filter={name}`.") for name in _COUNTED}),
                "The number of matches by filter, with the same other parameters. Counting stops at 10,001.",
            ),
            "classes": about(
                array(
                    shape(
                        {
                            "reference": about(STRING, "The right answer."),
                            "prediction": about(
                                null(STRING),
                                "The answer that was read. Empty: none was. null: one that is right for no item.",
                            ),
                            "items": about(COUNT, "The number of items with both."),
                        },
                        name="ClassCount",
                    )
                ),
                "All items of the task by right answer and answer read. Empty for a task without a few classes.",
            ),
            "next_page_token": NEXT_PAGE_TOKEN,
        },
        name="Items",
        optional=("baselines", "classes"),
    ),
    query=(
        *CHOICE,
        Parameter("order", one_of(*ITEM_ORDERS), "`item`, or `slowest` or `longest` answers first.", "item"),
        Parameter("classes", boolean, "Whether `classes` are counted. Needs `task`.", False),
        limit(100, 500),
        PAGE_TOKEN,
    ),
    gives={"task": "/items/0/task", "item": "/items/0/item"},
)
ITEM_DETAIL = Endpoint(
    "GET",
    "/results/{job_id}/items/{task}/{item}",
    item,
    "getItem",
    "Get one item with whole texts.",
    answer=ITEM,
    query=(REPEAT,),
)
