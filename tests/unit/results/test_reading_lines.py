"""Batch lines and plain lines: what is kept of them, and what is refused with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.results.datasets.reading.shards import MOST_ROWS
from tests.unit.results.uploads import URL, batch_line, jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, Scoring


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


def test_further_fields_keep_the_order_of_their_names_and_their_digits() -> None:
    fields = '{"response_format":{"b":1.0,"a":[{"z":1,"y":12345678901234567890}],"10":0.1},"user":"u"}'
    for line in ({"prompt": "a", "extra": json.loads(fields)}, batch_line(**json.loads(fields))):
        (row,) = upload(jsonl(line)).rows
        assert row.sampling.extra_json == fields


def test_what_a_row_leaves_out_stays_absent() -> None:
    (row,) = upload(jsonl(batch_line(temperature=None))).rows

    assert not row.HasField("sampling")
    assert not row.stop


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]
    (row,) = upload(jsonl(batch_line(messages=[{"role": "user", "content": parts}]))).rows

    assert row.messages[0].content == "One\nTwo"


def test_reference_and_metadata_may_stand_beside_a_batch_lines_body() -> None:
    line = batch_line(metadata={"batch": "b7"}) | {"reference": "B", "metadata": {"candidate": "Ada"}, "level": 3}
    made = upload(jsonl(line))
    (row,) = made.rows

    assert row.reference == '"B"'
    assert json.loads(row.metadata) == {"candidate": "Ada", "level": 3, "batch": "b7"}
    assert made.dataset is not None
    assert sorted(made.dataset.metadata_fields) == ["batch", "candidate", "level"]
    assert not row.sampling.extra_json


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"stream": True}, '"stream" is set'),
        ({"stream_options": {"include_usage": True}}, '"stream_options" is set'),
        ({"n": 2}, '"n" is 2'),
        ({"n": True}, '"n" is True'),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "auto"}, "tools"),
        ({"functions": [{}]}, "tools"),
        ({"modalities": ["text", "audio"]}, "more than text"),
        ({"temperature": 2.5}, '"temperature" is 2.5; it may be 0 to 2'),
        ({"temperature": "0"}, '"temperature" is "0"; it must be a number'),
        ({"temperature": True}, '"temperature" is true; it must be a number'),
        ({"temperature": True}, "must be a number"),
        ({"top_p": -0.1}, '"top_p" is -0.1'),
        ({"max_tokens": 0}, '"max_tokens" is 0; it may be 1 to 1,000,000'),
        ({"max_tokens": 1.5}, "whole number"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "differ"),
        ({"seed": 2**63}, '"seed" is'),
        ({"stop": ["a"] * 5}, '"stop" may be'),
        ({"stop": [""]}, '"stop" may be'),
        ({"stop": [1]}, '"stop" may be'),
        ({"stop": {}}, '"stop" may be'),
        ({"logit_bias": {"1": 10**309}}, "too large"),
        ({"logprobs": True}, '"logprobs" asks for log-probabilities, which are not kept with answers. Leave it out.'),
        ({"top_logprobs": 2}, '"top_logprobs" asks for'),
        ({"response_format": [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}, "nests more than 16"),
        ({"response_format": {"x": "y" * 70_000}}, "further fields"),
        ({"messages": []}, '"messages" is no array'),
        ({"messages": None}, '"messages" is no array'),
        ({"messages": "Why?"}, '"messages" is no array'),
        ({"messages": ["Why?"]}, "Message 1 is no object"),
        ({"messages": [{"role": "user"}]}, "content of message 1"),
        ({"messages": [{"role": "user", "content": []}]}, "content of message 1"),
        ({"messages": [{"role": "user", "content": 5}]}, "content of message 1"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 'the role "robot"; it may be system, developer'),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "has the role"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "no text"),
        ({"messages": [{"role": "user", "content": "x", "name": "ada"}]}, 'Message 1 has "name"'),
        ({"messages": [{"role": "assistant", "content": "x", "tool_calls": [{}]}]}, "Tools are not called"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, '"image_url"'),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}]}, "a part of no text"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "a part of no text"),
        ({"messages": [{"role": "user", "content": "x"}] * 1001}, "1,001 messages"),
        ({"metadata": "x"}, '"metadata" is no object'),
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
        ({"body": []}, '"body" is no object'),
        ({"custom_id": None}, 'no "custom_id"'),
        ({"custom_id": ""}, "0 bytes"),
        ({"custom_id": "é" * 257}, "514 bytes"),
        ({"custom_id": 1.5}, "text or a whole number"),
        ({"custom_id": True}, "text or a whole number"),
        ({"metadata": []}, '"metadata" is no object'),
        ({"metadata": {"level": 1}, "level": 2}, '"level" stands in "metadata" and beside it'),
        ({"metadata": {"x" * 201: 1}}, "over 200 characters"),
        ({"metadata": {"x": "y" * 70_000}}, "metadata has more than 65,536 bytes"),
        ({"reference": {"a": 1}}, 'Only scorer "json"'),
        ({"reference": [[]]}, "The reference is no text"),
        ({"reference": []}, "0 answers"),
        ({"reference": "x" * 70_000}, "more than 65,536 bytes"),
    ],
)
def test_a_batch_line_that_is_none_is_refused_with_the_reason(change: dict[str, Any], reason: str) -> None:
    made = upload(jsonl(batch_line("good"), batch_line("bad") | change))

    assert reason in made.reasons[2]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("B", "The reference is not JSON: Expecting value at character 1."),
        ('"B"', "The reference is no JSON object"),
        ('{"a": ' + "9" * 5000 + "}", "The reference holds a number with too many digits."),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "The reference nests more than 32 objects"),
    ],
)
def test_a_reference_that_the_scorer_json_cannot_read_is_named_as_such(reference: str, reason: str) -> None:
    line = {"prompt": "a", "reference": reference}
    made = upload(jsonl({"prompt": "b", "reference": {"a": 1}}, line), scoring=Scoring(scorer="json"))
    assert made.reasons[2].startswith(reason)


def test_a_plain_line_has_prompt_reference_metadata_id_and_sampling() -> None:
    line = {
        "prompt": "Capital of Peru?",
        "reference": ["Lima", "Lima, Peru"],
        "metadata": {"topic": "geo"},
        "custom_id": 17,
        "source": "atlas",
        "temperature": 0,
        "top_k": 40,
        "context_length": 4096,
        "repeat_penalty": 1.1,
        "stop": "\n",
        "extra": {"min_p": 0.1},
        "frequency_penalty": 0.5,
        "model": "m",
    }
    made = upload(jsonl(line))
    (row,) = made.rows

    assert (row.custom_id, row.messages[0].role, row.messages[0].content) == ("17", "user", "Capital of Peru?")
    assert json.loads(row.reference) == ["Lima", "Lima, Peru"]
    assert json.loads(row.metadata) == {"topic": "geo", "source": "atlas"}
    assert (row.sampling.top_k, row.sampling.context_length, row.sampling.repeat_penalty) == (40, 4096, 1.1)
    assert row.sampling.HasField("temperature")
    assert row.sampling.extra_json == '{"min_p":0.1,"frequency_penalty":0.5}'
    assert list(row.stop) == ["\n"]
    assert made.dataset is not None
    assert made.dataset.format == Dataset.FORMAT_LINES


def test_rows_without_an_id_are_named_by_their_number() -> None:
    made = upload(b'{"prompt": "a"}\n\n   \n{"messages": [{"role": "user", "content": "b"}]}\n')

    assert [row.custom_id for row in made.rows] == ["row-1", "row-2"]


def test_another_field_may_hold_the_id() -> None:
    made = upload(jsonl({"prompt": "a", "key": "k1"}, {"prompt": "b"}), custom_id_field="key")

    assert made.reasons == {2: 'The row has no "key", which is to hold its id.'}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"question": "?"}, 'no "prompt" and no "messages"'),
        ({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, '"prompt" and "messages"'),
        ({"prompt": ""}, '"prompt" is no text'),
        ({"prompt": ["a"]}, '"prompt" is no text'),
        ({"prompt": 5}, '"prompt" is no text'),
        ({"prompt": "a", "extra": []}, '"extra" is no object'),
        ({"prompt": "a", "extra": {"stream": True}}, '"stream" is set'),
        ({"prompt": "a", "extra": {"top_p": 1}, "top_p": 1}, 'stands in "extra" and beside it'),
        ({"prompt": "a", "n": 3}, '"n" is 3'),
        ([1], "no JSON object"),
        ("x", "no JSON object"),
        (None, "no JSON object"),
    ],
)
def test_a_plain_line_that_asks_nothing_is_refused_with_the_reason(line: Any, reason: str) -> None:
    made = upload(jsonl({"prompt": "good"}, line))

    assert reason in made.reasons[2]


def test_an_id_given_twice_is_refused_with_both_line_numbers() -> None:
    made = upload(jsonl({"prompt": "a", "custom_id": "x"}, {"prompt": "b"}, {"prompt": "c", "custom_id": "x"}))

    assert made.reasons == {3: 'The id "x" is already on line 1. Give each row its own.'}


def test_an_id_that_a_row_without_one_would_get_is_refused() -> None:
    made = upload(jsonl({"prompt": "a", "custom_id": "row-2"}, {"prompt": "b"}))

    assert made.reasons == {2: 'The row has no id, and line 1 has "row-2", which it would get. Give it one.'}


def test_the_first_hundred_bad_lines_are_shown_and_all_are_counted() -> None:
    made = upload(b'{"prompt": "fine"}\n' + b"nonsense\n" * 250)

    assert made.bad is not None
    assert made.bad.total == 250
    assert [line.line for line in made.bad.lines] == list(range(2, 102))


def test_shards_hold_a_thousand_rows_and_depend_on_the_content_alone() -> None:
    lines = [json.dumps({"prompt": f"q{i}", "stop": "x", "min_p": 0.5, "top_p": 1}).encode() for i in range(2500)]
    one = upload(b"\n".join(lines))
    other = upload(b"\r\n\r\n".join(lines) + b"\r\n", name="other.txt")

    assert [shard.rows for shard in one.shards] == [MOST_ROWS, MOST_ROWS, 500]
    assert [shard.digest for shard in one.shards] == [shard.digest for shard in other.shards]
    assert one.dataset is not None
    assert other.dataset is not None
    assert one.dataset.digest == other.dataset.digest
    assert one.dataset.digest != upload(b"\n".join(lines[:-1])).dataset.digest  # type: ignore[union-attr]


def test_shards_of_long_rows_stay_below_four_megabytes() -> None:
    made = upload(jsonl(*({"prompt": f"{i}" * 700_000} for i in range(9))))

    assert [shard.rows for shard in made.shards] == [5, 4]


def test_most_max_tokens_is_known_only_where_every_row_has_a_bound() -> None:
    bounded = upload(jsonl({"prompt": "a", "max_tokens": 5}, {"prompt": "b", "max_tokens": 9}))
    open_ = upload(jsonl({"prompt": "a", "max_tokens": 5}, {"prompt": "b"}))

    assert bounded.dataset is not None
    assert open_.dataset is not None
    assert (bounded.dataset.most_max_tokens, open_.dataset.most_max_tokens) == (9, 0)


# -- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scorer", "reference", "reason"),
    [
        ("choice", "Paris", "a letter from A to J"),
        ("numeric", "many", "no number"),
        ("numeric", True, "no number"),
        ("regex", "(", "no pattern"),
        ("regex", "x" * 1001, "no pattern"),
        ("regex", 5, "no pattern"),
        ("json", "Lima", "not JSON"),
        ("json", [{"a": 1}, 1], "no JSON object"),
        ("exact_match", ["Lima", " "], "blank"),
        ("rouge_l", "你好", "no letter a to z"),
        ("numeric", "1" * 101, "no number"),
    ],
)
def test_a_reference_that_its_scorer_cannot_use_is_refused(scorer: str, reference: Any, reason: str) -> None:
    made = upload(jsonl({"prompt": "a", "reference": reference}), scoring=Scoring(scorer=scorer))

    assert reason in made.reasons[1]


@pytest.mark.parametrize(
    ("scorer", "reference", "kept"),
    [
        ("", True, "true"),
        ("exact_match", 5, "5"),
        ("choice", " (B). ", '" (B). "'),
        ("json", [{"a": 1}, {"a": 2}], '[{"a":1},{"a":2}]'),
        ("exact_match", " \t", ""),
        ("numeric", "$1,234.5", '"$1,234.5"'),
        ("regex", r"^\d+$", r'"^\\d+$"'),
        ("json", {"a": [1]}, '{"a":[1]}'),
        ("json", '{"a": 1}', '{"a":1}'),
        ("rouge_l", "Größe", '"Größe"'),
        ("contains", "", ""),
        ("contains", None, ""),
    ],
)
def test_a_reference_is_kept_as_json(scorer: str, reference: Any, kept: str) -> None:
    (row,) = upload(jsonl({"prompt": "a", "reference": reference}), scoring=Scoring(scorer=scorer)).rows

    assert row.reference == kept


def test_choices_name_what_references_may_be() -> None:
    scoring = Scoring(scorer="choice", choices=["Yes", "No", "Maybe"])
    made = upload(jsonl({"prompt": "a", "reference": "yes"}, {"prompt": "b", "reference": "perhaps"}), scoring=scoring)

    assert list(made.reasons) == [2]


def test_references_of_json_have_one_of_the_compared_fields() -> None:
    made = upload(
        jsonl(*({"prompt": "a", "reference": value} for value in ({"x": {"y": 1}}, {"x.y": 2}, {"x": {"z": 1}}))),
        scoring=Scoring(scorer="json", fields=["x.y", "w"]),
    )

    assert list(made.reasons) == [3]


@pytest.mark.parametrize("line", [{"answer": "B"}, {"metadata": {"answer": "B"}}])
def test_another_field_may_hold_the_reference_and_stays_in_the_metadata(line: dict[str, Any]) -> None:
    (row,) = upload(jsonl({"prompt": "a", "reference": "own"} | line), scoring=Scoring(reference_field="answer")).rows

    assert row.reference == '"B"'
    assert json.loads(row.metadata) == {"answer": "B", "reference": "own"}


def test_a_reference_field_that_no_row_has_is_refused() -> None:
    made = upload(jsonl({"prompt": "a", "answer": "B"}), scoring=Scoring(reference_field="anwser"))

    assert made.refused == 'No row has "anwser", which is to hold the reference. Rows have "answer".'
    assert made.refusal is not None
    assert made.refusal.field == "scoring.reference_field"


@pytest.mark.parametrize(
    ("scoring", "field"),
    [
        (Scoring(scorer="bleu"), "scoring.scorer"),
        (Scoring(tolerance=-1), "scoring.tolerance"),
        (Scoring(tolerance=float("nan")), "scoring.tolerance"),
        (Scoring(choices=["a", " A"]), "scoring.choices"),
        (Scoring(choices=[""]), "scoring.choices"),
        (Scoring(choices=["a"]), "scoring.choices"),
        (Scoring(choices=["a", "b" * 81]), "scoring.choices"),
        (Scoring(choices=[str(i) for i in range(201)]), "scoring.choices"),
        (Scoring(fields=[""]), "scoring.fields"),
        (Scoring(reference_field="x" * 201), "scoring.reference_field"),
        (Scoring(answer_pattern="("), "scoring.answer_pattern"),
        (Scoring(answer_pattern="x" * 1001), "scoring.answer_pattern"),
        (Scoring(answer_match=ANSWER_MATCH_FIRST), "scoring.answer_match"),
    ],
)
def test_a_scoring_that_cannot_be_is_refused_by_its_field(scoring: Scoring, field: str) -> None:
    made = upload(jsonl({"prompt": "a"}), scoring=scoring)

    assert made.refusal is not None
    assert made.refusal.field == field
