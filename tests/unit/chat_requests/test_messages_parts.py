"""Rows whose messages hold more than texts: images, tools, their calls and results."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from services.words import chat
from tests.pictures import GIF, JPEG, PNG, WEBP, data_uri, image
from tests.unit.results.uploads import batch_line, jsonl, upload
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import LAST_ASSISTANT_PREFILL, LAST_ASSISTANT_REFERENCE

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"unit": {}, "city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"unit": 1.0, "city": "Rom"}'},
}
ASKED = {"role": "user", "content": "How is it in Rome?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "name": "weather", "content": "Sunny"}


def read(**body: Any) -> DatasetRow:
    (row,) = upload(jsonl(batch_line(**body))).rows
    return row


def refused(**body: Any) -> str:
    return upload(jsonl(batch_line(**body))).reasons[1]


def user(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


@pytest.mark.parametrize(
    ("data", "media_type"), [(PNG, "image/png"), (GIF, "image/gif"), (WEBP, "image/webp"), (JPEG, "image/jpeg")]
)
def test_an_image_is_kept_as_its_bytes_in_its_place(data: bytes, media_type: str) -> None:
    text = {"type": "text", "text": "What is this?"}
    (message,) = read(messages=user(text, image(data, media_type), {"type": "text", "text": "Be brief."})).messages

    assert message.content == "What is this?\nBe brief."
    assert [part.WhichOneof("part") for part in message.parts] == ["text", "image", "text"]
    kept = message.parts[1].image
    assert (kept.media_type, kept.data, kept.size) == (media_type, data, len(data))
    assert kept.digest == sha256(data).hexdigest()


def test_an_image_alone_is_a_question() -> None:
    (message,) = read(messages=user(image(detail="low"))).messages

    assert message.content == ""
    assert message.parts[0].image.detail == "low"


def test_what_was_written_is_given_back() -> None:
    parts = [{"type": "text", "text": "This?"}, image(GIF, "image/gif", detail="high")]
    asked = [{"role": "system", "content": "Be brief."}, *user(*parts), CALLED, RESULT]

    assert [chat.written(message) for message in read(messages=asked).messages] == asked


def test_a_plain_message_has_the_bytes_that_it_had() -> None:
    (plain,) = read(messages=[ASKED]).messages
    (parts,) = read(messages=user({"type": "text", "text": ASKED["content"]})).messages

    assert plain.SerializeToString() == b"\x0a\x04user\x12\x12How is it in Rome?" == parts.SerializeToString()


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "image_url", "image_url": {}}, "must be a data URI"),
        ({"type": "image_url", "image_url": None}, "must be written as"),
        ({"type": "image_url", "image_url": "data:image/png;base64,AAAA"}, "must be written as"),
        (
            {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
            "Images behind addresses are not fetched.",
        ),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "must be a data URI"),
        (image(b"<svg onload='alert(1)'/>", "image/svg+xml"), "of type png, jpeg, gif, webp"),
        (
            image(b"<script>alert(1)</script>", "image/png"),
            "no picture that can be sent, but its data URI says image/png",
        ),
        (image(PNG, "image/jpeg"), "An image of message 1 is image/png, but its data URI says image/jpeg."),
        (image(PNG, detail="huge"), 'The "detail" of an image of message 1 must be one of auto, low, high.'),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA*A"}}, "not valid base64"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,AAAA"}}, "must be a data URI"),
        (image(PNG + b"x" * 1_500_000), "1,500,0"),
        ({"type": "input_audio", "input_audio": {}}, 'a part of type "input_audio". Parts are text and image_url'),
        ({"type": "text", "text": None}, "a text part without text"),
    ],
)
def test_a_part_that_cannot_be_sent_is_refused(part: dict[str, Any], reason: str) -> None:
    assert reason in refused(messages=user({"type": "text", "text": "This?"}, part))


def test_images_are_bounded_and_are_the_users() -> None:
    assert "more than 20 images" in refused(messages=user(*[image()] * 21))
    assert "Only messages of the user can have images." in refused(messages=[{"role": "system", "content": [image()]}])


def test_tools_and_their_calls_are_kept_as_they_are_written() -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    row = read(messages=[ASKED, CALLED, RESULT], tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False)

    called, result = row.messages[1], row.messages[2]
    assert (called.content, called.tool_calls[0].id, called.tool_calls[0].name) == ("", "call_1", "weather")
    assert called.tool_calls[0].arguments == '{"unit": 1.0, "city": "Rom"}'
    assert (result.tool_call_id, result.name, result.content) == ("call_1", "weather", "Sunny")
    # The order of names in a schema is part of what a model is asked.
    assert row.sampling.extra_json == json.dumps(
        {"tools": [WEATHER], "tool_choice": choice, "parallel_tool_calls": False}, separators=(",", ":")
    )


def test_plain_lines_may_have_tools() -> None:
    (row,) = upload(jsonl({"messages": [ASKED], "tools": [WEATHER]})).rows

    assert json.loads(row.sampling.extra_json) == {"tools": [WEATHER]}


def test_what_means_no_tools_is_left_out() -> None:
    assert not read(tools=[], tool_choice="none", parallel_tool_calls=True).HasField("sampling")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"tools": [{"type": "function"}]}, 'Every tool must be {"type": "function"'),
        ({"tools": [{"type": "web_search"}]}, "Leave out tools that run at the provider."),
        ({"tools": {"type": "function"}}, '"tools" must be a list of up to 128'),
        ({"tools": [WEATHER] * 129}, '"tools" must be a list of up to 128'),
        ({"tools": [WEATHER, WEATHER]}, 'Two tools have the name "weather".'),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "The name of a tool must have 1 to 64"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": 1}}]}, "must be a JSON schema"),
        ({"tools": [WEATHER], "tool_choice": "maybe"}, '"tool_choice" must be one of auto, none, required'),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
            '"tool_choice" must be one of auto, none, required',
        ),
        ({"tools": [WEATHER], "parallel_tool_calls": "no"}, '"parallel_tool_calls" must be true or false.'),
    ],
)
def test_tools_that_cannot_be_offered_are_refused(body: dict[str, Any], reason: str) -> None:
    assert reason in refused(**body)


def call(**changes: Any) -> dict[str, Any]:
    return {**CALL, "function": {**CALL["function"], **changes}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([ASKED, CALLED | {"tool_calls": {}}, RESULT], "content of message 2"),
        ([ASKED, CALLED | {"tool_calls": "x"}, RESULT], '"tool_calls" of message 2 must be a list'),
        ([ASKED, CALLED | {"tool_calls": [1]}, RESULT], "A tool call of message 2 must be"),
        ([ASKED, CALLED | {"tool_calls": [CALL | {"type": "custom"}]}, RESULT], "A tool call of message 2 must be"),
        ([ASKED, CALLED | {"tool_calls": [CALL | {"id": ""}]}, RESULT], 'must have an "id"'),
        (
            [ASKED, CALLED | {"tool_calls": [CALL, call(name="time")]}, RESULT],
            'Two tool calls of message 2 have the id "call_1". Give each call an id of its own,',
        ),
        ([ASKED, CALLED | {"tool_calls": [call(name="<b>")]}, RESULT], "must name its function"),
        ([ASKED, CALLED | {"tool_calls": [call(arguments={"city": "Rom"})]}, RESULT], "written as a string"),
        ([ASKED, CALLED | {"tool_calls": [call(arguments="[1]")]}, RESULT], "must be a JSON object"),
        ([ASKED, CALLED | {"tool_calls": [call(arguments="{city")]}, RESULT], "argument of a tool call is not JSON"),
        (
            [ASKED, CALLED | {"tool_calls": [call(arguments='{"a":' * 40 + "1" + "}" * 40)]}, RESULT],
            "nests more than 32",
        ),
        (
            [ASKED, CALLED, RESULT | {"tool_call_id": "call_2"}],
            'the result of the tool call "call_2", which no message',
        ),
        ([ASKED, CALLED, RESULT | {"tool_call_id": 1}], '"tool_call_id" of message 3 must be a string'),
        ([ASKED | {"tool_calls": [CALL]}], '"tool_calls", which only messages of the assistant have.'),
        ([ASKED | {"tool_call_id": "call_1"}], '"tool_call_id", which only messages of a tool have.'),
        ([ASKED | {"name": "ada"}], 'Message 1 has "name". It would not be sent.'),
        ([ASKED, CALLED | {"refusal": "No."}, RESULT], 'Message 2 has "refusal". It would not be sent.'),
    ],
)
def test_a_conversation_with_tools_that_cannot_be_sent_is_refused(messages: list[Any], reason: str) -> None:
    assert reason in refused(messages=messages)


@pytest.mark.parametrize("choice", [LAST_ASSISTANT_REFERENCE, LAST_ASSISTANT_PREFILL])
def test_a_last_message_that_calls_tools_is_neither_reference_nor_beginning(choice: Any) -> None:
    made = upload(jsonl(batch_line(messages=[ASKED, CALLED])), last_assistant=choice)

    assert "calls tools, which are a reference for the scorer tool_calls only" in made.reasons[1]


def test_the_last_answer_leaves_a_conversation_with_images_and_tools() -> None:
    asked = [*user(image()), CALLED, RESULT, {"role": "assistant", "content": "It is sunny."}]
    (row,) = upload(jsonl(batch_line(messages=asked)), last_assistant=LAST_ASSISTANT_REFERENCE).rows

    assert row.reference == '"It is sunny."'
    assert [message.role for message in row.messages] == ["user", "assistant", "tool"]


def test_an_image_counts_as_a_thousand_tokens() -> None:
    made = upload(jsonl(batch_line(messages=user({"type": "text", "text": "Why?"}, image()))))

    assert made.dataset is not None
    assert (made.dataset.input_tokens, made.dataset.prompt_characters) == (1005, 4)
    assert data_uri() not in str(made.dataset)
