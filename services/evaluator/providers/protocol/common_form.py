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
    return ProviderError(f"{api} has no {what}. {instead}", fatal=True, status=400)


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
            raise ProviderError(
                f"{api} takes no images of type {image.media_type}. It takes {known}.", fatal=True, status=400
            )
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


def with_functions(messages: Sequence[Message]) -> list[tuple[Message, str]]:
    """Each message with the function that it is the result of, empty for others. Results are in the order of the calls
    before them, for wires that know neither ids nor another way to tell two results of one function apart."""
    ordered: list[tuple[Message, str]] = []
    results: list[tuple[int, Message, str]] = []
    called: dict[str, tuple[int, str]] = {}
    for message in messages:
        more = message.more
        if more is not None and more.tool_call_id:
            # The newest call counts: another turn may use an id again.
            place, name = called.get(more.tool_call_id, (0, ""))
            results.append((place, message, name or more.name))
            continue
        ordered += _sorted(results)
        results = []
        ordered.append((message, ""))
        if more is not None:
            called.update({call.id: (place, call.name) for place, call in enumerate(more.tool_calls)})
    return ordered + _sorted(results)


def _sorted(results: Sequence[tuple[int, Message, str]]) -> list[tuple[Message, str]]:
    return [(message, name) for _, message, name in sorted(results, key=lambda result: result[0])]


# -- what comes back --------------------------------------------------------------------------------------------------


def written(value: Any) -> str:
    """Arguments as text. A text stays as the model wrote it, JSON or not. An object is written as JSON in its order;
    JSON has no NaN and no infinity, so they become texts."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps({} if value is None else value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return written(json.loads(json.dumps(value), parse_constant=str))


def tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The calls of an answer in OpenAI's form. Raises MalformedError for anything but a list of calls of functions."""
    if "tool_calls" not in message and "function_call" not in message:
        return ()
    found = parts(message, "tool_calls")
    if not found and isinstance(message.get("function_call"), dict):
        found = [{"function": message["function_call"]}]
    return tuple(_call(one) for one in found)


def _call(one: dict[str, Any]) -> ToolCall:
    function = one.get("function")
    if not isinstance(function, dict):
        raise MalformedError(_no_function(one))
    return ToolCall(id=string(one, "id"), name=string(function, "name"), arguments=written(function.get("arguments")))


def _no_function(call: Mapping[str, Any]) -> str:
    if string(call, "type") in ("", "function"):
        return "with a tool call that names no function"
    return "with a tool call of another type than function. Only calls of functions are read: offer no other tools"


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


def _is_whole(arguments: bytearray) -> bool:
    """Whether nothing can follow these arguments."""
    if not arguments.endswith((b"}", b"} ", b"}\n")):
        return False
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


class CallsFold:
    """Tool calls of a streamed answer in OpenAI's form, whose arguments come in pieces."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._newest: dict[int, dict[str, Any]] = {}

    def add(self, delta: Mapping[str, Any]) -> int:
        """Returns the bytes that it adds. Raises MalformedError."""
        if not delta.get("tool_calls"):
            return 0
        added = 0
        for piece in parts(delta, "tool_calls"):
            function = inner(piece, "function")
            if not function and string(piece, "type") not in ("", "function"):
                raise MalformedError(_no_function(piece))
            call = self._continued(piece, function)
            if call is None:
                call = {"id": string(piece, "id"), "name": "", "arguments": bytearray(), "index": piece.get("index")}
                self._calls.append(call)
                if isinstance(call["index"], int):
                    self._newest[call["index"]] = call
                added += _CALL_BYTES + len(call["id"])
            if not call["name"]:
                call["name"] = string(function, "name")
                added += len(call["name"])
            more = function.get("arguments")
            raw = ("" if more is None else written(more)).encode("utf-8", "replace")
            call["arguments"] += raw
            added += len(raw)
        return added

    def _continued(self, piece: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any] | None:
        """The call that a piece continues; None where it begins one. Some servers leave the index out, or send the
        same one with every call: then another call begins with a name, once the arguments are whole."""
        index, own = piece.get("index"), string(piece, "id")
        if isinstance(index, int):
            call = self._newest.get(index)
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and own and own != call["id"]:
                return None
        if call is None or (own and own == call["id"]) or not string(function, "name"):
            return call
        return None if _is_whole(call["arguments"]) else call

    def whole(self) -> dict[str, Any]:
        """The message's member, where there are calls."""
        if not self._calls:
            return {}
        return {
            "tool_calls": [
                {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"].decode()}}
                for call in sorted(
                    self._calls, key=lambda call: call["index"] if isinstance(call["index"], int) else -1
                )
            ]
        }
