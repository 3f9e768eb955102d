"""What an upload would make of a file, also where it would be refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

import pyarrow
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from services.results.datasets.frames import HEADER, Kind, Limits, Refusal
from services.results.datasets.reading.previewing import preview
from tests.parts import NIGHTLY
from tests.unit.results.datasets.files.workbooks import texts, workbook
from tests.unit.results.datasets.reading.kinds import KINDS
from tests.unit.results.uploads import jsonl, upload
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions
from touchstone.v1.dataset_service_pb2 import PreviewDatasetResponse

ROW = {"instruction": "Name a gas.", "input": "", "output": "neon"}


def previewed(data: bytes, **options: Any) -> PreviewDatasetResponse | Refusal:
    frames: list[bytes] = []
    preview([data], DatasetOptions(**{"name": "rows", **options}), Limits(), frames.append)
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

    assert made.dataset.format == Dataset.FORMAT_PROMPT_COMPLETION
    assert {one.format for one in made.readings} == {Dataset.FORMAT_LINES, Dataset.FORMAT_PROMPT_COMPLETION}


def test_what_the_uploader_must_say_is_no_error() -> None:
    made = found(json.dumps([ROW | {"question": "a", "answer": "b"}]).encode())
    assert made.field == "format"
    assert {one.format for one in made.readings} == {Dataset.FORMAT_ALPACA, Dataset.FORMAT_QUESTION_ANSWER}

    made = found(b"a;b\n1;2\n")
    assert (made.field, list(made.columns)) == ("template", ["a", "b"])

    last = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    assert found(jsonl(last)).field == "last_assistant"


def test_a_workbooks_sheets_are_named_also_where_none_is_read() -> None:
    sheets = '<sheet name="A" sheetId="1" r:id="rId4"/><sheet name="B" sheetId="2" r:id="rId1"/>'
    data = workbook(texts(("question", "answer"), ("a", "b")), sheets=sheets)

    for options, field in (({}, "sheet"), ({"sheet": "C"}, "sheet"), ({"sheet": "B"}, "")):
        made = found(data, **options)
        assert (list(made.sheets), made.field) == (["A", "B"], field)
    assert made.dataset == upload(data, sheet="B").dataset


def test_a_file_that_cannot_be_read_is_refused() -> None:
    for data, options in ((b"PAR1", {}), (b"", {}), (jsonl({"a": 1}), {"template": "no column"})):
        assert isinstance(previewed(data, **options), Refusal)


def _table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, "") for name in names] for row in rows]
    texts = [tuple(one if isinstance(one, str) else json.dumps(one) for one in each) for each in cells]
    return [tuple(names), *texts]


def _separated(rows: list[dict[str, Any]], separator: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(_table(rows))
    return text.getvalue().encode()


def _sheet(rows: list[dict[str, Any]]) -> bytes:
    return workbook(texts(*(tuple(map(escape, row)) for row in _table(rows))))


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    names, *cells = _table(rows)
    file = io.BytesIO()
    columns = zip(*cells, strict=True)
    parquet.write_table(pyarrow.table(dict(zip(names, map(list, columns), strict=True))), file)
    return file.getvalue()


_CONTAINERS: list[Callable[[list[dict[str, Any]]], bytes]] = [
    lambda rows: jsonl(*rows),
    lambda rows: json.dumps(rows).encode(),
    lambda rows: yaml.safe_dump(rows).encode(),
    lambda rows: _separated(rows, ","),
    lambda rows: _separated(rows, ";"),
    lambda rows: _separated(rows, "\t"),
    lambda rows: _separated(rows, "|"),
    _sheet,
    _parquet,
]


_HOLES: st.SearchStrategy[tuple[int, int, Any]] = st.tuples(
    st.integers(0, 7), st.integers(0, 5), st.sampled_from([None, "", 7, ["a"], {}])
)


@settings(max_examples=300 if NIGHTLY else 60)
@given(
    kind=st.sampled_from([*KINDS]),
    container=st.sampled_from(_CONTAINERS),
    rows=st.integers(1, 8),
    holes=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 5), st.sampled_from([None, "", 7, ["a"], {}])), max_size=3
    ),
    cut=st.one_of(st.none(), st.integers(0, 300)),
    format_=st.sampled_from([Dataset.FORMAT_UNSPECIFIED, Dataset.FORMAT_ALPACA, Dataset.FORMAT_LINES, 99]),
    template=st.sampled_from(["", "{{question}}"]),
)
def test_a_preview_and_an_upload_agree(
    kind: str,
    container: Callable[[list[dict[str, Any]]], bytes],
    rows: int,
    holes: list[tuple[int, int, Any]],
    cut: int | None,
    format_: Any,
    template: str,
) -> None:
    """Whatever the kind, what holds its rows, which values are missing or odd, and where the file ends."""
    made = [dict(KINDS[kind]) for _ in range(rows)]
    for row, column, value in holes:
        if row < rows and column < len(KINDS[kind]):
            made[row][list(KINDS[kind])[column]] = value
    data = container(made)
    data = data[: len(data) - cut] if cut is not None else data
    options: dict[str, Any] = {"format": format_, "template": template, "name": "rows"}

    kept, shown = upload(data, **options), previewed(data, **options)

    if isinstance(shown, Refusal):
        assert kept.refusal == shown
        return
    if shown.why:
        assert kept.refusal == Refusal(shown.why, shown.field)
        return
    if shown.bad_lines_total:
        assert kept.bad is not None
        assert (list(kept.bad.lines), kept.bad.total) == (list(shown.bad_lines), shown.bad_lines_total)
        assert list(kept.bad.reasons) == list(shown.reasons)
        assert sum(one.count for one in shown.reasons) + shown.other_lines == shown.bad_lines_total
        return
    assert kept.dataset == shown.dataset
    assert kept.rows[:5] == list(shown.first_rows)
    assert shown.rows_found == shown.dataset.rows
