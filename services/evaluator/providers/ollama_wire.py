"""The JSON of Ollama's own API (v0.33): models, answers, and how a stream adds up. Zero values are left out there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from services.evaluator.providers import model_size
from services.evaluator.providers.usage import Told, count
from services.evaluator.tasks.base import Response
from touchstone.v1 import endpoint_pb2

OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "num_predict",
    "context_length": "num_ctx",
    "seed": "seed",
    "repeat_penalty": "repeat_penalty",
}
_BESIDE_WEIGHTS = 1.2
"""Memory of a running model over its file: weights, and about a fifth for a context of the default size and buffers."""


def model(entry: dict[str, Any]) -> endpoint_pb2.Model:
    """A model of `/api/tags`. Its memory is estimated from its file."""
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    size = count(entry, "size")
    found = endpoint_pb2.Model(
        model=text(entry, "name") or text(entry, "model"),
        digest=text(entry, "digest"),
        parameters_b=model_size.parameters_b(text(details, "parameter_size")),
        quantization=text(details, "quantization_level"),
        disk_bytes=size,
        context_length=count(details, "context_length", 2**31 - 1),
    )
    if size:
        found.memory_bytes = int(size * _BESIDE_WEIGHTS)
        found.description = f"Needs about {_gb(found.memory_bytes)} of memory (estimated from its file)."
    thinks(found, entry)
    return found


def thinks(model: endpoint_pb2.Model, told: dict[str, Any]) -> None:
    """Notes the capability "thinking", which `/api/tags` and `/api/show` tell."""
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
    """Whether an entry is the model of this name; the tag "latest" goes without saying."""
    wanted = {name, f"{name}:latest"}
    return text(entry, "name") in wanted or text(entry, "model") in wanted


def response(body: dict[str, Any]) -> Response | None:
    """What was answered, or None when the body is no whole answer."""
    message = body.get("message")
    if not isinstance(message, dict) or not body.get("done", True):
        return None
    told = Told()
    read = told.tokens(body, "prompt_eval_count")
    response = Response(
        text=text(message, "content"),
        reasoning=text(message, "thinking"),
        finish_reason=text(body, "done_reason"),
        input_tokens=read,
        # A count of 0 is left out.
        output_tokens=told.tokens(body, "eval_count", absent=None if read is None else 0),
        served_model=text(body, "model"),
    )
    return replace(response, doubtful=told.doubtful)


def joined(lines: Iterable[Any]) -> dict[str, Any] | None:
    """A streamed answer as the whole one that it would have been; an error as its body, None when the stream broke
    off.
    """
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {}
    for line in lines:
        if not isinstance(line, dict):
            continue
        if line.get("error"):
            return line
        piece = line.get("message")
        if isinstance(piece, dict):
            for key in ("content", "thinking"):
                if text(piece, key):
                    message[key] = text(message, key) + text(piece, key)
        whole |= line
    return whole | {"message": message} if whole.get("done") else None


def has_text(line: Any) -> bool:
    """Whether a line carries a token."""
    message = line.get("message") if isinstance(line, dict) else None
    return isinstance(message, dict) and bool(message.get("content") or message.get("thinking"))


def text(values: dict[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
