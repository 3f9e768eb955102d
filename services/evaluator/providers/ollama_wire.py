"""The JSON of Ollama's own API (v0.33): models, answers, and how a stream adds up. Zero values are left out there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from services.evaluator.items.task import Response
from services.evaluator.providers.protocol import model_size
from services.evaluator.providers.protocol.events import Texts, members
from services.evaluator.providers.protocol.usage import Told, count, part, string
from services.words.sampling import PARAMETERS
from touchstone.v1 import endpoint_pb2

OPTIONS = {name: one.rest for name, one in PARAMETERS.items() if "ollama" in one.kinds}
"""REST uses Ollama's names."""
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
        parameters_b=model_size.parameters_b(string(details, "parameter_size")),
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
    """Notes the capability "thinking" from `/api/tags` or `/api/show`."""
    abilities = told.get("capabilities")
    if isinstance(abilities, list) and "thinking" in abilities:
        model.capabilities.reasoning = True


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


def response(body: dict[str, Any]) -> Response | None:
    """The answer, or None when the body is incomplete. Raises MalformedError."""
    message = body.get("message")
    if not isinstance(message, dict) or not body.get("done", True):
        return None
    told = Told()
    read = told.tokens(body, "prompt_eval_count")
    response = Response(
        text=part(message, "content", str) or "",
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

    def add(self, event: Any) -> bool:
        if isinstance(event, dict) and event.get("error"):
            self._error = self._error or members(event, ("error",))
            return False
        message = part(event, "message", dict) or {}
        added = self._texts.add("content", part(message, "content", str) or "")
        added += self._texts.add("thinking", string(message, "thinking"))
        self.size += added
        self._whole |= members(event, _BESIDE_TEXTS)
        return added > 0

    def whole(self) -> Any:
        if self._error is not None or not self._whole.get("done"):
            return self._error
        return self._whole | {"message": {key: self._texts.get(key) for key in ("content", "thinking")}}


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
