"""Columns as rows."""

from __future__ import annotations

import json

from tests.unit.results.uploads import jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset


def test_columns_without_a_template_are_refused() -> None:
    assert "need a template" in upload(jsonl({"q": "W"}), format=Dataset.FORMAT_COLUMNS).refused
    assert "need a template" in upload(b"q\nW\n", name="a.csv").refused


def test_lines_with_messages_of_their_own_take_no_template() -> None:
    assert (
        "do not use a template"
        in upload(jsonl({"prompt": "W"}), template="{{prompt}}", format=Dataset.FORMAT_LINES).refused
    )


def test_a_row_whose_columns_are_empty_is_refused() -> None:
    assert "no text" in upload(jsonl({"q": ""}), template="{{q}} ").reasons[1]


def test_columns_are_metadata_but_for_the_id_and_the_reference() -> None:
    row = {"custom_id": "x", "q": "W", "reference": 5, "topic": ["a"], "custom": None}
    made = upload(jsonl(row), template="{{q}}")
    (kept,) = made.rows

    assert (kept.custom_id, kept.reference) == ("x", "5")
    assert json.loads(kept.metadata) == {"q": "W", "topic": ["a"], "custom": None}
    assert made.dataset is not None
    assert list(made.dataset.metadata_fields) == ["q", "topic", "custom"]


def test_a_long_column_that_the_template_puts_in_is_not_kept_twice() -> None:
    (row,) = upload(jsonl({"q": "x" * 200_000, "topic": "a"}), template="{{q}}").rows

    assert json.loads(row.metadata) == {"topic": "a"}
