"""What rows hold in OpenAI's form, taken out of further fields, and calls and log-probabilities as they come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Message
from services.evaluator.providers import anthropic_wire, gemini_wire, ollama_wire
from services.evaluator.providers.openai import wire
from services.evaluator.providers.protocol import common_form, usage
from services.evaluator.providers.protocol.common_form import Asked, CallsFold
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.providers.protocol.usage import MalformedError
from services.words.chat import LEAST_LOGPROB
from touchstone.v1.content_pb2 import ContentPart, Image, ToolCall
from touchstone.v1.dataset_pb2 import ChatMessage

FUNCTION = {"name": "weather", "parameters": {"z": 1, "a": 2}}
TOOL = {"type": "function", "function": FUNCTION}


def test_fields_in_openais_form_are_taken_and_others_stay() -> None:
    own: dict[str, Any] = {"googleSearch": {}}
    fields: dict[str, Any] = {
        "tools": [TOOL, own],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
        "logprobs": True,
        "top_logprobs": 3,
        "user": "u",
    }
    assert common_form.take(fields) == Asked((FUNCTION,), "", "weather", False, "json_schema", {"schema": {}}, 3)
    assert fields == {"tools": [own], "user": "u"}


@pytest.mark.parametrize(
    "own",
    [
        {"tools": [{"name": "weather", "input_schema": {}}], "tool_choice": {"type": "any"}},
        {"tools": {"a": 1}, "tool_choice": 5, "parallel_tool_calls": "x", "response_format": {"type": "grammar"}},
        {"logprobs": 5, "top_logprobs": None, "response_format": None},
    ],
)
def test_what_is_not_in_openais_form_is_left_as_it_is(own: dict[str, Any]) -> None:
    fields = dict(own)
    assert common_form.take(fields) == Asked()
    assert fields == own


def test_arguments_that_come_in_pieces_are_joined_by_their_places() -> None:
    fold = CallsFold()
    added = [
        fold.add({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "two", "arguments": '{"x"'}}]}),
        fold.add({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "one"}}]}),
        fold.add({"tool_calls": [{"index": 1, "id": "ignored", "function": {"name": "no", "arguments": ": 1}"}}]}),
        fold.add({"content": "text"}),
    ]
    assert [bool(bytes_) for bytes_ in added] == [True, True, True, False]
    assert [(call.id, call.name, call.arguments) for call in common_form.tool_calls(fold.whole())] == [
        ("a", "one", ""),
        ("b", "two", '{"x": 1}'),
    ]


def test_without_an_index_an_id_begins_a_call() -> None:
    fold = CallsFold()
    for call_id, arguments in (("a", "{"), ("", "}"), ("b", "{}")):
        fold.add({"tool_calls": [{"id": call_id, "function": {"name": "f", "arguments": arguments}}]})
    assert [(call.id, call.arguments) for call in common_form.tool_calls(fold.whole())] == [("a", "{}"), ("b", "{}")]


@pytest.mark.parametrize("ids", [("a", "b"), ("", "")])
@pytest.mark.parametrize("index", [{"index": 0}, {}])
def test_calls_that_all_have_one_index_or_none_stay_apart(index: dict[str, int], ids: tuple[str, str]) -> None:
    """As Google's endpoint in OpenAI's form sends parallel calls."""
    fold = CallsFold()
    for call_id, city in zip(ids, ("Rome", "Lyon"), strict=True):
        fold.add(
            {"tool_calls": [{**index, "id": call_id, "function": {"name": "f", "arguments": f'{{"city": "{city}'}}]}
        )
        fold.add({"tool_calls": [{**index, "id": call_id, "function": {"arguments": '"}'}}]})
    assert [(call.id, call.name, call.arguments) for call in common_form.tool_calls(fold.whole())] == [
        (ids[0], "f", '{"city": "Rome"}'),
        (ids[1], "f", '{"city": "Lyon"}'),
    ]


def test_every_call_of_a_stream_counts_its_memory() -> None:
    fold = CallsFold()
    assert sum(fold.add({"tool_calls": [{"index": place}]}) for place in range(100)) > 100 * 500


NAMELESS = "with a tool call that names no function"
CUSTOM = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
UNREAD = "with a tool call of another type than function. Only calls of functions are read: offer no other tools"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("x", "whose tool_calls is a text, not a list"),
        (1.5, "whose tool_calls is a number, not a list"),
        ({"a": 1}, "whose tool_calls is an object, not a list"),
        ([1], "whose tool_calls is not a list of objects"),
        ([{"function": 1}], NAMELESS),
        ([{}], NAMELESS),
        ([CUSTOM], UNREAD),
    ],
)
def test_calls_of_another_shape_are_the_providers_failure(wrong: Any, said: str) -> None:
    with pytest.raises(MalformedError) as error:
        common_form.tool_calls({"tool_calls": wrong})
    assert str(error.value) == said
    reply = Reply(200, {}, {"choices": [{"message": {"content": None, "tool_calls": wrong}}]}, "", 1.0)
    with pytest.raises(ProviderError, match=re.escape(f"gpu sent an answer {said}. Check its log")):
        wire.response(Endpoint("gpu", "openai"), reply)


def test_streamed_calls_of_another_type_are_the_providers_failure() -> None:
    with pytest.raises(MalformedError, match=UNREAD):
        CallsFold().add({"tool_calls": [CUSTOM | {"index": 0}]})


def test_arguments_are_kept_as_they_were_written_and_objects_in_their_order() -> None:
    written = ['{"b": 1.0,', {"b": 1.0, "a": "ü"}, None, ["x"]]
    found = common_form.tool_calls({"tool_calls": [{"function": {"name": "f", "arguments": one}} for one in written]})
    assert [call.arguments for call in found] == ['{"b": 1.0,', '{"b": 1.0, "a": "ü"}', "{}", '["x"]']
    assert common_form.tool_calls({"function_call": {"name": "old", "arguments": "{}"}})[0].name == "old"
    assert common_form.tool_calls({"tool_calls": None}) == ()


@pytest.mark.parametrize("bare", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_become_texts_in_arguments(bare: str) -> None:
    arguments = usage.parsed(f'{{"ü": [{bare}], "b": "NaN"}}')
    (call,) = common_form.tool_calls({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})
    named = "Infinity" if bare == "1e999" else bare
    assert call.arguments == f'{{"ü": ["{named}"], "b": "NaN"}}'


def test_impossible_log_probabilities_are_the_lowest() -> None:
    told = [{"token": "a", "logprob": value, "top_logprobs": None} for value in (float("nan"), "x", 1e9, None, True)]
    assert {one.logprob for one in common_form.token_logprobs({"content": told})} == {LEAST_LOGPROB}
    assert common_form.token_logprobs({"content": [1, {"token": 5}]})[0].token == ""
    assert common_form.token_logprobs("x") == ()


# -- wires ------------------------------------------------------------------------------------------------------------


def conversation() -> list[Message]:
    """Two calls at once, with their results."""
    called = ChatMessage(role="assistant", content="Let me see.")
    called.tool_calls.extend(ToolCall(id=name, name="weather", arguments=f'{{"city": "{name}"}}') for name in "ab")
    results = [
        ChatMessage(role="tool", content=said, tool_call_id=name) for said, name in (('{"t": 1}', "a"), ("", "b"))
    ]
    rich = [Message(one.role, one.content, one) for one in (called, *results)]
    return [Message("user", "Where?"), *rich, Message("user", "Well?")]


def picture(media_type: str, detail: str = "") -> list[Message]:
    image = Image(media_type=media_type, data=b"x", detail=detail)
    message = ChatMessage(role="user", parts=[ContentPart(image=image), ContentPart(text=" ")])
    return [Message("user", " ", message)]


def test_results_of_several_calls_are_one_message_for_anthropic() -> None:
    turns = anthropic_wire.prompt(conversation())["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "user"]
    assert [block["type"] for block in turns[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in turns[2]["content"]] == ["a", "b"]


def test_results_of_several_calls_are_one_content_for_gemini_and_objects_stay_objects() -> None:
    contents = gemini_wire.prompt(conversation(), "gemini-2.5-pro")["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    assert "thoughtSignature" not in str(contents)
    assert [part["functionResponse"]["response"] for part in contents[2]["parts"]] == [{"t": 1}, {"output": ""}]


@pytest.mark.parametrize("model", ["gemini-3-pro", "gemini-3.8-flash", "gemini-flash-latest"])
def test_the_first_call_of_a_turn_is_signed_for_models_that_want_it(model: str) -> None:
    (text, first, second) = gemini_wire.prompt(conversation(), model)["contents"][1]["parts"]
    assert text == {"text": "Let me see."}
    assert first["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in second


def test_blank_texts_beside_images_are_not_sent_to_anthropic() -> None:
    (turn,) = anthropic_wire.prompt(picture("image/gif"))["messages"]
    assert [block["type"] for block in turn["content"]] == ["image"]


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"tool_choice": {"type": "none"}}),
        ({"parallel_tool_calls": False}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        ({"parallel_tool_calls": True}, {}),
        ({"response_format": {"type": "text"}}, {}),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
         {"tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}, "strict": True}]}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}},
         {"tool_choice": {"type": "tool", "name": "f"}}),
        ({"output_config": {"effort": "low"},
          "response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
         {"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}}}),
    ],
)  # fmt: skip
def test_anthropics_form(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    assert anthropic_wire.further(dict(fields)) == sent


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"tool_choice": "required"}, {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}},
         {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}}),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}, {"googleSearch": {}}]},
         {"tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
          "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}),
        ({"response_format": {"type": "json_object"}}, {"responseMimeType": "application/json"}),
        ({"logprobs": True, "top_logprobs": 2}, {"responseLogprobs": True, "logprobs": 2}),
        ({"logprobs": False}, {}),
    ],
)  # fmt: skip
def test_geminis_form(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    assert gemini_wire.further(dict(fields)) == sent


@pytest.mark.parametrize(
    ("check", "messages", "fields", "reason"),
    [
        (
            gemini_wire.check,
            picture("image/gif"),
            {},
            "Gemini takes no images of type image/gif. It takes png, jpeg, webp.",
        ),
        (ollama_wire.check, picture("image/gif"), {}, "Ollama takes no images of type image/gif."),
        (anthropic_wire.check, picture("image/png", "low"), {}, 'has no field for the "detail" of an image'),
        (
            ollama_wire.check,
            [],
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            "tool_choice but auto",
        ),
        (anthropic_wire.check, conversation(), {"tools": []}, "only together with tools"),
    ],
)
def test_what_a_wire_has_no_form_for_is_refused(check: Any, messages: Any, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProviderError, match=re.escape(reason)) as refused:
        check(messages, fields)
    assert refused.value.fatal


def test_checks_change_nothing() -> None:
    fields = {"tools": [TOOL], "tool_choice": "auto"}
    for check in (anthropic_wire.check, gemini_wire.check, ollama_wire.check):
        check(conversation(), fields)
    assert fields == {"tools": [TOOL], "tool_choice": "auto"}


def _turn(role: str, content: str = "", calls: Mapping[str, str] | None = None, result_of: str = "") -> Message:
    made = [ToolCall(id=call_id, name=name, arguments="{}") for call_id, name in (calls or {}).items()]
    return Message(role, content, ChatMessage(role=role, content=content, tool_calls=made, tool_call_id=result_of))


RESULTS = (
    _turn("user", "Where does it rain?"),
    _turn("assistant", calls={"1": "weather", "2": "weather"}),
    _turn("tool", "Rome is dry.", result_of="2"),
    _turn("tool", "Lyon is wet.", result_of="1"),
    _turn("assistant", calls={"1": "time"}),
    _turn("tool", "Noon.", result_of="1"),
)
"""Results in another order than their calls, and an id that a later turn uses again."""


def test_results_come_in_the_order_of_their_calls_where_a_wire_has_no_ids() -> None:
    parts = [each["parts"] for each in gemini_wire.prompt(RESULTS)["contents"]]
    told = [part["functionResponse"] for each in parts for part in each if "functionResponse" in part]
    assert [(one["name"], one["response"]["output"]) for one in told] == [
        ("weather", "Lyon is wet."),
        ("weather", "Rome is dry."),
        ("time", "Noon."),
    ]
    written = [(one["tool_name"], one["content"]) for one in ollama_wire.messages(RESULTS) if "tool_name" in one]
    assert written == [("weather", "Lyon is wet."), ("weather", "Rome is dry."), ("time", "Noon.")]
