"""The JSON of Anthropic's messages API: what is sent, what comes back, and how a stream adds up.

The version is 2023-06-01 on purpose: 2026-10-21 takes `temperature`, `top_p` and `top_k` from every model, also from
those that can still be asked greedily. Models from Claude 4.7 on refuse them under either version.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.evaluator.items.task import Message, Response
from services.evaluator.providers.protocol import common_form
from services.evaluator.providers.protocol.events import Texts, kept, members
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.usage import Told, count, inner, part, parts, string
from touchstone.v1 import endpoint_pb2
from touchstone.v1.content_pb2 import ContentPart, ToolCall

VERSION = "2023-06-01"
_API = "Anthropic's API"
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_BESIDE_TEXTS = ("model", "stop_reason", "usage")
_MOST_BLOCKS = 10_000
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
OPTIONS = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_tokens": "max_tokens"}
DEFAULT_MAX_TOKENS = 8192
"""The API requires a limit. This one leaves room for a long chain of thought, and a call without streaming still
finishes in minutes."""
STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""The status for an error's type; within a stream only the type is given."""
WRITTEN = ("model", "messages", "system", "stream")
"""What `extra` may not set, in addition to the parameters that the job sets."""


def prompt(messages: Sequence[Message]) -> dict[str, Any]:
    """`messages` and, when there is one, `system`."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    # The API has two roles in a conversation; a tool's message is sent as the user's.
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if message.more is None:
            turns.append({"role": role, "content": message.content})
            continue
        blocks = _blocks(message)
        # The results of several calls belong into one message.
        if message.more.tool_call_id and turns and turns[-1]["role"] == role and _has_result(turns[-1]):
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _has_result(turn: dict[str, Any]) -> bool:
    return isinstance(turn["content"], list) and turn["content"][-1]["type"] == "tool_result"


def _blocks(message: Message) -> list[dict[str, Any]]:
    """The content of a message that holds more than a text. Blank texts are refused there."""
    more = message.more
    assert more is not None
    if more.tool_call_id:
        return [{"type": "tool_result", "tool_use_id": more.tool_call_id, "content": message.content}]
    blocks: list[dict[str, Any]] = []
    for piece in more.parts or [ContentPart(text=message.content)]:
        if piece.WhichOneof("part") == "image":
            data = b64encode(piece.image.data).decode()
            source = {"type": "base64", "media_type": piece.image.media_type, "data": data}
            blocks.append({"type": "image", "source": source})
        elif piece.text.strip():
            blocks.append({"type": "text", "text": piece.text})
    blocks += (
        {"type": "tool_use", "id": call.id, "name": call.name, "input": common_form.arguments(call)}
        for call in more.tool_calls
    )
    return blocks


def further(fields: dict[str, Any]) -> dict[str, Any]:
    """Further fields in the API's form. Raises ProviderError."""
    asked = common_form.take(fields)
    if asked.top >= 0:
        raise common_form.refusal(_API, "log-probabilities")
    if asked.functions:
        fields["tools"] = [*map(_tool, asked.functions), *fields.get("tools", [])]
    if asked.choice or asked.named or asked.parallel is False:
        choice: dict[str, Any] = {"type": "tool" if asked.named else _CHOICES[asked.choice or "auto"]}
        if asked.named:
            choice["name"] = asked.named
        if asked.parallel is False and choice["type"] != "none":
            choice |= {"disable_parallel_tool_use": True}
        fields["tool_choice"] = choice
    if asked.format == "json_object":
        raise common_form.refusal(_API, "response_format json_object", "Use json_schema.")
    if asked.format:
        schema = (asked.schema or {}).get("schema")
        own = fields.get("output_config")
        form = {"format": {"type": "json_schema", "schema": schema}}
        fields["output_config"] = (own if isinstance(own, dict) else {}) | form
    return fields


def check(messages: Sequence[Message], fields: dict[str, Any]) -> None:
    """Raises ProviderError for what the API has no form for, or refuses."""
    common_form.check_images(_API, messages)
    written = further(dict(fields))
    if not written.get("tools") and any(message.more and message.more.tool_calls for message in messages):
        raise ProviderError(
            f"{_API} takes messages with tool calls only together with tools. Add them.", fatal=True, status=400
        )


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    tool = {key: function[key] for key in ("name", "description") if function.get(key) is not None}
    tool["input_schema"] = function.get("parameters") or {"type": "object", "properties": {}}
    return tool | ({"strict": function["strict"]} if function.get("strict") is not None else {})


def stop_sequences(stop: Iterable[str]) -> list[str]:
    """The stop sequences that the API accepts: it refuses blank ones. Reading the answer cuts where they would have."""
    return [text for text in stop if text.strip()]


def response(body: dict[str, Any]) -> Response | None:
    """The answer, or None when the body is not a message. Raises MalformedError."""
    blocks = body.get("content")
    if not isinstance(blocks, list):
        return None
    blocks = parts(body, "content")
    stop = string(body, "stop_reason")
    if not blocks and not stop:
        return None
    usage = body.get("usage")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    told = Told()
    read = [told.tokens(usage, "input_tokens"), *(told.tokens(usage, key, absent=0) for key in _CACHED)]
    calls = tuple(
        ToolCall(
            id=string(block, "id"),
            name=string(block, "name"),
            arguments=string(block, "partial_json") or common_form.written(block.get("input")),
        )
        for block in blocks
        if block.get("type") == "tool_use"
    )
    response = Response(
        tool_calls=calls,
        text="".join(part(block, "text", str) or "" for block in blocks if part(block, "type", str) == "text"),
        reasoning="".join(string(block, "thinking") for block in blocks if block.get("type") == "thinking"),
        finish_reason=stop,
        # Tokens read from a cache or written to it are counted apart.
        input_tokens=None if None in read else sum(filter(None, read)),
        output_tokens=told.tokens(usage, "output_tokens"),
        reasoning_tokens=told.tokens(details, "thinking_tokens") or 0,
        served_model=string(body, "model"),
        refused=stop == "refusal",
    )
    return replace(response, doubtful=told.doubtful)


class MessageFold:
    """A streamed message. Blocks are kept by their numbers."""

    def __init__(self) -> None:
        self.size = 0
        self._message: dict[str, Any] = {}
        self._kinds: dict[int, str] = {}
        self._called: dict[int, dict[str, str]] = {}
        self._texts = Texts()
        self._end: dict[str, Any] | None = None
        self._ended = False

    def add(self, event: Any) -> bool:
        if self._ended:
            return False
        match part(event, "type", str):
            case "error":
                self._ended, self._end = True, members(event, ("error",))
            case "message_start":
                self._message = members(inner(event, "message"), _BESIDE_TEXTS)
            case "content_block_start":
                block = part(event, "content_block", dict) or {}
                return self._add(count(event, "index", _MOST_BLOCKS), block, string(block, "type"))
            case "content_block_delta":
                return self._add(count(event, "index", _MOST_BLOCKS), part(event, "delta", dict) or {})
            case "message_delta":
                self._message |= members(inner(event, "delta"), _BESIDE_TEXTS)
                self._message["usage"] = _merged(self._message.get("usage"), kept(event.get("usage")))
            case "message_stop":
                self._ended, self._end = True, self._message | {"content": list(map(self._block, sorted(self._kinds)))}
        return False

    def whole(self) -> Any:
        return self._end

    def _add(self, index: int, piece: dict[str, Any], kind: str = "") -> bool:
        self._kinds[index] = kind or self._kinds.get(index) or "text"
        if kind == "tool_use":
            self._called[index] = {key: string(piece, key) for key in ("id", "name")}
            self.size += sum(map(len, self._called[index].values()))
        added = self._texts.add(f"{index} text", part(piece, "text", str) or "")
        added += self._texts.add(f"{index} partial_json", string(piece, "partial_json"))
        added += self._texts.add(f"{index} thinking", string(piece, "thinking"))
        self.size += added
        return added > 0

    def _block(self, index: int) -> dict[str, Any]:
        texts = {key: self._texts.get(f"{index} {key}") for key in ("text", "thinking", "partial_json")}
        return {"type": self._kinds[index], **texts, **self._called.get(index, {})}


def model(entry: Any) -> endpoint_pb2.Model | None:
    """A model of `/models`."""
    if not isinstance(entry, dict) or not string(entry, "id"):
        return None
    return endpoint_pb2.Model(
        model=string(entry, "id"),
        context_length=count(entry, "max_input_tokens", 2**31 - 1),
        description=string(entry, "display_name"),
    )


def _merged(first: Any, later: Any) -> dict[str, Any]:
    """Counts of a stream are running totals; ignore a later null."""
    whole = dict(first) if isinstance(first, dict) else {}
    if isinstance(later, dict):
        whole |= {key: value for key, value in later.items() if value is not None}
    return whole
