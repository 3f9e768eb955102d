"""Rows from a mirror, the Hub, and neither."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.errors import InvalidRequestError
from services.evaluator.data.reader import DataError, DataMissingError, Reader, Rows, Source
from services.evaluator.settings import Settings
from tests.unit.evaluator import hub_stub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SOURCE = Source("ours/lamps", "cola", COMMIT)
COLUMNS = pa.schema([("sentence", pa.string()), ("label", pa.int64())])
ROWS = [{"sentence": "One lamp.", "label": 1, "idx": 0}, {"sentence": "Two lamp.", "label": 0, "idx": None}]

# Reads splits of the Hub in a process of its own: its address and offline switch are read at import only.
_READ = """
import sys, pyarrow
from services.evaluator.data.reader import DataMissingError, Reader, Source
reader = Reader(None, probe_s=2)
columns = pyarrow.schema([("sentence", pyarrow.string()), ("label", pyarrow.int64())])
for split in sys.argv[2:]:
    # "@" after a split: at whatever commit the Hub has now.
    source = Source("ours/lamps", "cola", "" if split.endswith("@") else sys.argv[1])
    try:
        rows = reader.read(source, split.rstrip("@"), columns)
        print(len(rows), rows.revision, rows.take([1])[0]["sentence"])
    except DataMissingError as error:
        print(error.message)
"""


def _folder(root: Path) -> Path:
    folder = root / "ours" / "lamps" / "cola"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _read(root: Path | None) -> Rows:
    return Reader(root).read(SOURCE, "validation", COLUMNS)


def _from_hub(home: Path, *splits: str, **environment: str) -> list[str]:
    """What reading each split comes to, one line a split; `environment` sets the Hub's variables."""
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", _READ, COMMIT, *splits]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=True, cwd=home)
    return done.stdout.splitlines()


def test_jsonl_is_read_with_its_file_hash(tmp_path: Path) -> None:
    content = "".join(json.dumps(row) + "\n" for row in ROWS)
    (_folder(tmp_path) / "validation.jsonl").write_text(content)
    rows = _read(tmp_path)
    assert rows.take([1, 0]) == [{"sentence": "Two lamp.", "label": 0}, {"sentence": "One lamp.", "label": 1}]
    assert rows.revision == hashlib.sha256(content.encode()).hexdigest()


def test_parquet_is_read_like_jsonl(tmp_path: Path) -> None:
    path = _folder(tmp_path) / "validation.parquet"
    pq.write_table(pa.table({"idx": [0, 1], "sentence": ["One lamp.", "Two lamp."], "label": [1, 0]}), path)
    rows = _read(tmp_path)
    assert rows.take([0, 1]) == [{"sentence": "One lamp.", "label": 1}, {"sentence": "Two lamp.", "label": 0}]
    assert rows.revision == hashlib.sha256(path.read_bytes()).hexdigest()


def test_missing_text_reads_as_empty_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    (_folder(tmp_path) / "validation.jsonl").write_text('\n{"sentence": null, "label": 1}\n\n')
    assert _read(tmp_path).take([0]) == [{"sentence": "", "label": 1}]


def test_missing_number_reads_as_null(tmp_path: Path) -> None:
    (_folder(tmp_path) / "validation.jsonl").write_text('{"sentence": "a", "label": null}\n')
    assert _read(tmp_path).take([0]) == [{"sentence": "a", "label": None}]


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
    path = _folder(tmp_path) / f"validation.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in NESTED_ROWS))
    else:
        pq.write_table(pa.Table.from_pylist(NESTED_ROWS), path)
    assert Reader(tmp_path).read(SOURCE, "validation", NESTED).take([0, 1]) == [
        {"choices": ["one", ""], "options": {"A": "a", "B": ""}, "context": {"contexts": ["x"]}},
        {"choices": [], "options": {"A": "b", "B": "d"}, "context": {"contexts": []}},
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_first_rows_are_those_of_the_whole_split(tmp_path: Path, suffix: str) -> None:
    path, table = _folder(tmp_path) / f"validation.{suffix}", pa.table({"sentence": list("abcde"), "label": range(5)})
    if suffix == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    else:
        pq.write_table(table, path, row_group_size=2)
    reader = Reader(tmp_path)
    assert len(reader.read(SOURCE, "validation", COLUMNS, 9)) == 5
    assert [row["sentence"] for row in reader.read(SOURCE, "validation", COLUMNS, 2).take([0, 1])] == ["a", "b"]


def test_rows_are_kept_once_while_a_task_holds_them(tmp_path: Path) -> None:
    path = _folder(tmp_path) / "validation.jsonl"
    path.write_text('{"sentence": "a", "label": 1}\n')
    reader = Reader(tmp_path)
    rows = reader.read(SOURCE, "validation", COLUMNS)
    assert reader.read(SOURCE, "validation", COLUMNS) is rows
    path.write_text('{"sentence": "b", "label": 1}\n')
    del rows
    assert reader.read(SOURCE, "validation", COLUMNS).take([0])[0]["sentence"] == "b"


def test_text_that_looks_like_a_date_stays_text(tmp_path: Path) -> None:
    (_folder(tmp_path) / "validation.jsonl").write_text('{"sentence": "2026-01-01", "label": 1}\n')
    assert _read(tmp_path).take([0])[0]["sentence"] == "2026-01-01"


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
    path = _folder(tmp_path) / "validation.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        _read(tmp_path)
    assert error.value.message.startswith(f"{path} cannot be used: {what}")
    assert error.value.message.endswith("Replace it with an intact copy.")


def test_broken_parquet_is_named_with_its_fault(tmp_path: Path) -> None:
    path = _folder(tmp_path) / "validation.parquet"
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match=r"validation\.parquet cannot be used: it is not a Parquet file"):
        _read(tmp_path)
    pq.write_table(pa.table({"sentence": ["a"]}), path)
    with pytest.raises(DataError, match="it has no column 'label'"):
        _read(tmp_path)
    pq.write_table(pa.table({"sentence": ["a"], "label": ["yes"]}), path)
    with pytest.raises(DataError, match="a column has the wrong type"):
        _read(tmp_path)


def test_mirror_that_lacks_a_split_says_which(tmp_path: Path) -> None:
    _folder(tmp_path)
    with pytest.raises(DataMissingError) as error:
        _read(tmp_path)
    assert error.value.message == (
        f"The data set ours/lamps (cola, validation) is not in TOUCHSTONE_DATA_DIR: {tmp_path} has no "
        "ours/lamps/cola/validation.jsonl or .parquet. Add it with `touchstone data pull`, leave the task out, or ask "
        "without examples where this is the split they come from."
    )


def test_data_dir_must_be_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", str(tmp_path / "absent"))
    with pytest.raises(InvalidRequestError, match="absent is not a folder"):
        Settings.from_env()
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", str(tmp_path))
    assert Settings.from_env().data_dir == tmp_path
    monkeypatch.setenv("TOUCHSTONE_DATA_DIR", "")
    assert Settings.from_env().data_dir is None


def test_hub_rows_come_with_their_commit_and_offline_only_with_that_commit(tmp_path: Path) -> None:
    with hub_stub.serving("ours/lamps", COMMIT) as address:
        validation, test, unpinned = _from_hub(tmp_path, "validation", "test", "train@", HF_ENDPOINT=address)
    assert validation == f"5 {COMMIT} There are 1 lamps."
    assert unpinned == f"8 {COMMIT} There are 1 lamps."
    assert "(cola, test) is missing: the Hugging Face Hub does not give it (Unknown split" in test
    assert _from_hub(tmp_path, "train", HF_HUB_OFFLINE="1") == [f"8 {COMMIT} There are 1 lamps."]
    cached = tmp_path / "datasets" / "ours___lamps" / "cola" / "0.0.0" / COMMIT
    cached.rename(cached.with_name("f" * 40))
    message, unpinned = _from_hub(tmp_path, "train", "train@", HF_HUB_OFFLINE="1")
    assert unpinned == f"8 {'f' * 40} There are 1 lamps."
    assert f"the local cache holds revision {'f' * 40}, not {COMMIT}" in message


REMEDY = (
    "Give the evaluator a network, or a mirror (TOUCHSTONE_DATA_DIR) that holds ours/lamps/cola/validation.jsonl, "
    "filled elsewhere with `touchstone data pull`; or leave the task out."
)


def test_unreachable_hub_is_reported_within_seconds_with_the_remedy(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    started = time.monotonic()
    (message,) = _from_hub(tmp_path, "validation", HF_ENDPOINT=address)
    assert time.monotonic() - started < 100
    assert message.startswith(
        "The data set ours/lamps (cola, validation) is missing: the Hugging Face Hub does not give it ("
    )
    assert message.endswith(REMEDY)


def test_silent_hub_is_given_up_after_the_probe_time(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        (message,) = _from_hub(tmp_path, "validation", HF_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert time.monotonic() - started < 100
    assert message.startswith("The data set ours/lamps (cola, validation) is missing: the Hugging Face Hub does not ")
    assert message.endswith(REMEDY)


def test_offline_without_a_cache_is_reported_at_once(tmp_path: Path) -> None:
    (message,) = _from_hub(tmp_path, "validation", HF_HUB_OFFLINE="1")
    assert message.startswith("The data set ours/lamps (cola, validation) is missing: ")
    assert message.endswith(REMEDY)
