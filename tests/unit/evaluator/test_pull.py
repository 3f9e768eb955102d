"""Fetching a suite's data into a mirror, with the Hub played by a function."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.evaluator.catalogue import Catalogue, TaskNotFoundError
from services.evaluator.data import reader
from services.evaluator.data.reader import DataError, DataMissingError, Reader, Source
from services.evaluator.pull import pull
from services.evaluator.suites import shipped
from tests import suite_rows
from touchstone.v1 import job_pb2, suite_pb2

COMMIT = "c30699e8356da336a370243923dbaf21066bb9fe"
ANATOMY = Path("cais/mmlu/anatomy")


class FakeHub:
    """Gives rows of our own at the revision asked for, but for the splits in `silent`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.silent: set[str] = set()

    def __call__(self, dataset: str, config: str, split: str, revision: str) -> tuple[pa.Table, str]:
        self.asked.append(f"{config}/{split}")
        if f"{config}/{split}" in self.silent:
            raise reader.HubError("the Hugging Face Hub did not answer within 8 s")
        rows = suite_rows.rows(dataset, config, split, 6)
        return pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": "{}"}), revision or "f" * 40


def _pull(suite: str, root: Path, source: FakeHub) -> list[str]:
    lines: list[str] = []
    pull(suite, root, lines.append, source)
    return lines


def test_pull_fetches_every_split_of_the_suite_with_its_commit(tmp_path: Path) -> None:
    source = FakeHub()
    lines = _pull("mmlu", tmp_path, source)
    assert len(source.asked) == len(set(source.asked)) == 114
    assert lines[2] == f"cais/mmlu (anatomy, test): 6 rows of commit {COMMIT[:12]}, written"
    assert lines[-1] == f"mmlu: 114 splits in {tmp_path}, 114 of them new."
    assert not list(tmp_path.rglob("*.partial"))
    assert pq.read_schema(tmp_path / ANATOMY / "test.parquet").metadata is None
    plans = Catalogue(tmp_path).plan(job_pb2.SuiteWork(suite="mmlu", shots=5), suite_pb2.MODE_LOGLIKELIHOOD, 32)
    assert len(plans) == 57


def test_revision_of_a_pulled_split_names_commit_and_file(tmp_path: Path) -> None:
    _pull("mmlu", tmp_path, FakeHub())
    reader, columns = Reader(tmp_path), pa.schema([("question", pa.string())])
    source = Source("cais/mmlu", "anatomy", COMMIT)
    commit, _, digest = reader.read(source, "test", columns).revision.partition(", sha256:")
    assert commit == COMMIT
    assert len(digest) == 64
    # Another file under the same name is no longer what was pulled.
    pq.write_table(pa.table({"question": ["Which?"]}), tmp_path / ANATOMY / "test.parquet")
    assert len(Reader(tmp_path).read(source, "test", columns).revision) == 64


def test_interrupted_pull_goes_on_where_it_was(tmp_path: Path) -> None:
    source = FakeHub()
    source.silent = {"anatomy/dev"}
    with pytest.raises(DataMissingError) as error:
        _pull("mmlu", tmp_path, source)
    assert error.value.message.startswith("The data set cais/mmlu (anatomy, dev) is missing: the Hugging Face Hub did")
    assert source.asked == ["abstract_algebra/test", "abstract_algebra/dev", "anatomy/test", "anatomy/dev"]
    assert not (tmp_path / ANATOMY / "dev.parquet").exists()
    again = FakeHub()
    lines = _pull("mmlu", tmp_path, again)
    assert len(again.asked) == 111
    assert lines[0] == f"cais/mmlu (abstract_algebra, test): 6 rows of commit {COMMIT[:12]}, already there"
    assert _pull("mmlu", tmp_path, again)[-1] == f"mmlu: 114 splits in {tmp_path}, 0 of them new."


def test_damaged_and_outdated_splits_are_fetched_again(tmp_path: Path) -> None:
    _pull("mmlu", tmp_path, FakeHub())
    (tmp_path / ANATOMY / "test.parquet").write_bytes(b"half a fi")
    noted = tmp_path / ANATOMY / "dev.origin.json"
    noted.write_text(noted.read_text().replace(COMMIT, "0" * 40))
    source = FakeHub()
    _pull("mmlu", tmp_path, source)
    assert source.asked == ["anatomy/test", "anatomy/dev"]


def test_files_that_no_pull_has_written_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / ANATOMY
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("mine\n")
    (folder / "dev.parquet").write_bytes(b"mine, too")
    lines = _pull("mmlu", tmp_path, FakeHub())
    assert "cais/mmlu (anatomy, test): unchanged: test.jsonl was not written by a pull" in lines
    assert "cais/mmlu (anatomy, dev): unchanged: dev.parquet was not written by a pull" in lines
    assert (folder / "dev.parquet").read_bytes() == b"mine, too"


def test_bundled_suite_needs_no_fetching(tmp_path: Path) -> None:
    source = FakeHub()
    assert _pull("demo", tmp_path, source) == ["demo: nothing to fetch, its data is part of Touchstone."]
    assert source.asked == []


def test_unknown_suite_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TaskNotFoundError, match=r"Suite mmul not found\. Suites: demo, glue,"):
        _pull("mmul", tmp_path, FakeHub())


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cais").write_text("a file in the way")
    with pytest.raises(DataError, match=r"anatomy|abstract_algebra.*cannot be written: .* Choose a directory"):
        _pull("mmlu", tmp_path, FakeHub())


def test_every_shipped_suite_can_be_fetched(tmp_path: Path) -> None:
    for suite in shipped():
        if suite != "glue":  # its rows are made elsewhere
            assert _pull(suite, tmp_path, FakeHub())
