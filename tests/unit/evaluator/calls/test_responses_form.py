"""The responses API for providers that do not speak it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.calls.responses_form import Written, as_chat
from services.evaluator.items.task import Response
from touchstone.v1.content_pb2 import ToolCall

CALLS = (ToolCall(id="call_1", name="weather", arguments='{"city": "Rome"}'),)


def test_an_input_becomes_messages() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
    asked: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, image]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "sun"},
    ]
    roles = [message["role"] for message in as_chat({"input": asked, "instructions": "Be brief."})["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    messages = as_chat({"input": asked})["messages"]
    assert messages[0]["content"][1]["image_url"] == {"url": "data:image/png;base64,AA==", "detail": "low"}
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["1", "2"]
    assert as_chat({"input": "hello"})["messages"] == [{"role": "user", "content": "hello"}]


def test_fields_have_their_names_of_chat_completions() -> None:
    schema = {"type": "object"}
    found = as_chat(
        {
            "input": "a",
            "max_output_tokens": 5,
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}, "verbosity": "low"},
            "tools": [{"type": "function", "name": "f", "parameters": schema}],
            "tool_choice": {"type": "function", "name": "f"},
            "previous_response_id": None,
            "background": False,
        }
    )
    assert found["max_completion_tokens"] == 5
    assert found["reasoning_effort"] == "low"
    assert found["response_format"] == {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert found["verbosity"] == "low"
    assert found["tools"] == [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert found["tool_choice"] == {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input"),
        ({"max_tool_calls": 2}, "max_tool_calls"),
    ],
)
def test_what_has_no_form_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RefusedCallError) as caught:
        as_chat({"input": "a"} | fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_a_stream_adds_up_to_the_response() -> None:
    writer = Written("1", "m", 5, {"temperature": 0.5})
    response = Response("Hello you", finish_reason="max_tokens", input_tokens=1, output_tokens=2, tool_calls=CALLS)
    pieces = [*writer.opening(), writer.delta("Hello", 4), *writer.rest(response, "Hello", 5)]
    events = [json.loads(piece.decode().split("data: ")[1]) for piece in pieces]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [piece.decode().split("\n")[0].removeprefix("event: ") for piece in pieces] == [e["type"] for e in events]
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == "Hello you"
    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["message", "function_call"]
    assert (final["temperature"], final["usage"]["total_tokens"]) == (0.5, 3)


def test_a_cut_answer_is_incomplete() -> None:
    whole = Written("1", "m", 5, {}).whole(Response("x", finish_reason="length"))
    assert whole["status"] == "incomplete"
    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}
    assert whole["usage"] is None
