"""Rows of CSV files."""

from __future__ import annotations

import json

import pytest

from services.results.datasets.files.lines import MOST_BYTES
from tests.unit.results.uploads import upload
from touchstone.v1.dataset_pb2 import Dataset
from touchstone.v1.scoring_pb2 import Scoring


def test_a_csv_file_is_told_by_its_name() -> None:
    text = 'question,answer,id\r\n"What is, ""this""?",B,7\r\n"over\r\ntwo lines",,8\r\n,,\r\n'
    scoring = Scoring(reference_field="answer")
    for name in ("a.csv", "A.CSV", "folder/a.csv.gz"):
        made = upload(text.encode(), name=name, template="{{question}}", scoring=scoring, custom_id_field="id")

        assert [(r.custom_id, r.messages[0].content, r.reference) for r in made.rows] == [
            ("7", 'What is, "this"?', '"B"'),
            ("8", "over\r\ntwo lines", ""),
        ]
        assert made.dataset is not None
        assert (made.dataset.format, made.dataset.rows_with_reference) == (Dataset.FORMAT_CSV, 1)


def test_a_bad_record_is_named_by_the_line_on_which_it_begins() -> None:
    text = b'q,r\n"a\nb",1\nx\n"c\nd",2,3\n\n"e"f,1\ng\rh,1\n\xff,1\nfine,1\n'
    made = upload(text, name="a.csv", template="{{q}}")

    assert list(made.reasons) == [4, 5, 8, 9, 10]
    assert made.reasons[4] == "The row has 1 cells and the header 2. Quote cells with commas."
    assert "not CSV" in made.reasons[8]
    assert "carriage return" in made.reasons[9]
    assert "not UTF-8" in made.reasons[10]


def test_a_quote_that_is_never_closed_is_named_where_it_opens() -> None:
    made = upload(b'q,r\nfine,1\n"open,1\n' + b"x,2\n" * 5, name="a.csv", template="{{q}}")

    assert made.reasons == {3: "The row is not CSV: a quote is never closed."}


def test_a_record_over_many_lines_is_bounded() -> None:
    cell = b'"' + b"x\n" * (MOST_BYTES // 2) + b'x",1\n'
    made = upload(b"q,r\n" + cell + b"fine,1\n", name="a.csv", template="{{q}}")

    assert made.reasons[2].startswith("The row has more than 2,097,152 bytes")


def test_a_csv_file_of_a_header_alone_holds_no_rows() -> None:
    assert "no rows" in upload(b"q,r\n", name="a.csv", template="{{q}}").refused
    assert "no rows" in upload(b"", name="a.csv", template="{{q}}").refused


@pytest.mark.parametrize("name", ["rows", "rows.csv"])
@pytest.mark.parametrize("said", ["sep=;", '"sep=;"', "\ufeffsep=;", "\nsep=;"])
def test_a_first_line_may_say_the_separator(name: str, said: str) -> None:
    """Excel writes and obeys it, also where commas would fit."""
    made = upload(f"{said}\r\nquestion, short;answer\r\nWhat, then?;b\r\n".encode(), name=name, template="{{answer}}")

    assert [json.loads(row.metadata) for row in made.rows] == [{"question, short": "What, then?", "answer": "b"}]
    assert made.dataset is not None
    assert made.dataset.reading.startswith("CSV with semicolons, ")


@pytest.mark.parametrize("name", ["rows", "rows.csv"])
def test_bars_separate_columns(name: str) -> None:
    made = upload(b'question|answer\na, b|c\n"d|e"|f\n', name=name)

    assert [row.messages[0].content for row in made.rows] == ["a, b", "d|e"]
    markdown = b"| question | answer |\n| --- | --- |\n| a | b |\n"
    assert upload(markdown, name=name).refused == (
        "The file is a table in Markdown. Save it as CSV, without the outer bars."
    )


def test_a_cell_with_another_line_end_is_one_cell() -> None:
    rows = "".join(f"a\u2028{place}; b\x85c\n" for place in range(3))
    made = upload(f"question;answer\n{rows}".encode(), name="rows")

    assert [row.messages[0].content for row in made.rows] == [f"a\u2028{place}" for place in range(3)]


def test_a_table_with_a_ragged_row_is_still_a_table() -> None:
    made = upload(b"question;answer\na;b\nc\nd;e;f\n", name="rows")

    assert made.reasons == {
        3: "The row has 1 cells and the header 2. Quote cells with semicolons.",
        4: "The row has 3 cells and the header 2. Quote cells with semicolons.",
    }


def test_columns_without_names_are_counted() -> None:
    made = upload(b"question,,answer,\na,,b,\n", name="rows.csv")
    assert made.refused == "The header has no name for columns 2 and 4. Name or remove them."

    # One is allowed, and is no part of the prompt.
    (row,) = upload(b"question,,answer\na,x,b\n", name="rows.csv").rows
    assert (row.messages[0].content, row.metadata) == ("a", '{"":"x"}')


@pytest.mark.parametrize("head", [b"<!DOCTYPE html>\n<p>a, b</p>", b"<html><body>a", b"<?xml version='1.0'?>"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_web_page_is_refused_by_name(head: bytes, name: str) -> None:
    assert upload(head, name=name).refused.startswith("The file is a web page or XML. Download the data itself")
