"""What an upload would make of a file, also where it would be refused."""

from __future__ import annotations

import json
from typing import Any

from services.results.datasets.frames import HEADER, Kind, Limits, Refusal
from services.results.datasets.reading.previewing import preview
from tests.unit.results.uploads import jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions
from touchstone.v1.dataset_service_pb2 import PreviewDatasetResponse

ROW = {"instruction": "Name a gas.", "input": "", "output": "neon"}


def previewed(data: bytes, **options: Any) -> PreviewDatasetResponse | Refusal:
    frames: list[bytes] = []
    preview([data], DatasetOptions(name="rows", **options), Limits(), frames.append)
    (only,) = frames
    kind, length = HEADER.unpack_from(only)
    payload = only[HEADER.size :]
    assert len(payload) == length
    return Refusal.parse(payload) if kind == Kind.REFUSED else PreviewDatasetResponse.FromString(payload)


def found(data: bytes, **options: Any) -> PreviewDatasetResponse:
    made = previewed(data, **options)
    assert isinstance(made, PreviewDatasetResponse), made
    return made


def test_a_preview_says_what_an_upload_makes() -> None:
    data = jsonl(*[{**ROW, "n": place} for place in range(9)])
    made = found(data)

    assert made.dataset == upload(data).dataset
    assert (made.rows_found, made.dataset.rows, made.dataset.rows_with_reference) == (9, 9, 9)
    assert [row.custom_id for row in made.first_rows] == [f"row-{place}" for place in range(1, 6)]
    assert list(made.columns) == ["instruction", "input", "output", "n"]
    assert [(one.format, one.reading) for one in made.readings] == [(Dataset.FORMAT_ALPACA, made.dataset.reading)]
    assert not made.why


def test_rows_that_do_not_fit_are_counted_and_the_others_shown() -> None:
    made = found(jsonl(ROW, {"instruction": "a"}, ROW, {"output": "b"}))

    assert (made.rows_found, made.dataset.rows, made.bad_lines_total) == (4, 2, 2)
    assert [(line.line, "output" in line.reason) for line in made.bad_lines] == [(2, True), (4, False)]
    assert len(made.first_rows) == 2


def test_another_reading_of_lines_with_prompts_is_offered() -> None:
    made = found(jsonl({"prompt": "a", "completion": "b"}))

    assert made.dataset.format == Dataset.FORMAT_LINES
    assert {one.format for one in made.readings} == {Dataset.FORMAT_LINES, Dataset.FORMAT_PROMPT_COMPLETION}


def test_what_the_uploader_must_say_is_no_error() -> None:
    made = found(json.dumps([ROW | {"question": "a", "answer": "b"}]).encode())
    assert made.field == "format"
    assert {one.format for one in made.readings} == {Dataset.FORMAT_ALPACA, Dataset.FORMAT_QUESTION_ANSWER}

    made = found(b"a;b\n1;2\n")
    assert (made.field, list(made.columns)) == ("template", ["a", "b"])

    last = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    assert found(jsonl(last)).field == "last_assistant"


def test_a_file_that_cannot_be_read_is_refused() -> None:
    for data, options in ((b"PAR1", {}), (b"", {}), (jsonl({"a": 1}), {"template": "no column"})):
        assert isinstance(previewed(data, **options), Refusal)
