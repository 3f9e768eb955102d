"""Batch lines and plain lines: what is kept of them, and what is refused with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.results.uploads import batch_line, jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset


def test_reference_and_metadata_may_stand_beside_a_batch_lines_body() -> None:
    line = batch_line(metadata={"batch": "b7"}) | {"reference": "B", "metadata": {"candidate": "Ada"}, "level": 3}
    made = upload(jsonl(line))
    (row,) = made.rows

    assert row.reference == '"B"'
    assert json.loads(row.metadata) == {"candidate": "Ada", "level": 3, "batch": "b7"}
    assert made.dataset is not None
    assert sorted(made.dataset.metadata_fields) == ["batch", "candidate", "level"]
    assert not row.sampling.extra_json


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
        "min_p": 0.1,
        "extra": {"verbosity": "low"},
        "frequency_penalty": 0.5,
        "model": "m",
    }
    made = upload(jsonl(line))
    (row,) = made.rows

    assert (row.custom_id, row.messages[0].role, row.messages[0].content) == ("17", "user", "Capital of Peru?")
    assert json.loads(row.reference) == ["Lima", "Lima, Peru"]
    assert json.loads(row.metadata) == {"topic": "geo", "source": "atlas"}
    assert (row.sampling.top_k, row.sampling.context_length, row.sampling.repeat_penalty) == (40, 4096, 1.1)
    assert row.sampling.min_p == 0.1
    assert row.sampling.HasField("temperature")
    assert row.sampling.extra_json == '{"verbosity":"low","frequency_penalty":0.5}'
    assert list(row.stop) == ["\n"]
    assert made.dataset is not None
    assert made.dataset.format == Dataset.FORMAT_LINES


def test_rows_without_an_id_are_named_by_their_number() -> None:
    made = upload(b'{"prompt": "a"}\n\n   \n{"messages": [{"role": "user", "content": "b"}]}\n')

    assert [row.custom_id for row in made.rows] == ["row-1", "row-2"]


def test_another_field_may_hold_the_id() -> None:
    made = upload(jsonl({"prompt": "a", "key": "k1"}, {"prompt": "b"}), custom_id_field="key")

    assert made.reasons == {2: 'The row has no "key", which must hold its id.'}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"question": "?"}, 'neither "prompt" nor "messages"'),
        ({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, '"prompt" and "messages"'),
        ({"prompt": ""}, '"prompt" must be a string'),
        ({"prompt": ["a"]}, '"prompt" must be a string'),
        ({"prompt": 5}, '"prompt" must be a string'),
        ({"prompt": "a", "extra": []}, '"extra" must be an object'),
        ({"prompt": "a", "extra": {"stream": True}}, '"stream" is set'),
        ({"prompt": "a", "extra": {"top_p": 1}, "top_p": 1}, 'is both inside and outside "extra"'),
        ({"prompt": "a", "n": 3}, '"n" must be 1'),
        ([1], "not a JSON object"),
        ("x", "not a JSON object"),
        (None, "not a JSON object"),
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

    assert made.reasons == {2: 'The row has no id, and line 1 already has its default id "row-2". Give it an id.'}


def test_the_first_hundred_bad_lines_are_shown_and_all_are_counted() -> None:
    made = upload(b'{"prompt": "fine"}\n' + b"nonsense\n" * 250)

    assert made.bad is not None
    assert made.bad.total == 250
    assert [line.line for line in made.bad.lines] == list(range(2, 102))


def test_bad_lines_are_counted_by_reason_in_the_whole_file() -> None:
    bad: dict[int, object] = {
        3: {"prompt": "a", "custom_id": "same"},
        10: {"prompt": 7},
        7: {"prompt": "a", "temperature": "hot"},
    }
    rows = [next((row for n, row in bad.items() if place % n == 0), {"prompt": "a"}) for place in range(1, 5001)]
    made = upload(jsonl(*rows))

    assert made.bad is not None
    same = [place for place in range(6, 5001) if place % 3 == 0]
    prompts = [place for place in range(1, 5001) if place % 10 == 0 and place % 3]
    hot = [place for place in range(1, 5001) if place % 7 == 0 and place % 3 and place % 10]
    assert made.bad.total == len(same) + len(prompts) + len(hot)
    assert [(one.count, list(one.lines)) for one in made.bad.reasons] == [
        (len(same), same[:20]),
        (len(hot), hot[:20]),
        (len(prompts), prompts[:20]),
    ]
    assert made.bad.reasons[0].reason == 'The id "same" is already on line 3. Give each row its own.'
    assert '"prompt" must be' in made.bad.reasons[2].reason
