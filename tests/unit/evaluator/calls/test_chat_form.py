"""Chat completions for providers with a form of their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.evaluator.calls import chat_form
from services.evaluator.calls.chat_form import Completion
from services.evaluator.calls.refusals import RefusedCallError
from services.evaluator.items.task import Response
from tests.pictures import PNG, data_uri
from touchstone.v1.content_pb2 import TokenLogprob, ToolCall

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


def refused(body: dict[str, Any], kind: str = "anthropic") -> RefusedCallError:
    with pytest.raises(RefusedCallError) as caught:
        chat_form.read(body, kind)
    assert caught.value.status == 400
    return caught.value


def test_a_request_is_read_like_a_row() -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_uri(PNG)}}]},
    ]
    asked = chat_form.read(
        {"messages": messages, "max_completion_tokens": 9, "top_p": 0.5, "stop": "x", "user": "u", "store": True},
        "http",
    )
    assert [message.role for message in asked.item.messages] == ["system", "user"]
    assert asked.item.messages[1].more is not None
    assert (asked.sampling.max_tokens, asked.sampling.top_p, asked.item.stop) == (9, 0.5, ("x",))
    assert not asked.sampling.extra_json


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 3}, "n"),
        ({"frequency_penalty": 1}, "frequency_penalty"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"unheard_of": 1}, "unheard_of"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"top_p": "much"}, "top_p"),
        ({"messages": []}, "messages"),
        ({"tool_choice": "auto"}, "tool_choice"),
    ],
)
def test_what_has_no_form_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    assert refused(HELLO | fields).param == param


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ({"reasoning_effort": "low"}, "grok"),
        ({"frequency_penalty": 1}, "http"),
        ({"frequency_penalty": 1}, "a-plug-ins-kind"),
        ({"n": 1, "temperature": None}, "ollama"),
    ],
)
def test_fields_that_a_kind_has_a_form_for_are_taken(field: dict[str, Any], kind: str) -> None:
    assert isinstance(chat_form.read(HELLO | field, kind), chat_form.Asked)


def test_an_answer_has_every_field_of_openais_in_its_order() -> None:
    response = Response(
        "Rome",
        finish_reason="end_turn",
        input_tokens=3,
        output_tokens=2,
        reasoning_tokens=1,
        tool_calls=(ToolCall(id="c", name="f", arguments="{}"),),
        logprobs=(TokenLogprob(token="Rome", logprob=-0.5),),
    )
    body = Completion("1", "m", 5).whole(response)
    assert list(body) == ["id", "object", "created", "model", "choices", "usage"]
    (choice,) = body["choices"]
    assert list(choice) == ["index", "message", "logprobs", "finish_reason"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert choice["logprobs"]["content"][0]["token"] == "Rome"
    assert body["usage"]["total_tokens"] == 5
    assert Completion("1", "m", 5).whole(Response("x"))["usage"] is None


@pytest.mark.parametrize(
    ("reason", "refusal", "words"),
    [
        ("max_tokens", False, "length"),
        ("MAX_TOKENS", False, "length"),
        ("STOP", False, "stop"),
        ("refusal", True, "content_filter"),
        ("unheard_of", False, "stop"),
    ],
)
def test_reasons_are_in_openais_words(reason: str, refusal: bool, words: str) -> None:
    assert chat_form.finish(Response("x", finish_reason=reason, refused=refusal)) == words


def test_a_stream_adds_up_to_the_answer_and_ends_with_done() -> None:
    writer = Completion("1", "m", 5, with_usage=True)
    response = Response("Hello you", finish_reason="stop", input_tokens=1, output_tokens=2)
    pieces = [*writer.opening(), writer.delta("Hello", 0), *writer.rest(response, "Hello", 1)]
    assert pieces[-1] == b"data: [DONE]\n\n"
    events = [json.loads(piece.removeprefix(b"data: ")) for piece in pieces[:-1]]
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in events if one["choices"]) == "Hello you"
    assert events[-1]["usage"]["total_tokens"] == 3


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {"type": "response.output_text.delta", "delta": "a"},
        {"candidates": [{"content": {"parts": [{"text": "t", "thought": True}, {"text": "a"}]}}]},
        {"message": {"role": "assistant", "content": "a"}},
        {"choices": [{"delta": {"content": "a"}}]},
    ],
)
def test_the_text_of_an_event_is_found_in_every_form(event: dict[str, Any]) -> None:
    assert chat_form.delta_text(event) == "a"


@pytest.mark.parametrize("event", [None, [], {}, {"choices": []}, {"message": {"content": None}}, {"candidates": [1]}])
def test_other_events_bring_no_text(event: Any) -> None:
    assert chat_form.delta_text(event) == ""


def test_calls_without_an_id_get_one_that_clients_can_send_back() -> None:
    given = ToolCall(id="own", name="f", arguments="{}")
    found = chat_form.with_ids(Response("", tool_calls=(ToolCall(name="f"), given, ToolCall(name="g"))), "9")
    assert [call.id for call in found.tool_calls] == ["call_9_0", "own", "call_9_2"]
    assert chat_form.with_ids(found, "9") is found
