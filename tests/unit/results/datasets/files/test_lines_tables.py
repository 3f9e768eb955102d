"""Rows of CSV files."""

from __future__ import annotations

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
