"""Rows of JSONL and Parquet files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.evaluator.data import tables
from services.evaluator.data.reader import DataError, Reader
from tests.unit.evaluator.data.mirrored import SOURCE, rows_of, source_folder

ROWS = [{"sentence": "One lamp.", "label": 1, "idx": 0}, {"sentence": "Two lamp.", "label": 0, "idx": None}]


def test_jsonl_is_read_with_its_file_hash(tmp_path: Path) -> None:
    content = "".join(json.dumps(row) + "\n" for row in ROWS)
    (source_folder(tmp_path) / "validation.jsonl").write_text(content)
    rows = rows_of(tmp_path)
    assert rows.take([1, 0]) == [{"sentence": "Two lamp.", "label": 0}, {"sentence": "One lamp.", "label": 1}]
    assert rows.revision == hashlib.sha256(content.encode()).hexdigest()


def test_parquet_is_read_like_jsonl(tmp_path: Path) -> None:
    path = source_folder(tmp_path) / "validation.parquet"
    pq.write_table(pa.table({"idx": [0, 1], "sentence": ["One lamp.", "Two lamp."], "label": [1, 0]}), path)
    rows = rows_of(tmp_path)
    assert rows.take([0, 1]) == [{"sentence": "One lamp.", "label": 1}, {"sentence": "Two lamp.", "label": 0}]
    assert rows.revision == hashlib.sha256(path.read_bytes()).hexdigest()


def test_missing_text_reads_as_empty_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    (source_folder(tmp_path) / "validation.jsonl").write_text('\n{"sentence": null, "label": 1}\n\n')
    assert rows_of(tmp_path).take([0]) == [{"sentence": "", "label": 1}]


def test_missing_number_reads_as_null(tmp_path: Path) -> None:
    (source_folder(tmp_path) / "validation.jsonl").write_text('{"sentence": "a", "label": null}\n')
    assert rows_of(tmp_path).take([0]) == [{"sentence": "a", "label": None}]


NESTED = pa.schema(
    [
        ("choices", pa.list_(pa.string())),
        ("options", pa.struct([("A", pa.string()), ("B", pa.string())])),
        ("context", pa.struct([("contexts", pa.list_(pa.string()))])),
    ]
)


NESTED_ROWS = [
    {
        "choices": ["one", None],
        "options": {"A": "a", "B": None, "C": "c"},
        "context": {"contexts": ["x"], "meshes": []},
    },
    {"choices": None, "options": {"A": "b", "B": "d", "C": "e"}, "context": {"contexts": None, "meshes": ["m"]}},
]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_lists_and_structures_are_read_without_missing_texts(tmp_path: Path, suffix: str) -> None:
    path = source_folder(tmp_path) / f"validation.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in NESTED_ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(NESTED_ROWS), path)
    assert Reader(tmp_path).read(SOURCE, "validation", NESTED).take([0, 1]) == [
        {"choices": ["one", ""], "options": {"A": "a", "B": ""}, "context": {"contexts": ["x"]}},
        {"choices": [], "options": {"A": "b", "B": "d"}, "context": {"contexts": []}},
    ]


def test_text_that_looks_like_a_date_stays_text(tmp_path: Path) -> None:
    (source_folder(tmp_path) / "validation.jsonl").write_text('{"sentence": "2026-01-01", "label": 1}\n')
    assert rows_of(tmp_path).take([0])[0]["sentence"] == "2026-01-01"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"sentence": "a", "label": 1}\n{"sentence": ', "line 2 is not JSON"),
        (b'{"sentence": "\xff", "label": 1}\n', "line 1 is not JSON"),
        (b"[1]\n", "line 1 is not a JSON object"),
        (b'{"sentence": "a"}\n', "line 1 has no 'label'"),
        (b'{"text": "a", "label": 1}\n', "line 1 has no 'sentence'"),
        (b'{"sentence": "a", "label": "yes"}\n', "a column has the wrong type"),
        (b'{"sentence": 7, "label": 1}\n', "a column has the wrong type"),
        (b'{"sentence": "\\ud800", "label": 1}\n', "a column has the wrong type"),
        (b'{"sentence": "a", "label": 1.5}\n', "a column has the wrong type"),
        (b'{"sentence": "a", "label": 99999999999999999999}\n', "a column has the wrong type"),
        (b"", "it has no rows"),
    ],
)
def test_broken_jsonl_is_named_with_its_fault(tmp_path: Path, content: bytes, what: str) -> None:
    path = source_folder(tmp_path) / "validation.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        rows_of(tmp_path)
    assert error.value.message.startswith(f"{path} cannot be used: {what}")
    assert error.value.message.endswith("Replace it with an intact copy.")


def test_broken_parquet_is_named_with_its_fault(tmp_path: Path) -> None:
    path = source_folder(tmp_path) / "validation.parquet"
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match=r"validation\.parquet cannot be used: it is not a Parquet file"):
        rows_of(tmp_path)
    pq.write_table(pa.table({"sentence": ["a"]}), path)
    with pytest.raises(DataError, match="it has no column 'label'"):
        rows_of(tmp_path)
    pq.write_table(pa.table({"sentence": ["a"], "label": ["yes"]}), path)
    with pytest.raises(DataError, match="a column has the wrong type"):
        rows_of(tmp_path)


def test_integers_and_texts_are_those_of_arrow_itself() -> None:
    values = [0, -1, 2**63 - 1]
    assert tables.integer_array(values).equals(pa.array(values, pa.int64()))
    assert tables.integer_array([]).equals(pa.array([], pa.int64()))
    assert tables.text_scalar("ü\x1f").equals(pa.scalar("ü\x1f"))
