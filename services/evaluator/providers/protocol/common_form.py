"""What rows hold in OpenAI's form, for wires that write it another way: images, tool calls, tools and the choice among
them, the format of an answer, log-probabilities. Fields in a provider's own form are left as they are. Pure.

What a wire has no form for is refused: what is recorded must have been sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services import further_fields, numbers
from services.evaluator.items.task import Message
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.usage import MalformedError, entries, inner, parts, string
from services.words import chat
from touchstone.v1.content_pb2 import Image, TokenLogprob, ToolCall

_FORMATS = ("text", "json_object", "json_schema")
_MOST_TOKENS = 100_000
_CALL_BYTES = 512
"""The memory that a call takes in addition to its texts."""


def refusal(api: str, what: str, instead: str = "Leave it out.") -> ProviderError:
    """`api` cannot be asked for `what`."""
    return ProviderError(f"{api} has no {what}. {instead}", fatal=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """`functions` are those of tools. `choice` is "auto", "none", "required" or empty; `named` is the one tool that is
    to be called. `parallel` is None where nothing is said. `format` is "json_object", "json_schema" or empty, `schema`
    what its "json_schema" holds. `top` counts alternatives of a token, -1 where no log-probabilities are asked for."""

    functions: tuple[Mapping[str, Any], ...] = ()
    choice: str = ""
    named: str = ""
    parallel: bool | None = None
    format: str = ""
    schema: Mapping[str, Any] | None = None
    top: int = -1


def take(fields: dict[str, Any]) -> Asked:
    """Takes what is in OpenAI's form out of a request's further fields."""
    functions: list[Mapping[str, Any]] = []
    if isinstance(tools := fields.get("tools"), list):
        rest = []
        for tool in tools:
            function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
            if isinstance(function, dict):
                functions.append(function)
            else:
                rest.append(tool)
        if functions or not rest:
            del fields["tools"]
        if functions and rest:
            fields["tools"] = rest
    choice = fields.get("tool_choice")
    named = further_fields.chosen_tool(choice)
    if isinstance(choice, str) or named:
        del fields["tool_choice"]
    if isinstance(parallel := fields.get("parallel_tool_calls"), bool):
        del fields["parallel_tool_calls"]
    else:
        parallel = None
    found = fields.get("response_format")
    kind = found.get("type") if isinstance(found, dict) else None
    if kind in _FORMATS:
        del fields["response_format"]
    schema = found.get("json_schema") if kind == "json_schema" and isinstance(found, dict) else None
    return Asked(
        functions=tuple(functions),
        choice=choice if isinstance(choice, str) else "",
        named=named,
        parallel=parallel,
        format=str(kind) if kind in _FORMATS[1:] else "",
        schema=schema if isinstance(schema, dict) else None,
        top=_take_logprobs(fields),
    )


def _take_logprobs(fields: dict[str, Any]) -> int:
    wanted, top = fields.get("logprobs"), fields.get("top_logprobs", 0)
    if not isinstance(wanted, bool) or not isinstance(top, int):
        return -1
    del fields["logprobs"]
    fields.pop("top_logprobs", None)
    return top if wanted else -1


def check_images(
    api: str, messages: Iterable[Message], types: Sequence[str] = chat.IMAGE_TYPES, *, detail: bool = False
) -> None:
    """Raises ProviderError for images of other types, and for a `detail` that the wire has no field for."""
    for image in images(messages):
        if image.media_type not in types:
            known = ", ".join(kind.removeprefix("image/") for kind in types)
            raise ProviderError(f"{api} takes no images of type {image.media_type}. It takes {known}.", fatal=True)
        if image.detail and not detail:
            raise refusal(api, 'field for the "detail" of an image')


def images(messages: Iterable[Message]) -> Iterable[Image]:
    for message in messages:
        for part in message.more.parts if message.more is not None else ():
            if part.WhichOneof("part") == "image":
                yield part.image


def arguments(call: ToolCall) -> Any:
    """The arguments of a row's call as an object, which uploads have checked."""
    return json.loads(call.arguments or "{}")


def called_names(messages: Iterable[Message]) -> dict[str, str]:
    """The functions of calls by their ids."""
    return {call.id: call.name for message in messages if message.more for call in message.more.tool_calls}


# -- what comes back --------------------------------------------------------------------------------------------------


def written(value: Any) -> str:
    """Arguments as JSON text; of a provider that gives an object, in its order."""
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of an answer in OpenAI's form. Raises MalformedError for anything but a list of objects."""
    if "tool_calls" not in message and "function_call" not in message:
        return ()
    found = parts(message, "tool_calls")
    if not found and isinstance(message.get("function_call"), dict):
        found = [{"function": message["function_call"]}]
    return tuple(_call(one) for one in found)


def _call(one: dict[str, Any]) -> ToolCall:
    function = one.get("function")
    if not isinstance(function, dict):
        raise MalformedError
    return ToolCall(id=string(one, "id"), name=string(function, "name"), arguments=written(function.get("arguments")))


def token_logprobs(found: object, key: str = "content") -> tuple[TokenLogprob, ...]:
    """Log-probabilities in OpenAI's form; none where there are none. Impossible numbers count as the lowest."""
    return tuple(
        TokenLogprob(
            token=string(one, "token"),
            logprob=_logprob(one.get("logprob")),
            top=[
                TokenLogprob.Alternative(token=string(other, "token"), logprob=_logprob(other.get("logprob")))
                for other in entries(one, "top_logprobs")
            ],
        )
        for one in entries(found, key)[:_MOST_TOKENS]
    )


def _logprob(value: object) -> float:
    read = numbers.real(value, chat.LEAST_LOGPROB, numbers.MOST_LOG_PROBABILITY)
    return chat.LEAST_LOGPROB if read is None else read


class CallsFold:
    """Tool calls of a streamed answer in OpenAI's form, whose arguments come in pieces."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, delta: Mapping[str, Any]) -> int:
        """Returns the bytes that it adds. Raises MalformedError."""
        if not delta.get("tool_calls"):
            return 0
        added = 0
        for piece in parts(delta, "tool_calls"):
            function = inner(piece, "function")
            place = self._place(piece)
            if place not in self._calls:
                self._calls[place] = {"id": string(piece, "id"), "name": "", "arguments": bytearray()}
                added += _CALL_BYTES + len(self._calls[place]["id"])
            call = self._calls[place]
            if not call["name"]:
                call["name"] = string(function, "name")
                added += len(call["name"])
            more = function.get("arguments")
            raw = ("" if more is None else written(more)).encode("utf-8", "replace")
            call["arguments"] += raw
            added += len(raw)
        return added

    def _place(self, piece: Mapping[str, Any]) -> int:
        """Some servers leave the index out; then an id begins the next call."""
        index = piece.get("index")
        if isinstance(index, int):
            return index
        return len(self._calls) if string(piece, "id") or not self._calls else max(self._calls)

    def whole(self) -> dict[str, Any]:
        """The message's member, where there are calls."""
        if not self._calls:
            return {}
        return {
            "tool_calls": [
                {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"].decode()}}
                for _, call in sorted(self._calls.items())
            ]
        }
