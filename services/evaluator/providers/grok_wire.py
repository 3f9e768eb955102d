"""The JSON of xAI's API where it is not OpenAI's chat completions: models with prices, usage, and `/responses`.

Source: docs.x.ai, "Models", "Responses", "Cost Tracking" (2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Message, Response
from services.evaluator.providers.openai import wire
from services.evaluator.providers.openai.wire import Wire, content, text
from services.evaluator.providers.protocol import common_form, failures
from services.evaluator.providers.protocol.events import kept, members
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.providers.protocol.usage import MalformedError, Told, count, entries, inner, part, parts, string
from services.words import chat
from touchstone.v1 import endpoint_pb2
from touchstone.v1.content_pb2 import ToolCall

IMAGES = ("image/png", "image/jpeg")
_CALL = "function_call"
_BILLED = "cost_in_usd_ticks"
_TICKS_PER_USD = 1e10
# The listing counts US cents for a hundred million tokens.
_PRICE_UNIT = 1e4
_BESIDE_TEXTS = ("model", "status", "incomplete_details", "usage", "error")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_DELTAS = (
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
)


def models(entry: dict[str, Any]) -> Iterator[endpoint_pb2.Model]:
    """A model of `/language-models` under its id and under each alias."""
    name = text(entry.get("id"))
    if not name:
        return
    found = endpoint_pb2.Model(model=name, context_length=count(entry, "context_length", 2**31 - 1))
    prompt, completion = (_price(entry.get(f"{kind}_text_token_price")) for kind in ("prompt", "completion"))
    if prompt is not None and completion is not None:
        found.input_price, found.output_price = prompt, completion
    inputs = entry.get("input_modalities")
    if isinstance(inputs, list) and inputs:
        found.capabilities.images = "image" in inputs
    default = inner(entry, "capabilities").get("default_reasoning_effort")
    if isinstance(default, str):
        found.capabilities.reasoning = default != "none"
    yield found
    aliases = entry.get("aliases")
    for alias in aliases if isinstance(aliases, list) else ():
        if isinstance(alias, str) and alias:
            other = endpoint_pb2.Model(description=f"Now {name}.")
            other.MergeFrom(found)
            other.model = alias
            yield other


def efforts(entry: dict[str, Any]) -> tuple[str, ...] | None:
    """The values of reasoning_effort that a model takes, empty when it takes none; None when the listing does not
    say."""
    capabilities = entry.get("capabilities")
    if not isinstance(capabilities, dict):
        return None
    taken = capabilities.get("reasoning_effort")
    return tuple(value for value in taken if isinstance(value, str)) if isinstance(taken, list) else ()


def output_tokens(told: Told, usage: object, generated: str, read: str) -> int | None:
    """With the reasoning tokens, which the chat API's own count leaves out: its total has them."""
    alone = told.tokens(usage, generated)
    every, prompt = told.tokens(usage, "total_tokens"), told.tokens(usage, read)
    return alone if alone is None or every is None or prompt is None else max(alone, every - prompt)


def chat_response(endpoint: Endpoint, reply: Reply) -> Response:
    """An answer of `/chat/completions`."""
    usage, told = inner(reply.body, "usage"), Told()
    response = replace(
        wire.response(endpoint, reply),
        output_tokens=output_tokens(told, usage, "completion_tokens", "prompt_tokens"),
        cost_usd=told.usd(usage, _BILLED, per_usd=_TICKS_PER_USD),
    )
    return replace(response, doubtful=tuple(dict.fromkeys((*response.doubtful, *told.doubtful))))


class ResponseFold:
    """A streamed answer of `/responses`: its last event carries all of it."""

    def __init__(self) -> None:
        self.size = 0
        self._last: dict[str, Any] | None = None

    def add(self, event: Any) -> bool:
        kind = part(event, "type", str)
        if kind in _ENDS:
            self._last = self._short(inner(event, "response"))
        elif kind == "error" or event.get("error"):
            error = event.get("error") or {"message": event.get("message"), "code": event.get("code")}
            self._last = {"error": kept(error)}
        return kind in _DELTAS and bool(event.get("delta"))

    def whole(self) -> Any:
        return self._last

    def _short(self, body: dict[str, Any]) -> dict[str, Any]:
        """The same answer with its texts joined."""
        said = _Said(body)
        self.size = len(said.answer) + len(said.refusal) + len(said.reasoning)
        self.size += sum(len(call.id) + len(call.name) + len(call.arguments) for call in said.calls)
        message = {"type": "message", "content": [{"text": said.answer, "refusal": said.refusal}]}
        thought = {"type": "reasoning", "summary": [{"text": said.reasoning}]}
        calls = [
            {"type": _CALL, "call_id": call.id, "name": call.name, "arguments": call.arguments} for call in said.calls
        ]
        output = [thought, message, *calls] if said.has_message else [thought, *calls]
        return members(body, _BESIDE_TEXTS) | {"output": output}


class _Said:
    """What an answer of `/responses` says. `is_there`: it has a message, which may be empty, or a call."""

    def __init__(self, body: dict[str, Any]) -> None:
        items = parts(body, "output")
        said = [piece for item in items if item.get("type") == "message" for piece in parts(item, "content")]
        self.calls = tuple(
            ToolCall(
                id=string(item, "call_id"),
                name=string(item, "name"),
                arguments=common_form.written(item.get("arguments")),
            )
            for item in items
            if item.get("type") == _CALL
        )
        self.has_message = bool(said)
        self.is_there = self.has_message or bool(self.calls)
        self.answer = "".join(content(piece, "text") for piece in said)
        self.refusal = "".join(text(piece.get("refusal")) for piece in said)
        self.reasoning = "\n".join(
            text(piece.get("text"))
            for item in items
            if item.get("type") == "reasoning"
            for piece in (*entries(item, "summary"), *entries(item, "content"))
        )


def response(endpoint: Endpoint, reply: Reply) -> Response:
    """An answer of `/responses`, without the parameters. Raises ProviderError for an incomplete answer."""
    body = reply.body
    if not isinstance(body, dict):
        raise failures.cut_short(endpoint)
    if body.get("error") or body.get("status") == "failed":
        raise failures.failed_midway(endpoint, reply.error_text)
    try:
        said = _Said(body)
    except MalformedError as error:
        raise failures.malformed(endpoint, error) from None
    finish = "tool_calls" if said.calls else "stop"
    if body.get("status") == "incomplete":
        reason = text(inner(body, "incomplete_details").get("reason"))
        finish = "length" if "token" in reason or not reason else reason
    elif not said.is_there:
        raise failures.lacking(endpoint, "a message")
    usage, told = body.get("usage"), Told()
    response = Response(
        text=said.answer or said.refusal,
        tool_calls=said.calls,
        reasoning=said.reasoning,
        finish_reason=finish,
        input_tokens=told.tokens(usage, "input_tokens"),
        output_tokens=output_tokens(told, usage, "output_tokens", "input_tokens"),
        latency_ms=reply.latency_ms,
        served_model=text(body.get("model")),
        refused=finish == "content_filter" or bool(said.refusal),
        ttft_ms=reply.ttft_ms,
        reasoning_tokens=told.tokens(inner(usage, "output_tokens_details"), "reasoning_tokens") or 0,
        cost_usd=told.usd(usage, _BILLED, per_usd=_TICKS_PER_USD),
    )
    return replace(response, doubtful=tuple(dict.fromkeys(told.doubtful)))


def _price(value: object) -> float | None:
    """US dollars per million tokens."""
    price = numbers.real(value, 0.0, numbers.MOST_PRICE * _PRICE_UNIT)
    return None if price is None else price / _PRICE_UNIT


def messages(asked: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as items of a `/responses` request. Raises ProviderError."""
    common_form.check_images("xAI", asked, IMAGES, detail=True)
    return [item for message in asked for item in _items(message)]


def _items(message: Message) -> Iterator[dict[str, Any]]:
    more = message.more
    if more is not None and more.tool_call_id:
        yield {"type": f"{_CALL}_output", "call_id": more.tool_call_id, "output": message.content}
        return
    if more is not None and more.parts:
        yield {"role": message.role, "content": [_input(part) for part in chat.written(more)["content"]]}
    elif message.content or more is None:
        yield {"role": message.role, "content": message.content}
    for call in more.tool_calls if more is not None else ():
        yield {"type": _CALL, "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _input(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    image = part["image_url"]
    return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}


def further(fields: dict[str, Any]) -> dict[str, Any]:
    """Further fields in the form of `/responses`. Raises ProviderError."""
    asked = common_form.take(fields)
    if asked.top >= 0:
        raise common_form.refusal("xAI's /responses", "log-probabilities", 'Use an endpoint with api = "chat".')
    if asked.functions:
        tools = [{"type": "function", **function} for function in asked.functions]
        fields["tools"] = [*tools, *fields.get("tools", [])]
    if asked.choice or asked.named:
        fields["tool_choice"] = {"type": "function", "name": asked.named} if asked.named else asked.choice
    if asked.parallel is not None:
        fields["parallel_tool_calls"] = asked.parallel
    if asked.format:
        fields["text"] = {"format": {"type": asked.format, **(asked.schema or {})}}
    return fields


def check(asked: Sequence[Message], fields: dict[str, Any]) -> None:
    """Raises ProviderError for what `/responses` has no form for."""
    common_form.check_images("xAI", asked, IMAGES, detail=True)
    further(dict(fields))


def chat_messages(asked: Sequence[Message]) -> list[dict[str, Any]]:
    """Raises ProviderError."""
    common_form.check_images("xAI", asked, IMAGES, detail=True)
    return wire.chat_messages(asked)


CHAT = Wire("/chat/completions", "messages", chat_response, wire.ChatFold, wire.CHAT_STREAMING, messages=chat_messages)
# Without `store` every request would be kept there for thirty days.
RESPONSES = Wire(
    "/responses",
    "input",
    response,
    ResponseFold,
    {"stream": True},
    always={"store": False},
    takes_stop=False,
    messages=messages,
    further=further,
)
