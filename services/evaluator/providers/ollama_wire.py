"""The JSON of Ollama's own API (v0.33): models, answers, and how a stream adds up. Zero values are left out there."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services import numbers
from services.evaluator.items.task import Message, Response
from services.evaluator.providers.protocol import common_form
from services.evaluator.providers.protocol.events import Texts, kept, members
from services.evaluator.providers.protocol.usage import Told, count, entries, part, parts, string
from services.words.sampling import PARAMETERS
from touchstone.v1 import endpoint_pb2
from touchstone.v1.dataset_pb2 import ChatMessage

OPTIONS = {name: one.rest for name, one in PARAMETERS.items() if "ollama" in one.kinds}
"""REST uses Ollama's names."""
IMAGES = ("image/png", "image/jpeg", "image/webp")
_API = "Ollama"
_TOKEN_BYTES = 200
"""What a token takes in memory with its log-probability."""
_BESIDE_TEXTS = ("model", "done", "done_reason", "prompt_eval_count", "eval_count")
_BESIDE_WEIGHTS = 1.2
"""Memory of a running model over its file: weights, and about a fifth for a context of the default size and buffers."""


def model(entry: dict[str, Any]) -> endpoint_pb2.Model:
    """A model of `/api/tags`. Its memory is estimated from its file."""
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    size = count(entry, "size")
    found = endpoint_pb2.Model(
        model=string(entry, "name") or string(entry, "model"),
        digest=string(entry, "digest"),
        parameters_b=numbers.parameters_b(string(details, "parameter_size")),
        quantization=string(details, "quantization_level"),
        disk_bytes=size,
        context_length=count(details, "context_length", 2**31 - 1),
    )
    if size:
        found.memory_bytes = int(size * _BESIDE_WEIGHTS)
        found.description = f"Needs about {_gb(found.memory_bytes)} of memory (estimated from its file)."
    thinks(found, entry)
    return found


def thinks(model: endpoint_pb2.Model, told: dict[str, Any]) -> None:
    """Notes the capabilities from `/api/tags` or `/api/show`."""
    abilities = told.get("capabilities")
    if not isinstance(abilities, list):
        return
    if "thinking" in abilities:
        model.capabilities.reasoning = True
    model.capabilities.tools = "tools" in abilities
    model.capabilities.images = "vision" in abilities


def loaded(model: endpoint_pb2.Model, entry: dict[str, Any]) -> None:
    """Takes the memory of a loaded model from its entry in `/api/ps`: `size` is all of it, `size_vram` the GPU's."""
    size = max(count(entry, "size"), count(entry, "size_vram"))
    if size:
        model.memory_bytes = size
        model.description = f"Needs {_gb(size)} of memory (as loaded now)."


def is_model(entry: dict[str, Any], name: str) -> bool:
    """Whether an entry is the model of this name; the tag "latest" may be left out."""
    wanted = {name, f"{name}:latest"}
    return string(entry, "name") in wanted or string(entry, "model") in wanted


def messages(asked: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of a request. Images stand apart from a message's text, in their order."""
    written: list[dict[str, Any]] = []
    for message, function in common_form.with_functions(asked):
        body: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.more is not None:
            body |= _beside(message.more, function)
        written.append(body)
    return written


def _beside(more: ChatMessage, function: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if images := [b64encode(part.image.data).decode() for part in more.parts if part.WhichOneof("part") == "image"]:
        found["images"] = images
    if more.tool_calls:
        found["tool_calls"] = [
            {"function": {"name": call.name, "arguments": common_form.arguments(call)}} for call in more.tool_calls
        ]
    if more.tool_call_id:
        found["tool_name"] = function
    return found


def further(fields: dict[str, Any]) -> dict[str, Any]:
    """Further fields in Ollama's form. Raises ProviderError."""
    asked = common_form.take(fields)
    if asked.named or asked.choice not in ("", "auto"):
        raise common_form.refusal(_API, "tool_choice but auto")
    if asked.parallel is False:
        raise common_form.refusal(_API, "parallel_tool_calls false")
    if asked.functions:
        tools = [{"type": "function", "function": function} for function in asked.functions]
        fields["tools"] = [*tools, *fields.get("tools", [])]
    if asked.format:
        schema = (asked.schema or {}).get("schema")
        fields["format"] = "json" if asked.format == "json_object" or schema is None else schema
    if asked.top >= 0:
        fields |= {"logprobs": True} | ({"top_logprobs": asked.top} if asked.top else {})
    return fields


def check(asked: Sequence[Message], fields: dict[str, Any]) -> None:
    """Raises ProviderError for what Ollama has no form for."""
    common_form.check_images(_API, asked, IMAGES)
    further(dict(fields))


def response(body: dict[str, Any]) -> Response | None:
    """The answer, or None when the body is incomplete. Raises MalformedError."""
    message = body.get("message")
    if not isinstance(message, dict) or not body.get("done", True):
        return None
    told = Told()
    read = told.tokens(body, "prompt_eval_count")
    response = Response(
        text=part(message, "content", str) or "",
        tool_calls=common_form.tool_calls(message),
        logprobs=common_form.token_logprobs(body, "logprobs") if body.get("logprobs") else (),
        reasoning=string(message, "thinking"),
        finish_reason=string(body, "done_reason"),
        input_tokens=read,
        # A count of 0 is left out.
        output_tokens=told.tokens(body, "eval_count", absent=None if read is None else 0),
        served_model=string(body, "model"),
    )
    return replace(response, doubtful=told.doubtful)


class ChatFold:
    """A streamed answer: the texts of all lines, the latest of everything else."""

    def __init__(self) -> None:
        self.size = 0
        self._texts = Texts()
        self._whole: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None
        self._calls: list[Any] = []
        self._logprobs: list[Any] = []

    def add(self, event: Any) -> bool:
        if isinstance(event, dict) and event.get("error"):
            self._error = self._error or members(event, ("error",))
            return False
        message = part(event, "message", dict) or {}
        added = self._texts.add("content", part(message, "content", str) or "")
        added += self._texts.add("thinking", string(message, "thinking"))
        if message.get("tool_calls"):
            # They come whole.
            calls = parts(message, "tool_calls")
            self._calls += calls
            added += len(json.dumps(calls))
        if event.get("logprobs"):
            told = entries(event, "logprobs")
            self._logprobs += map(kept, told)
            self.size += _TOKEN_BYTES * sum(1 + len(entries(one, "top_logprobs")) for one in told)
        self.size += added
        self._whole |= members(event, _BESIDE_TEXTS)
        return added > 0

    def whole(self) -> Any:
        if self._error is not None or not self._whole.get("done"):
            return self._error
        message: dict[str, Any] = {key: self._texts.get(key) for key in ("content", "thinking")}
        if self._calls:
            message["tool_calls"] = self._calls
        return self._whole | {"message": message} | ({"logprobs": self._logprobs} if self._logprobs else {})


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
