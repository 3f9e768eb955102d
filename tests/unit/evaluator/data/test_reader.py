"""Rows from a mirror, the Hub, and neither."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.errors import InvalidRequestError
from services.evaluator.data.reader import DataMissingError, Reader, Shelf
from services.evaluator.settings import Settings
from tests.unit.evaluator.data.mirrored import COLUMNS, SOURCE, rows_of, source_folder


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_first_rows_are_those_of_the_whole_split(tmp_path: Path, suffix: str) -> None:
    path, table = (
        source_folder(tmp_path) / f"validation.{suffix}",
        pa.table({"sentence": list("abcde"), "label": range(5)}),
    )
    if suffix == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    else:
        pq.write_table(table, path, row_group_size=2)
    reader = Reader(tmp_path)
    assert len(reader.read(SOURCE, "validation", COLUMNS, 9)) == 5
    assert [row["sentence"] for row in reader.read(SOURCE, "validation", COLUMNS, 2).take([0, 1])] == ["a", "b"]


def test_rows_are_kept_once_while_a_task_holds_them(tmp_path: Path) -> None:
    path = source_folder(tmp_path) / "validation.jsonl"
    path.write_text('{"sentence": "a", "label": 1}\n')
    reader = Reader(tmp_path)
    rows = reader.read(SOURCE, "validation", COLUMNS)
    assert reader.read(SOURCE, "validation", COLUMNS) is rows
    path.write_text('{"sentence": "b", "label": 1}\n')
    del rows
    assert reader.read(SOURCE, "validation", COLUMNS).take([0])[0]["sentence"] == "b"


def test_mirror_that_lacks_a_split_says_which(tmp_path: Path) -> None:
    source_folder(tmp_path)
    with pytest.raises(DataMissingError) as error:
        rows_of(tmp_path)
    assert error.value.message == (
        f"The data set ours/lamps (cola, validation) is not in TOUCHSTONE_DATA_DIR: {tmp_path} has no "
        "ours/lamps/cola/validation.jsonl or .parquet. Add it with `touchstone data pull`, or leave the task out. "
        "If only the examples come from this split, set shots to 0."
    )


def test_data_dir_must_be_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", str(tmp_path / "absent"))
    with pytest.raises(InvalidRequestError, match="absent is not a folder"):
        Settings.from_env()
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", str(tmp_path))
    assert Settings.from_env().data_dir == tmp_path
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", "")
    assert Settings.from_env().data_dir is None


class Holder:
    def __init__(self) -> None:
        self.loaded = True

    def unload(self) -> None:
        self.loaded = False


def holders(count: int) -> list[Holder]:
    return [Holder() for _ in range(count)]


def test_the_tables_used_last_stay_loaded() -> None:
    shelf, (first, second, third) = Shelf(25), holders(3)
    shelf.used(first, 10)
    shelf.used(second, 10)
    shelf.used(first, 10)
    shelf.used(third, 10)
    assert [first.loaded, second.loaded, third.loaded] == [True, False, True]


def test_a_table_larger_than_the_shelf_stays_while_it_is_used() -> None:
    shelf, (large, small) = Shelf(25), holders(2)
    shelf.used(large, 100)
    assert large.loaded
    shelf.used(small, 10)
    assert not large.loaded
    assert small.loaded


def test_a_table_counts_once_however_often_it_is_used() -> None:
    shelf, (first, second) = Shelf(25), holders(2)
    for _ in range(10):
        shelf.used(first, 10)
        shelf.used(second, 10)
    assert first.loaded
    assert second.loaded
