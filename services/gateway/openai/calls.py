"""`/v1/chat/completions` and `/v1/responses`: a call of one model, which an evaluator of its endpoint makes."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from services.bus import CallAnswer, make_call
from services.errors import InvalidRequestError, TouchstoneError, UnavailableError
from services.gateway.api.declare.endpoint import OPENAI, Call, Endpoint
from services.gateway.fields.checks import Check, Problem
from services.gateway.fields.schema import (
    BOOLEAN,
    COUNT,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    about,
    array,
    null,
    shape,
)
from services.gateway.http.middleware import CHAT_CALL, RESPONSE_CALL
from services.gateway.openai.errors import error_body
from services.gateway.reads.catalogue import place_of
from services.words.fields import decimal
from services.words.job_options import ALL
from services.words.jobs import BUDGET_HEADER, RUN_HEADER, run_name_problem
from touchstone.v1.call_pb2 import Call as MadeCall

T = TypeVar("T")

_EVENTS = "text/event-stream"
_MOST_NAME = 400


async def chat(call: Call) -> Response:
    """The fields are OpenAI's. The model is named as in a batch: model, or model@endpoint."""
    return await _answer(call, MadeCall.API_CHAT)


async def respond(call: Call) -> Response:
    return await _answer(call, MadeCall.API_RESPONSES)


async def _answer(call: Call, api: MadeCall.Api) -> Response:
    body, ctx = dict(call.body), call.ctx
    run, budget_usd = _run(call), _budget_usd(call)
    endpoint, model = await _place(call)
    if ctx.bus is None:
        raise UnavailableError("NATS does not answer, so no evaluator can be asked. Try again in a moment.")
    made = MadeCall(
        call_id=str(uuid.uuid4()),
        owner=call.caller.user,
        endpoint=endpoint,
        model=model,
        api=api,
        stream=bool(body.get("stream")),
        run=run,
        budget_usd=budget_usd,
    )
    made.started_at.GetCurrentTime()
    sent = json.dumps(body | {"model": model}, ensure_ascii=False, separators=(",", ":")).encode()
    async with AsyncExitStack() as opened:
        opened.enter_context(ctx.calls.slot(call.caller.user))
        answer = await _unless_gone(call, opened.enter_async_context(make_call(ctx.bus, made, sent)))
        headers = dict(answer.headers) | {"x-request-id": made.call_id}
        if headers.get("content-type", "").startswith(_EVENTS):
            return _Streamed(_pieces(call, answer), headers, opened.pop_all())
        content = await _unless_gone(call, _all(answer))
        return Response(content, answer.status, headers)


async def _place(call: Call) -> tuple[str, str]:
    try:
        return await place_of(call.ctx.catalogue, call.body["model"])
    except InvalidRequestError as error:
        raise InvalidRequestError(error.message, "model") from error


def _run(call: Call) -> str:
    """The run that the call is recorded for; empty for none."""
    name = call.request.headers.get(RUN_HEADER)
    if name is None:
        return ""
    if problem := run_name_problem(name, RUN_HEADER):
        raise InvalidRequestError(problem, RUN_HEADER)
    return name


def _budget_usd(call: Call) -> float:
    """What the calls of the run may cost together; 0 for any amount."""
    text = call.request.headers.get(BUDGET_HEADER)
    if text is None:
        return 0.0
    amount = decimal(text)
    if problem := ALL["budget_usd"].problem(text if amount is None else amount, BUDGET_HEADER):
        raise InvalidRequestError(problem, BUDGET_HEADER)
    if RUN_HEADER not in call.request.headers:
        raise InvalidRequestError(
            f"{BUDGET_HEADER} needs {RUN_HEADER}: the calls of a recorded run share a budget.", RUN_HEADER
        )
    assert amount is not None
    return amount


async def _all(answer: CallAnswer) -> bytes:
    return b"".join([piece async for piece in answer.pieces])


async def _unless_gone(call: Call, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which ends when the client goes away or the server stops."""
    working = asyncio.ensure_future(call.ctx.calls.unless_stopped(work))
    leaving = asyncio.ensure_future(_left(call))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(499, "The client went away.")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(call: Call) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass


async def _pieces(call: Call, answer: CallAnswer) -> AsyncIterator[bytes]:
    try:
        while (piece := await call.ctx.calls.unless_stopped(_next(answer))) is not None:
            yield piece
    except TouchstoneError as error:
        # The status has gone out. OpenAI's clients raise what such an event holds.
        told = {"type": "error", **error_body(error)}
        yield f"event: error\ndata: {json.dumps(told)}\n\n".encode()


async def _next(answer: CallAnswer) -> bytes | None:
    return await anext(answer.pieces, None)


class _Streamed(StreamingResponse):
    """Ends the call when the client goes away."""

    def __init__(self, pieces: AsyncIterator[bytes], headers: Mapping[str, str], opened: AsyncExitStack) -> None:
        super().__init__(pieces, headers=dict(headers) | {"x-accel-buffering": "no"})
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened:
            await super().__call__(scope, receive, send)


def _judge(name: str, required: str, schema: Schema, members: Mapping[str, Schema]) -> Check:
    """What is read here. The evaluator, or the provider, checks the other fields."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, "The body must be a JSON object."
            return
        name = value.get("model")
        if not isinstance(name, str) or not 0 < len(name.strip()) <= _MOST_NAME:
            yield "model", "model must be a model's name. GET /v1/models lists the models."
        if not isinstance(value.get("stream"), bool | None):
            yield "stream", "stream must be true or false."
        if not value.get(required):
            yield required, f"{required} is required."
        elif not isinstance(value[required], list) and (required == "messages" or not isinstance(value[required], str)):
            kind = "a list" if required == "messages" else "a string or a list"
            yield required, f"{required} must be {kind}."

    properties = {
        "model": about(STRING, "The model's name, or `model@endpoint`."),
        required: schema,
        "stream": about(BOOLEAN, "Whether the answer comes in pieces, as server-sent events."),
        **members,
    }
    described = shape(properties, name=name, optional=("stream", *members))
    return Check(described | {"additionalProperties": True}, judge)


_SAMPLING: Mapping[str, Schema] = {
    "temperature": about(null(NUMBER), "How random the answer is. The provider's own value if absent."),
    "top_p": about(null(NUMBER), "The share of likely tokens that are sampled from."),
    "tools": about(null(array(OBJECT)), "The functions that the model may call."),
    "tool_choice": about({}, "Which tool is called: `auto`, `none`, `required`, or an object that names one."),
    "metadata": about(null(OBJECT), "Texts of your own, which only some providers keep."),
    "user": about(null(STRING), "The end user, for providers that ask for it."),
}
_MESSAGES = about(array(OBJECT), "The conversation: objects with `role` and `content`.")
_INPUT = about({"anyOf": [STRING, array(OBJECT)]}, "A text, or a list of input items.")
_CHAT = _judge(
    "ChatCompletionRequest",
    "messages",
    _MESSAGES,
    {
        "max_completion_tokens": about(null(COUNT), "The most tokens of the answer."),
        "max_tokens": about(null(COUNT), "The older name of `max_completion_tokens`."),
        "n": about(null(COUNT), "How many answers, where the provider gives several."),
        "seed": about(null(INTEGER), "The seed of sampling."),
        "stop": about({"anyOf": [STRING, array(STRING), {"type": "null"}]}, "Texts that end the answer."),
        "response_format": about(null(OBJECT), "The form of the answer, such as `json_schema`."),
        "stream_options": about(null(OBJECT), "With `include_usage`, a last event brings the usage."),
        **_SAMPLING,
    },
)
_RESPOND = _judge(
    "ResponseRequest",
    "input",
    _INPUT,
    {
        "instructions": about(null(STRING), "A system message before the input."),
        "max_output_tokens": about(null(COUNT), "The most tokens of the answer."),
        "text": about(null(OBJECT), "The form of the answer: `format` and `verbosity`."),
        "reasoning": about(null(OBJECT), "How much the model thinks: `effort`."),
        **_SAMPLING,
    },
)
_COMPLETION = shape(
    {
        "id": about(STRING, "The answer's id."),
        "object": about(STRING, "`chat.completion`, or `chat.completion.chunk` of a piece."),
        "created": about(COUNT, "When the answer was made, in seconds since 1970."),
        "model": about(STRING, "The model, as the provider names it."),
        "choices": about(array(OBJECT), "The answers, each with `message` and `finish_reason`."),
        "usage": about(null(OBJECT), "What the answer took. Absent if the provider does not count."),
    },
    name="ChatCompletion",
    optional=("usage",),
)
_RESPONSE = shape(
    {
        "id": about(STRING, "The response's id."),
        "object": about(STRING, "Always `response`."),
        "created_at": about(NUMBER, "When the response was made, in seconds since 1970."),
        "status": about(STRING, "`completed`, or `incomplete` where it was cut."),
        "model": about(STRING, "The model, as the provider names it."),
        "output": about(array(OBJECT), "Messages, calls of tools and reasoning."),
        "usage": about(null(OBJECT), "What the response took. Null if the provider does not count."),
    },
    name="ModelResponse",
    optional=("usage",),
)
_ERRORS = (402, 404, 408, 502)


ENDPOINTS = (
    Endpoint(
        "POST",
        CHAT_CALL.removeprefix(OPENAI),
        chat,
        "createChatCompletion",
        "Answer a list of messages.",
        media=("application/json", _EVENTS),
        answer=_COMPLETION,
        body=_CHAT,
        errors=_ERRORS,
        base=OPENAI,
    ),
    Endpoint(
        "POST",
        RESPONSE_CALL.removeprefix(OPENAI),
        respond,
        "createResponse",
        "Answer an input.",
        media=("application/json", _EVENTS),
        answer=_RESPONSE,
        body=_RESPOND,
        errors=_ERRORS,
        base=OPENAI,
    ),
)
