"""Chat completions: a request as every kind of provider is asked it, and an answer as OpenAI's API writes it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from services import further_fields
from services.chat_requests import messages, sampling
from services.chat_requests.faults import WrongRowError
from services.evaluator.calls.refusals import RefusedCallError, named, wrong
from services.evaluator.datasets import rows
from services.evaluator.items.task import Item, Response
from services.evaluator.providers.protocol import common_form
from services.words import chat
from services.words.endpoints import LABELS
from touchstone.v1.content_pb2 import ToolCall
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import Sampling

Json = dict[str, Any]

UNSENT = frozenset(
    (
        *("user", "metadata", "store", "service_tier", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_retention", "stream", "stream_options", "model", "messages"),
    )
)
"""Fields that do not change an answer, or that are sent in another way."""
_REASONING = "reasoning"
_AS_THEY_ARE = "http"
"""The kind whose requests take further fields as they are; so may kinds of plug-ins."""
_USUAL: Mapping[str, Any] = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "parallel_tool_calls": True,
    "verbosity": "medium",
}
_FURTHER: Mapping[str, frozenset[str]] = {"grok": frozenset(("reasoning_effort",))}
_FINISHES = {
    **dict.fromkeys(("", "stop", "end_turn", "stop_sequence", "STOP", "completed", "eos"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "SAFETY", "RECITATION", "PROHIBITED_CONTENT"), "content_filter"),
    **dict.fromkeys(("tool_calls", "tool_use", "function_call"), "tool_calls"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a row of one message list, with its own parameters."""

    item: Item
    sampling: Sampling


def read(body: Mapping[str, Any], kind: str) -> Asked:
    """Raises RefusedCallError for what an endpoint of this kind cannot be asked."""
    if (count := body.get("n")) not in (None, 1):
        raise wrong(f"n must be 1 at an endpoint of kind {kind}; it is {count}. Send the request again instead.", "n")
    own_form = kind in LABELS and kind != _AS_THEY_ARE
    fields = {
        name: value
        for name, value in body.items()
        if name not in UNSENT and value is not None and not (own_form and _says_nothing(name, value))
    }
    for name in fields:
        if not sampling.is_field(name):
            raise wrong(f"{name} cannot be sent to an endpoint of kind {kind}. Leave it out.", name)
    row = DatasetRow()
    try:
        messages.converse(row, _without_reasoning(body.get("messages")))
    except WrongRowError as error:
        raise wrong(error.reason, "messages") from None
    try:
        sampling.ask_for(row, fields)
    except WrongRowError as error:
        raise wrong(error.reason, error.field or named(error.reason, fields)) from None
    extra = further_fields.fields(row.sampling)
    if own_form:
        common_form.take(extra)
        for name in extra.keys() - _FURTHER.get(kind, frozenset()):
            raise wrong(f"{name} cannot be sent to an endpoint of kind {kind}. Leave it out.", name)
    return Asked(rows.item(0, row, (), None), row.sampling)


def _says_nothing(name: str, value: Any) -> bool:
    """Whether the field asks for what is done without it, as programs write that send every field."""
    return name in _USUAL and value == _USUAL[name] and isinstance(value, bool) == isinstance(_USUAL[name], bool)


def _without_reasoning(asked: Any) -> Any:
    """Messages as they are sent: clients repeat answers as they got them, with the reasoning that `whole` adds."""
    if not isinstance(asked, list):
        return asked
    return [
        {name: value for name, value in message.items() if name != _REASONING}
        if isinstance(message, dict) and message.get("role") == "assistant"
        else message
        for message in asked
    ]


def with_ids(response: Response, call_id: str) -> Response:
    """The answer with an id for each of its tool calls: clients send the ids back, and some providers give none."""
    if all(call.id for call in response.tool_calls):
        return response
    calls = [
        ToolCall(id=call.id or f"call_{call_id}_{place}", name=call.name, arguments=call.arguments)
        for place, call in enumerate(response.tool_calls)
    ]
    return replace(response, tool_calls=tuple(calls))


def finish(response: Response) -> str:
    """Why the answer ended, in OpenAI's words."""
    if response.tool_calls:
        return "tool_calls"
    if response.refused:
        return "content_filter"
    return _FINISHES.get(response.finish_reason, "stop")


def usage(response: Response) -> Json | None:
    """None where the provider does not give every count: OpenAI's clients reject a missing one."""
    read_, written = response.input_tokens, response.output_tokens
    if read_ is None or written is None:
        return None
    return {
        "prompt_tokens": read_,
        "completion_tokens": written,
        "total_tokens": read_ + written,
        "completion_tokens_details": {"reasoning_tokens": response.reasoning_tokens},
    }


@dataclass(frozen=True, slots=True)
class Completion:
    """How one call's answer is written. `created` is in seconds since 1970. `with_usage`: a streamed one ends with what
    it took."""

    call_id: str
    model: str
    created: int
    with_usage: bool = False

    def whole(self, response: Response) -> Json:
        message: Json = {"role": "assistant", "content": response.text, "refusal": None}
        if response.refused and response.text:
            message |= {"content": None, "refusal": response.text}
        if response.reasoning:
            message[_REASONING] = response.reasoning
        if response.tool_calls:
            message |= {"content": response.text or None, "tool_calls": chat.calls(response.tool_calls)}
        logprobs = {"content": chat.logprobs(response.logprobs), "refusal": None} if response.logprobs else None
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish(response)}
        return self._object("chat.completion") | {"choices": [choice], "usage": usage(response)}

    def opening(self) -> Iterator[bytes]:
        """The first events of a streamed answer."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})

    def delta(self, text: str, _number: int) -> bytes:
        return self._chunk({"content": text})

    def rest(self, response: Response, sent: str, _number: int) -> Iterator[bytes]:
        """The end of a streamed answer, of which the text `sent` has gone out."""
        if response.text.startswith(sent) and (more := response.text[len(sent) :]):
            yield self._chunk({"content": more})
        if response.tool_calls:
            calls = [{"index": place} | call for place, call in enumerate(chat.calls(response.tool_calls))]
            yield self._chunk({"tool_calls": calls})
        yield self._chunk({}, finish(response))
        if self.with_usage:
            yield event(self._object("chat.completion.chunk") | {"choices": [], "usage": usage(response)})
        yield DONE

    def failure(self, refusal: RefusedCallError) -> bytes:
        """The last event of an answer that breaks off."""
        return event(refusal.body)

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event(self._object("chat.completion.chunk") | {"choices": [choice]})

    def _object(self, kind: str) -> Json:
        return {"id": f"chatcmpl-{self.call_id}", "object": kind, "created": self.created, "model": self.model}


DONE = b"data: [DONE]\n\n"


def event(data: Mapping[str, Any], kind: str = "") -> bytes:
    """One server-sent event."""
    name = f"event: {kind}\n" if kind else ""
    return f"{name}data: ".encode() + encode(data) + b"\n\n"


def encode(data: Mapping[str, Any]) -> bytes:
    """JSON that every client reads, whatever a provider sent: null for NaN and infinity."""
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(data), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def delta_text(heard: Any) -> str:
    """The text of the answer that an event of any provider's stream brings; empty where it brings none."""
    if not isinstance(heard, dict):
        return ""
    match heard:
        case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:  # Anthropic
            return text
        case {"type": "response.output_text.delta", "delta": str(text)}:  # xAI
            return text
        case {"candidates": [{"content": {"parts": list(parts)}}, *_]}:  # Gemini
            texts = [
                part["text"]
                for part in parts
                if isinstance(part, dict) and not part.get("thought") and isinstance(part.get("text"), str)
            ]
            return "".join(texts)
        case {"message": {"content": str(text)}}:  # Ollama
            return text
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return text
        case _:
            return ""
