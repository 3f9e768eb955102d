"""Lines as OpenAI's batches have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.results.uploads import URL, batch_line, jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset


def test_a_batch_line_becomes_messages_and_sampling() -> None:
    line = batch_line(
        "candidate-1",
        model="gpt-x",
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why? é"}],
        temperature=0.5,
        top_p=1,
        max_completion_tokens=64.0,
        seed=-3,
        stop=["\n", "END"],
        stream=False,
        n=1,
        user=None,
        tools=[],
        response_format={"type": "json_object"},
        logit_bias={"50256": -100},
    )
    made = upload(jsonl(line))
    (row,) = made.rows

    assert row.custom_id == "candidate-1"
    assert [(m.role, m.content) for m in row.messages] == [("system", "Be brief."), ("user", "Why? é")]
    assert (row.sampling.temperature, row.sampling.top_p, row.sampling.max_tokens, row.sampling.seed) == (
        0.5,
        1,
        64,
        -3,
    )
    assert list(row.stop) == ["\n", "END"]
    assert row.sampling.extra_json == '{"response_format":{"type":"json_object"},"logit_bias":{"50256":-100}}'
    assert not row.sampling.HasField("extra")
    assert (row.reference, row.metadata) == ("", "")
    assert made.dataset is not None
    assert made.dataset.format == Dataset.FORMAT_BATCH
    assert list(made.dataset.models) == ["gpt-x"]
    assert (made.dataset.most_max_tokens, made.dataset.longest_prompt_bytes) == (64, 16)
    assert made.dataset.input_tokens == 4 + 2 * 4


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]
    (row,) = upload(jsonl(batch_line(messages=[{"role": "user", "content": parts}]))).rows

    assert row.messages[0].content == "One\nTwo"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"stream": True}, '"stream" is set'),
        ({"stream_options": {"include_usage": True}}, '"stream_options" is set'),
        ({"n": 2}, '"n" must be 1'),
        ({"n": True}, '"n" must be 1'),
        ({"tool_choice": "auto"}, '"tool_choice" needs "tools"'),
        ({"functions": [{}]}, 'Write them as "tools"'),
        ({"web_search_options": {"x": 1}}, "search the web"),
        ({"modalities": ["text", "audio"]}, "more than text"),
        ({"temperature": 2.5}, '"temperature" must be between 0 and 2.'),
        ({"temperature": "0"}, '"temperature" must be a number.'),
        ({"temperature": True}, '"temperature" must be a number.'),
        ({"top_p": -0.1}, '"top_p" must be between 0 and 1.'),
        ({"max_tokens": 0}, '"max_tokens" must be between 1 and 1,000,000.'),
        ({"max_tokens": 1.5}, "whole number"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "differ"),
        ({"seed": 2**63}, '"seed" must be between -9,223,372,036,854,775,808 and'),
        ({"stop": ["a"] * 5}, '"stop" must be a string or'),
        ({"stop": [""]}, '"stop" must be a string or'),
        ({"stop": [1]}, '"stop" must be a string or'),
        ({"stop": {}}, '"stop" must be a string or'),
        ({"logit_bias": {"1": 10**309}}, "too large"),
        ({"logprobs": 5}, '"logprobs" asks for log-probabilities in a form that is not stored. Use logprobs true'),
        ({"top_logprobs": 2}, '"top_logprobs" asks for'),
        ({"prompt_logprobs": 2}, '"prompt_logprobs" asks for'),
        ({"response_format": [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}, "nests more than 16"),
        ({"response_format": {"x": "y" * 70_000}}, "rest of the request"),
        ({"messages": []}, '"messages" must be an array'),
        ({"messages": None}, '"messages" must be an array'),
        ({"messages": "Why?"}, '"messages" must be an array'),
        ({"messages": ["Why?"]}, "Message 1 must be an object"),
        ({"messages": [{"role": "user"}]}, "content of message 1"),
        ({"messages": [{"role": "user", "content": []}]}, "content of message 1"),
        ({"messages": [{"role": "user", "content": 5}]}, "content of message 1"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "The role of message 1 must be one of system, developer"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "The role of message 1 must be"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "no text"),
        ({"messages": [{"role": "user", "content": "x", "name": "ada"}]}, 'Message 1 has "name"'),
        ({"messages": [{"role": "user", "content": "x", "function_call": {"name": "f"}}]}, 'Write it as "tool_calls"'),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]}, "a text part without text"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "a text part without text"),
        ({"messages": [{"role": "user", "content": "x"}] * 1001}, "1,001 messages"),
        ({"metadata": "x"}, '"metadata" must be an object'),
    ],
)
def test_a_body_that_cannot_be_asked_is_refused_with_the_reason(body: dict[str, Any], reason: str) -> None:
    made = upload(jsonl(batch_line("good"), batch_line("bad", **body)))

    assert list(made.reasons) == [2]
    assert reason in made.reasons[2]
    assert not made.shards


def test_a_request_of_deeply_nested_fields_is_refused_before_a_reader_must_give_up() -> None:
    def nested(levels: int) -> Any:
        return {"a": nested(levels - 1)} if levels else 1

    fine = upload(jsonl(batch_line(response_format=nested(15))))

    assert len(fine.rows) == 1
    assert "nests" in upload(jsonl(batch_line(response_format=nested(20)))).reasons[1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"method": "GET"}, '"method" must be "POST"'),
        ({"url": "/v1/embeddings"}, f'"url" must be "{URL}"'),
        ({"body": []}, '"body" must be an object'),
        ({"custom_id": None}, '"custom_id" is missing'),
        ({"custom_id": ""}, "it has 0."),
        ({"custom_id": "é" * 257}, "it has 514."),
        ({"custom_id": 1.5}, "string or a whole number"),
        ({"custom_id": True}, "string or a whole number"),
        ({"metadata": []}, '"metadata" must be an object'),
        ({"metadata": {"level": 1}, "level": 2}, '"level" is both inside and outside "metadata"'),
        ({"metadata": {"x" * 201: 1}}, "more than 200 characters"),
        ({"metadata": {"x": "y" * 70_000}}, "metadata has more than 65,536 bytes"),
        ({"reference": {"a": 1}}, "Only the scorers json and tool_calls"),
        ({"reference": [[]]}, "The reference must be a string"),
        ({"reference": []}, "0 answers"),
        ({"reference": "x" * 70_000}, "more than 65,536 bytes"),
    ],
)
def test_a_batch_line_that_is_none_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    made = upload(jsonl(batch_line("good"), batch_line("bad") | change))

    assert reason in made.reasons[2]
