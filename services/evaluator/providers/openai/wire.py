"""The JSON of OpenAI's chat completions: what comes back, how a stream adds up, and how models are listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Message, Response
from services.evaluator.providers.protocol import capabilities, common_form, failures
from services.evaluator.providers.protocol.events import Fold, Texts, kept, members
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.providers.protocol.usage import (
    MalformedError,
    Told,
    count,
    entries,
    inner,
    part,
    parts,
    string,
)
from services.words import chat
from touchstone.v1 import endpoint_pb2

_MOST_LENGTH = 2**31 - 1
_MOST_NAME = 1000
_TOKEN_BYTES = 200
"""What a token takes in memory with its log-probability."""
_BROKEN_OFF = frozenset({"error", "abort"})
"""Finish reasons of a server that failed while writing: OpenRouter's, and the one of vLLM and SGLang."""


def response(endpoint: Endpoint, reply: Reply) -> Response:
    """Everything except the parameters; the cost only if it was given. Raises ProviderError for an incomplete
    answer."""
    body = reply.body
    if not isinstance(body, dict):
        raise failures.cut_short(endpoint)
    if body.get("error"):
        raise failures.failed_midway(endpoint, reply.error_text)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise failures.lacking(endpoint, "a choice")
    finish = text(choice.get("finish_reason"))
    if choice.get("error") or finish in _BROKEN_OFF:
        raise failures.failed_midway(endpoint, text(inner(choice, "error").get("message")))
    usage, told = body.get("usage"), Told()
    try:
        answer, calls = content(message, "content"), common_form.tool_calls(message)
    except MalformedError as error:
        raise failures.malformed(endpoint, error) from None
    refusal = message.get("refusal")
    response = Response(
        text=answer or text(refusal),
        tool_calls=calls,
        logprobs=common_form.token_logprobs(choice["logprobs"]) if choice.get("logprobs") else (),
        reasoning=_reasoning(message),
        finish_reason=finish,
        input_tokens=told.tokens(usage, "prompt_tokens"),
        output_tokens=told.tokens(usage, "completion_tokens"),
        latency_ms=reply.latency_ms,
        served_model=text(body.get("model")),
        refused=finish == "content_filter" or bool(refusal),
        ttft_ms=reply.ttft_ms,
        reasoning_tokens=told.tokens(inner(usage, "completion_tokens_details"), "reasoning_tokens") or 0,
        # OpenRouter's; other servers with this field put an object there.
        cost_usd=told.usd(usage, "cost"),
    )
    return replace(response, doubtful=told.doubtful)


class ChatFold:
    """A streamed answer of chat completions."""

    def __init__(self) -> None:
        self.size = 0
        self._texts = Texts()
        self._whole: dict[str, Any] = {}
        self._finish = ""
        self._error: dict[str, Any] | None = None
        self._calls = common_form.CallsFold()
        self._logprobs: list[Any] = []

    def add(self, event: Any) -> bool:
        if isinstance(event, dict) and event.get("error"):
            self._error = self._error or members(event, ("error", "code"))
            return False
        choice = (parts(event, "choices") or [{}])[0]
        if choice.get("logprobs"):
            told = entries(choice["logprobs"], "content")
            self._logprobs += map(kept, told)
            self.size += sum(_TOKEN_BYTES * (1 + len(entries(one, "top_logprobs"))) for one in told)
        delta = part(choice, "delta", dict) or {}
        texts = {"content": content(delta, "content"), "refusal": text(delta.get("refusal"))}
        texts["reasoning"] = _reasoning(delta)
        self.size += sum(self._texts.add(name, piece) for name, piece in texts.items())
        called = self._calls.add(delta)
        self.size += called
        self._finish = string(choice, "finish_reason")[:_MOST_NAME] or self._finish
        if model := string(event, "model"):
            self._whole["model"] = model[:_MOST_NAME]
        # From all chunks or from a last one without choices.
        if event.get("usage"):
            self._whole["usage"] = kept(event["usage"])
        return any(texts.values()) or called > 0

    def whole(self) -> Any:
        if self._error is not None or not self._finish:
            return self._error
        message = {name: self._texts.get(name) for name in ("content", "reasoning", "refusal")} | self._calls.whole()
        choice = {"message": message, "finish_reason": self._finish}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        return self._whole | {"choices": [choice]}


def chat_message(message: Message) -> dict[str, Any]:
    """A message of a request."""
    if message.more is None:
        return {"role": message.role, "content": message.content}
    return chat.written(message.more) | {"role": message.role}


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [chat_message(message) for message in messages]


def unchanged(fields: dict[str, Any]) -> dict[str, Any]:
    """Further fields are in the wire's own form already."""
    return fields


@dataclass(frozen=True, slots=True)
class Wire:
    """One of the request formats that share models, keys, errors and sampling.

    `prompt` is the field of the messages; `always` and `streaming` are fields of every call and of streamed ones.
    `messages` and `further` write messages and further fields, and raise ProviderError for what has no form.
    """

    path: str
    prompt: str
    response: Callable[[Endpoint, Reply], Response]
    fold: Callable[[], Fold]
    streaming: Mapping[str, Any]
    always: Mapping[str, Any] = field(default_factory=dict)
    takes_stop: bool = True
    messages: Callable[[Sequence[Message]], list[dict[str, Any]]] = chat_messages
    further: Callable[[dict[str, Any]], dict[str, Any]] = unchanged


CHAT_STREAMING = {"stream": True, "stream_options": {"include_usage": True}}
CHAT = Wire("/chat/completions", "messages", response, ChatFold, CHAT_STREAMING)


def model(entry: dict[str, Any]) -> endpoint_pb2.Model:
    """A model of `/models`. `max_model_len` is vLLM's and SGLang's, `meta` llama.cpp's; `context_length`, `pricing` (US
    dollars a token), `supported_parameters` and `architecture` are OpenRouter's.
    """
    meta, name = inner(entry, "meta"), string(entry, "id")
    lengths = [count(entry, key, _MOST_LENGTH) for key in ("max_model_len", "context_length")]
    lengths += [count(meta, key, _MOST_LENGTH) for key in ("n_ctx", "n_ctx_train")]
    found = endpoint_pb2.Model(
        model=name,
        parameters_b=capabilities.billions(count(meta, "n_params")) or numbers.parameters_b(name),
        disk_bytes=count(meta, "size"),
        context_length=next(filter(None, lengths), 0),
    )
    takes = entry.get("supported_parameters")
    if isinstance(takes, list) and takes:
        found.capabilities.CopyFrom(
            endpoint_pb2.Capabilities(
                sampling="temperature" in takes, stop="stop" in takes, seed="seed" in takes, tools="tools" in takes
            )
        )
    inputs = inner(entry, "architecture").get("input_modalities")
    if isinstance(inputs, list) and inputs:
        found.capabilities.images = "image" in inputs
    prices = [_price(inner(entry, "pricing").get(key)) for key in ("prompt", "completion")]
    if prices[0] is not None and prices[1] is not None:
        found.input_price, found.output_price = (round(price * 1e6, 6) for price in prices if price is not None)
    return found


def content(message: dict[str, Any], name: str) -> str:
    """A text of the answer itself: a text, or parts as some servers send them. Raises MalformedError for anything else
    but null."""
    if isinstance(message.get(name), list):
        return "".join(part(entry, "text", str) or "" for entry in parts(message, name))
    return part(message, name, str) or ""


def text(value: object) -> str:
    """A text that accompanies the answer, in the same forms; empty for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(
            piece["text"] for piece in value if isinstance(piece, dict) and isinstance(piece.get("text"), str)
        )
    return ""


def _reasoning(message: dict[str, Any]) -> str:
    """vLLM and OpenRouter call it `reasoning`; DeepSeek, older vLLM, llama.cpp and xAI `reasoning_content`."""
    return text(message.get("reasoning") or message.get("reasoning_content"))


def _price(value: object) -> float | None:
    """US dollars per token, as a number or a text."""
    try:
        price = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return numbers.real(price, 0.0, numbers.MOST_PRICE / 1e6)
