"""Messages that hold more than a text, and tool calls, as OpenAI's API writes them. Pure."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

from services.errors import sendable
from touchstone.v1.content_pb2 import ContentPart, Image, TokenLogprob, ToolCall
from touchstone.v1.dataset_pb2 import ChatMessage

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MOST_IMAGE_BYTES = 1_500_000
MOST_IMAGES = 20
"""In one row."""

LEAST_LOGPROB = -9999.0
"""OpenAI's, of a token that is as good as impossible."""

_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def image_type(data: bytes) -> str:
    """The media type that a file's first bytes tell; empty for any type that is not in IMAGE_TYPES."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), "")


def data_uri(image: Image) -> str:
    """Of an image with its bytes."""
    return f"data:{image.media_type};base64,{b64encode(image.data).decode()}"


def is_plain(message: ChatMessage) -> bool:
    """Whether role and text are all of it."""
    return not (message.parts or message.tool_calls or message.tool_call_id or message.name)


def written(message: ChatMessage, *, pictures: bool = True) -> dict[str, Any]:
    """The message in OpenAI's form; without `pictures`, and where its bytes are left out, an image is what names it."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.parts:
        body["content"] = [_part(part, pictures) for part in message.parts]
    if message.tool_calls:
        body |= {"content": message.content or None, "tool_calls": calls(message.tool_calls)}
    if message.tool_call_id:
        body["tool_call_id"] = message.tool_call_id
    if message.name:
        body["name"] = message.name
    return body


def _part(part: ContentPart, pictures: bool) -> dict[str, Any]:
    if part.WhichOneof("part") == "text":
        return {"type": "text", "text": part.text}
    image = part.image
    detail = {"detail": image.detail} if image.detail else {}
    if pictures and image.data:
        return {"type": "image_url", "image_url": {"url": data_uri(image), **detail}}
    return {
        "type": "image",
        "media_type": image.media_type,
        "bytes": image.size,
        "sha256": image.digest,
    } | detail


def calls(tool_calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """Tool calls in OpenAI's form."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in tool_calls
    ]


def read_calls(text: str) -> Iterator[ToolCall]:
    """What `calls` gave, as JSON."""
    for call in json.loads(text):
        yield ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])


def logprobs(tokens: Iterable[TokenLogprob]) -> list[dict[str, Any]]:
    """Log-probabilities in OpenAI's form, without the bytes of tokens. NaN and infinity, which JSON does not have,
    become the lowest."""
    return [
        {
            "token": one.token,
            "logprob": _finite(one.logprob),
            "top_logprobs": [{"token": other.token, "logprob": _finite(other.logprob)} for other in one.top],
        }
        for one in tokens
    ]


def _finite(value: float) -> float:
    return value if isfinite(value) else LEAST_LOGPROB


def read_logprobs(text: str) -> Iterator[TokenLogprob]:
    """What `logprobs` gave, as JSON."""
    for one in json.loads(text):
        yield TokenLogprob(
            token=one["token"],
            logprob=one["logprob"],
            top=[TokenLogprob.Alternative(**other) for other in one["top_logprobs"]],
        )


def call_text(call: ToolCall) -> str:
    """A call on one line, as lists and comparisons show it."""
    return f"{call.name}({call.arguments})"


def calls_text(tool_calls: Iterable[ToolCall]) -> str:
    return "\n".join(map(call_text, tool_calls))


def answer_text(response: str, tool_calls: Iterable[ToolCall]) -> str:
    """An answer as one text: what the model wrote, and its calls a line each."""
    calls = calls_text(tool_calls)
    return "\n".join(filter(None, (response, calls))) if calls else response


def marks(message: ChatMessage) -> Iterator[str]:
    """What a message holds in addition to role and text, as texts that distinguish it from any other."""
    for part in message.parts:
        yield from ("text", part.text) if part.WhichOneof("part") == "text" else ("image", part.image.digest)
        yield part.image.detail
    for call in message.tool_calls:
        yield from ("call", call.id, call.name, call.arguments)
    yield from ("result of", message.tool_call_id, message.name)


def text(message: ChatMessage) -> str:
    """All of the message as a text to read and to search: an image by type and size, a call by name and arguments."""
    pieces = (
        [part.text if part.WhichOneof("part") == "text" else _image_text(part.image) for part in message.parts]
        if message.parts
        else [message.content]
        if message.content
        else []
    )
    return "\n".join([*pieces, *map(call_text, message.tool_calls)])


def _image_text(image: Image) -> str:
    return f"[{image.media_type}, {image.size:,} bytes]"


def offered(request: Any) -> list[dict[str, Any]]:
    """The functions that a request offers, each with "name", "description" and "parameters", from what it carried in
    the form of any provider; entries of unknown form are left out."""
    tools = request.get("tools") if isinstance(request, dict) else None
    found: list[dict[str, Any]] = []
    for entry in tools if isinstance(tools, list) else ():
        if not isinstance(entry, dict):
            continue
        several = entry.get("functionDeclarations")
        inner = entry.get("function")
        for one in several if isinstance(several, list) else [inner if isinstance(inner, dict) else entry]:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                schema = next(
                    (one[key] for key in ("parameters", "parametersJsonSchema", "input_schema") if key in one), None
                )
                found.append({"name": one["name"], "description": one.get("description"), "parameters": schema})
    return found


def by_value(call: ToolCall) -> ToolCall:
    """The call with arguments that are the same text for the same JSON value: names in order, 1.0 as 1. Arguments that
    are not JSON stay as they are."""
    try:
        value = json.loads(call.arguments, parse_float=_number)
        written = json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (ValueError, RecursionError):
        written = call.arguments
    return ToolCall(id=call.id, name=call.name, arguments=sendable(written))


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


def pretty(arguments: str) -> str:
    """Arguments with line breaks and indents, their names in order; anything but JSON as it is."""
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments
