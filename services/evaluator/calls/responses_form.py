"""OpenAI's responses API for providers that do not speak it: a request as a chat completion's, and an answer as a
response with its typed events. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.evaluator.calls.chat_form import event, finish
from services.evaluator.calls.refusals import STORED, RefusedCallError, wrong
from services.evaluator.items.task import Response
from services.words import chat

Json = dict[str, Any]

_SAME = ("temperature", "top_p", "parallel_tool_calls", "top_logprobs", "metadata", "store", "user", "service_tier")
_SAME_TOO = ("safety_identifier", "prompt_cache_key", "prompt_cache_retention")
_IGNORED = ("model", "stream", "stream_options", "truncation", "include", "input", "instructions")
_TEXTS = ("input_text", "output_text", "text")
_LOGPROBS = "message.output_text.logprobs"


def as_chat(body: Mapping[str, Any]) -> Json:
    """Raises RefusedCallError for what has no form there."""
    found: Json = {"messages": list(_messages(body))}
    for name, value in body.items():
        if value in (None, False) and name in STORED:
            continue
        if name in STORED:
            raise wrong(
                f"{name} needs a provider that keeps responses, which this endpoint does not. Send the whole input.",
                name,
            )
        if value is None or name in _IGNORED:
            continue
        found |= _field(name, value)
    include = body.get("include")
    if "top_logprobs" in found or (isinstance(include, list) and _LOGPROBS in include):
        found["logprobs"] = True
    return found


def _field(name: str, value: Any) -> Json:
    match name, value:
        case ("max_output_tokens", _):
            return {"max_completion_tokens": value}
        case ("reasoning", dict()):
            return {"reasoning_effort": value["effort"]} if value.get("effort") else {}
        case ("text", dict()):
            return _format(value)
        case ("tools", list()):
            return {"tools": [_tool(tool) for tool in value]}
        case ("tool_choice", {"type": "function", "name": str(function)}):
            return {"tool_choice": {"type": "function", "function": {"name": function}}}
        case ("tool_choice", str()):
            return {name: value}
        case _ if name in _SAME or name in _SAME_TOO:
            return {name: value}
        case _:
            raise wrong(f"{name} cannot be sent to this endpoint. Leave it out.", name)


def _format(text: Mapping[str, Any]) -> Json:
    found: Json = {"verbosity": text["verbosity"]} if text.get("verbosity") else {}
    form = text.get("format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type"}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(form, dict) and form.get("type") != "text":
        found["response_format"] = form
    return found


def _tool(tool: Any) -> Json:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        raise wrong("Tools must be functions at this endpoint. Leave out tools that run at the provider.", "tools")
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


def _messages(body: Mapping[str, Any]) -> Iterator[Json]:
    if instructions := body.get("instructions"):
        yield {"role": "system", "content": instructions}
    asked = body.get("input")
    if isinstance(asked, str):
        yield {"role": "user", "content": asked}
        return
    calls: list[Json] = []
    for item in asked if isinstance(asked, list) else ():
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if calls and kind != "function_call":
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        match kind:
            case "message":
                yield {"role": item.get("role"), "content": _content(item.get("content"))}
            case "function_call":
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                calls.append({"id": item.get("call_id"), "type": "function", "function": function})
            case "function_call_output":
                output = _content(item.get("output"))
                yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": output}
            case "reasoning":
                continue  # The provider's own; others cannot read it.
            case _:
                raise wrong(
                    f"input has an item of type {str(kind)[:40]!r}, which this endpoint does not take.", "input"
                )
    if calls:
        yield {"role": "assistant", "content": None, "tool_calls": calls}


def _content(content: Any) -> Any:
    return [_part(part) for part in content] if isinstance(content, list) else content


def _part(part: Any) -> Json:
    match part:
        case {"type": kind, "text": str(text)} if kind in _TEXTS:
            return {"type": "text", "text": text}
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url, "detail": part.get("detail") or "auto"}}
        case _:
            raise wrong("input has a part that is neither a text nor an image. Leave it out.", "input")


@dataclass(frozen=True, slots=True)
class Written:
    """How one call's answer is written. `asked` is the request, some of whose fields a response repeats."""

    call_id: str
    model: str
    created: int
    asked: Mapping[str, Any]

    def whole(self, response: Response) -> Json:
        cut = finish(response) == "length"
        items = [self._message(response)] if response.text or not response.tool_calls else []
        items += [self._call(place, call) for place, call in enumerate(chat.calls(response.tool_calls))]
        return self._response("incomplete" if cut else "completed") | {
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": items,
            "usage": _usage(response),
        }

    def opening(self) -> Iterator[bytes]:
        """The first events of a streamed answer."""
        for place, kind in enumerate(("response.created", "response.in_progress")):
            yield self._event(kind, place, {"response": self._response("in_progress")})
        item = self._message(Response("")) | {"status": "in_progress", "content": []}
        yield self._event("response.output_item.added", 2, {"output_index": 0, "item": item})
        part = {"type": "output_text", "text": "", "annotations": []}
        yield self._event("response.content_part.added", 3, self._place() | {"part": part})

    def delta(self, text: str, number: int) -> bytes:
        """`number` counts events from 0."""
        return self._event("response.output_text.delta", number, self._place() | {"delta": text, "logprobs": []})

    def rest(self, response: Response, sent: str, number: int) -> Iterator[bytes]:
        """The end of a streamed answer, of which the text `sent` has gone out in events up to `number`."""
        events: list[tuple[str, Json]] = []
        if response.text.startswith(sent) and (more := response.text[len(sent) :]):
            events.append(("response.output_text.delta", self._place() | {"delta": more, "logprobs": []}))
        message = self._message(response)
        part = message["content"][0]
        events += [
            (
                "response.output_text.done",
                self._place() | {"text": response.text, "logprobs": part["logprobs"]},
            ),
            ("response.content_part.done", self._place() | {"part": part}),
            ("response.output_item.done", {"output_index": 0, "item": message}),
        ]
        calls = [self._call(place, call) for place, call in enumerate(chat.calls(response.tool_calls))]
        for index, call in enumerate(calls, start=1):
            where = {"item_id": call["id"], "output_index": index}
            added = call | {"status": "in_progress", "arguments": ""}
            events += [
                ("response.output_item.added", {"output_index": index, "item": added}),
                ("response.function_call_arguments.delta", where | {"delta": call["arguments"]}),
                (
                    "response.function_call_arguments.done",
                    where | {"name": call["name"], "arguments": call["arguments"]},
                ),
                ("response.output_item.done", {"output_index": index, "item": call}),
            ]
        whole = self.whole(response) | {"output": [message, *calls]}
        events.append((f"response.{whole['status']}", {"response": whole}))
        for place, (kind, data) in enumerate(events, start=number):
            yield self._event(kind, place, data)

    def failure(self, refusal: RefusedCallError) -> bytes:
        """The last event of an answer that breaks off. OpenAI's clients raise what is in `error`."""
        error = refusal.body["error"]
        told = {"type": "error", "code": error["code"], "message": error["message"], "param": error["param"]}
        return event(told | {"error": error}, "error")

    def _event(self, kind: str, number: int, data: Json) -> bytes:
        return event({"type": kind, "sequence_number": number} | data, kind)

    def _place(self) -> Json:
        return {"item_id": f"msg_{self.call_id}", "output_index": 0, "content_index": 0}

    def _message(self, response: Response) -> Json:
        logprobs = chat.logprobs(response.logprobs) if response.logprobs else []
        part = {"type": "output_text", "text": response.text, "annotations": [], "logprobs": logprobs}
        own = {"id": f"msg_{self.call_id}", "type": "message", "status": "completed"}
        return own | {"content": [part], "role": "assistant"}

    def _call(self, place: int, call: Json) -> Json:
        own = {"id": f"fc_{self.call_id}_{place}", "type": "function_call", "status": "completed"}
        return own | {"call_id": call["id"], **call["function"]}

    def _response(self, status: str) -> Json:
        asked = self.asked
        return {
            "id": f"resp_{self.call_id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": asked.get("instructions"),
            "max_output_tokens": asked.get("max_output_tokens"),
            "model": self.model,
            "output": [],
            "parallel_tool_calls": asked.get("parallel_tool_calls", True),
            "previous_response_id": None,
            "reasoning": asked.get("reasoning") or {"effort": None, "summary": None},
            "store": False,
            "temperature": asked.get("temperature"),
            "text": asked.get("text") or {"format": {"type": "text"}},
            "tool_choice": asked.get("tool_choice", "auto"),
            "tools": asked.get("tools") or [],
            "top_p": asked.get("top_p"),
            "truncation": "disabled",
            "usage": None,
            "user": asked.get("user"),
            "metadata": asked.get("metadata") or {},
        }


def _usage(response: Response) -> Json | None:
    read, written = response.input_tokens, response.output_tokens
    if read is None or written is None:
        return None
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": response.reasoning_tokens},
        "total_tokens": read + written,
    }
