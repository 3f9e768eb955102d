"""A conversation as pages show it: turns with texts, pictures, and calls of tools. Whatever is stored can be shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from services import rpc
from services.errors import TouchstoneError
from services.gateway.backend import Backend
from services.gateway.reads.values import members
from services.words import chat
from touchstone.v1 import dataset_pb2, dataset_service_pb2, item_result_pb2
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall

SHORT = 160
MOST_TOKENS = 1000
"""Whose log-probabilities are shown."""


@dataclass(frozen=True, slots=True)
class Call:
    """`arguments` are indented where they are JSON."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a picture as a data URI with what it is in words; without its bytes the words alone."""

    text: str = ""
    picture: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message. `result_of` is the id of the call that it is the result of."""

    role: str
    pieces: tuple[Piece, ...]
    calls: tuple[Call, ...] = ()
    result_of: str = ""

    @property
    def text(self) -> str:
        """On a line in lists."""
        said = [piece.text or piece.about for piece in self.pieces]
        return " ".join([*said, *(f"{call.name}({call.arguments})" for call in self.calls)])

    @property
    def is_short(self) -> bool:
        """Whether the line says all of it."""
        return not self.calls and len(self.pieces) < 2 and len(self.text) < SHORT


def turns(messages: str, pictures: Mapping[str, str] | None = None) -> list[Turn]:
    """Of messages in OpenAI's form as JSON; none of a text that is empty or no such JSON. `pictures` are data URIs by
    SHA-256."""
    try:
        told = json.loads(messages) if messages else []
    except (ValueError, RecursionError):
        return []
    found = (message for message in told if isinstance(message, dict)) if isinstance(told, list) else ()
    return [_turn(message, pictures or {}) for message in found]


def of_row(row: dataset_pb2.DatasetRow) -> list[Turn]:
    """The messages of a dataset's row."""
    messages = [chat.written(message, pictures=False) for message in row.messages]
    return [_turn(message, pictures_of(row)) for message in messages]


def pictures_of(row: dataset_pb2.DatasetRow) -> dict[str, str]:
    """Those of the row whose bytes are there, as data URIs by SHA-256."""
    images = (part.image for message in row.messages for part in message.parts if part.WhichOneof("part") == "image")
    return {
        image.digest: chat.data_uri(image) for image in images if image.data and image.media_type in chat.IMAGE_TYPES
    }


async def pictures(
    backend: Backend, caller: rpc.Identity, dataset_id: str, result: item_result_pb2.ItemResult
) -> dict[str, str]:
    """Pictures that the item's messages name, from its row in the dataset; none where that is gone."""
    if not dataset_id or '"sha256"' not in result.messages:
        return {}
    asked = dataset_service_pb2.ListDatasetRowsRequest(
        dataset_id=dataset_id, first=result.item, page_size=1, whole=True
    )
    try:
        rows = (await backend.ask(backend.datasets.ListDatasetRows, asked, caller)).rows
    except TouchstoneError:
        return {}
    return pictures_of(rows[0]) if rows else {}


def called(calls: Iterable[ToolCall]) -> tuple[Call, ...]:
    return tuple(Call(call.name, chat.pretty(call.arguments), call.id) for call in calls)


def offered(parameters: str) -> tuple[list[Call], str]:
    """The tools that a request offered, with their schemas, and the rest of what it carried."""
    carried = members(parameters) if '"tools"' in parameters else None
    tools = chat.offered(carried)
    if carried is None or not tools:
        return [], parameters
    rest = {name: value for name, value in carried.items() if name != "tools"}
    shown = [Call(tool["name"], json.dumps(tool["parameters"], indent=2, ensure_ascii=False)) for tool in tools]
    return shown, json.dumps(rest, ensure_ascii=False, separators=(",", ":"))


def tokens(logprobs: Iterable[TokenLogprob]) -> list[tuple[str, float, list[tuple[str, float]]]]:
    """Tokens with their log-probability and the alternatives, in quotes where white space would not be seen."""
    return [
        (_seen(one.token), one.logprob, [(_seen(other.token), other.logprob) for other in one.top])
        for one, _ in zip(logprobs, range(MOST_TOKENS), strict=False)
    ]


def _seen(token: str) -> str:
    return token if token and token.strip() == token else json.dumps(token, ensure_ascii=False)


def _turn(message: dict[str, Any], pictures: Mapping[str, str]) -> Turn:
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    return Turn(
        role=str(message.get("role", "")),
        pieces=tuple(_piece(part, pictures) for part in parts),
        calls=tuple(_call(call) for call in calls) if isinstance(calls, list) else (),
        result_of=str(message.get("tool_call_id", "")),
    )


def _piece(part: Any, pictures: Mapping[str, str]) -> Piece:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return Piece(text=part["text"])
    if kind == "image":
        size = part.get("bytes")
        about = f"{part.get('media_type')}, {size:,} bytes" if isinstance(size, int) else str(part.get("media_type"))
        return Piece(picture=pictures.get(str(part.get("sha256")), ""), about=about)
    return Piece(text=json.dumps(part, ensure_ascii=False))


def _call(call: Any) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return Call("", json.dumps(call, ensure_ascii=False))
    return Call(str(function.get("name", "")), chat.pretty(str(function.get("arguments", ""))), str(call.get("id", "")))
