"""The JSON of xAI's API where it is not OpenAI's chat completions: models with prices, usage, and `/responses`.

Source: docs.x.ai, "Models", "Responses", "Cost Tracking" (2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers import failures, openai_wire
from services.evaluator.providers.openai_wire import Wire, count, inner, text
from services.evaluator.providers.transport import Reply
from services.evaluator.providers.usage import told
from services.evaluator.tasks.base import Response
from touchstone.v1 import endpoint_pb2

_TICKS_PER_USD = 1e10
# The listing counts US cents for a hundred million tokens.
_PRICE_UNIT = 1e4
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
    found = endpoint_pb2.Model(model=name, context_length=min(count(entry, "context_length"), 2**31 - 1))
    prompt, completion = entry.get("prompt_text_token_price"), entry.get("completion_text_token_price")
    if isinstance(prompt, int | float) and isinstance(completion, int | float):
        found.input_price, found.output_price = prompt / _PRICE_UNIT, completion / _PRICE_UNIT
    default = inner(entry, "capabilities").get("default_reasoning_effort")
    if isinstance(default, str):
        found.capabilities.reasoning = default != "none"
    yield found
    for alias in entry.get("aliases") or ():
        if isinstance(alias, str) and alias:
            other = endpoint_pb2.Model(description=f"Now {name}.")
            other.MergeFrom(found)
            other.model = alias
            yield other


def efforts(entry: dict[str, Any]) -> tuple[str, ...] | None:
    """The values of reasoning_effort that a model takes, empty when it takes none; None when the listing is silent."""
    capabilities = entry.get("capabilities")
    if not isinstance(capabilities, dict):
        return None
    taken = capabilities.get("reasoning_effort")
    return tuple(value for value in taken if isinstance(value, str)) if isinstance(taken, list) else ()


def output_tokens(usage: Any, generated: str, read: str) -> int | None:
    """With the reasoning tokens, which the chat API's own count leaves out: its total has them."""
    alone = told(usage, generated)
    return None if alone is None else max(alone, count(usage, "total_tokens") - count(usage, read))


def billed_usd(usage: Any) -> float | None:
    """What the provider says that the call cost."""
    told = isinstance(usage, dict) and "cost_in_usd_ticks" in usage
    return count(usage, "cost_in_usd_ticks") / _TICKS_PER_USD if told else None


def chat_response(endpoint: Endpoint, reply: Reply) -> Response:
    """An answer of `/chat/completions`."""
    usage = inner(reply.body, "usage")
    return replace(
        openai_wire.response(endpoint, reply),
        output_tokens=output_tokens(usage, "completion_tokens", "prompt_tokens"),
        cost_usd=billed_usd(usage),
    )


def has_text(event: Any) -> bool:
    """Whether an event of a stream brings a token, of reasoning or of the answer."""
    return isinstance(event, dict) and event.get("type") in _DELTAS and bool(event.get("delta"))


def joined(events: list[Any]) -> Any:
    """The whole answer, which the last event carries; an error as its body, None when the stream broke off."""
    for event in reversed(events):
        if not isinstance(event, dict):
            continue
        if event.get("type") in _ENDS:
            return event.get("response")
        if event.get("type") == "error" or event.get("error"):
            return {"error": event.get("error") or {"message": event.get("message"), "code": event.get("code")}}
    return None


def response(endpoint: Endpoint, reply: Reply) -> Response:
    """An answer of `/responses`, but for the parameters. Raises ProviderError for what is no whole answer."""
    body = reply.body
    if not isinstance(body, dict):
        raise failures.cut_short(endpoint)
    if body.get("error") or body.get("status") == "failed":
        raise failures.failed_midway(endpoint, reply.error_text)
    output = body.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    parts = [part for item in items if item.get("type") == "message" for part in _parts(item, "content")]
    finish = "stop"
    if body.get("status") == "incomplete":
        reason = text(inner(body, "incomplete_details").get("reason"))
        finish = "length" if "token" in reason or not reason else reason
    elif not parts:
        raise failures.lacking(endpoint, "a message")
    answer = "".join(text(part.get("text")) for part in parts)
    refusal = "".join(text(part.get("refusal")) for part in parts)
    usage = body.get("usage")
    return Response(
        text=answer or refusal,
        reasoning="\n".join(
            text(part.get("text"))
            for item in items
            if item.get("type") == "reasoning"
            for part in (*_parts(item, "summary"), *_parts(item, "content"))
        ),
        finish_reason=finish,
        input_tokens=told(usage, "input_tokens"),
        output_tokens=output_tokens(usage, "output_tokens", "input_tokens"),
        latency_ms=reply.latency_ms,
        served_model=text(body.get("model")),
        refused=finish == "content_filter" or bool(refusal),
        ttft_ms=reply.ttft_ms,
        reasoning_tokens=count(inner(usage, "output_tokens_details"), "reasoning_tokens"),
        cost_usd=billed_usd(usage),
    )


def _parts(item: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = item.get(key)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


CHAT = Wire(
    "/chat/completions", "messages", chat_response, openai_wire.has_text, openai_wire.joined, openai_wire.CHAT_STREAMING
)
# Without `store` every request would be kept there for thirty days.
RESPONSES = Wire(
    "/responses", "input", response, has_text, joined, {"stream": True}, always={"store": False}, takes_stop=False
)
