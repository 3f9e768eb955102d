"""Splits that somebody asks for by name, as JSON lines: from a mirror, the bundled data, and the Hub."""

from __future__ import annotations

import datetime
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.errors import InvalidRequestError, NotFoundError, UnavailableError
from services.evaluator.data.reader import HubError, Origin
from services.evaluator.hub_import.splits import SplitReader
from tests.unit.evaluator import hub_stub
from tests.unit.evaluator.hub_import.made import COMMIT, LINES, giving, opened, request
from touchstone.v1.suite_pb2 import DataSource


def test_a_pulled_split_comes_with_the_commit_it_was_pulled_at(mirror: Path) -> None:
    path = mirror / "ours/lamps/default/test.jsonl"
    digest = hashlib.sha256(LINES).hexdigest()
    Origin(COMMIT, digest, 3).note(path)

    for revision in ("", COMMIT, digest):
        source, _ = opened(SplitReader(mirror), request(revision=revision))
        assert source.revision == f"{COMMIT}, sha256:{digest}"
    with pytest.raises(NotFoundError, match="cannot confirm that its copy of"):
        opened(SplitReader(mirror), request(revision="f" * 40))


def test_a_data_set_of_the_mirror_is_read_nowhere_else(mirror: Path) -> None:
    with pytest.raises(NotFoundError, match="has no default with a split other"):
        opened(SplitReader(mirror, giving(pa.table({"n": [1]}))), request(split="other"))


def test_a_hub_split_comes_with_its_commit_and_without_what_no_json_holds() -> None:
    table = pa.table(
        {
            "q": ["Why?", None],
            "score": [0.5, float("nan")],
            "day": [datetime.date(2026, 1, 2), None],
            "image": pa.array(
                [{"bytes": b"x", "path": "x"}, None], pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            ),
            "parts": [[{"text": "a"}], []],
        }
    )
    source, rows = opened(SplitReader(None, giving(table)), request())

    assert source.revision == COMMIT
    assert rows == [
        {"q": "Why?", "score": 0.5, "day": "2026-01-02", "parts": [{"text": "a"}]},
        {"q": None, "score": None, "day": None, "parts": []},
    ]


def test_bundled_data_can_be_taken() -> None:
    source, rows = opened(SplitReader(None), request(dataset="demo", config="sentiment", split="validation", limit=5))

    assert len(rows) == 5
    assert opened(SplitReader(None), request(dataset="demo", config="sentiment", split="validation"))[0] == source
    with pytest.raises(NotFoundError, match="bundled data has no"):
        opened(SplitReader(None), request(dataset="demo", config="nothing"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dataset", ""),
        ("dataset", ".."),
        ("dataset", "../secret"),
        ("dataset", "/etc/passwd"),
        ("dataset", "a/b/c"),
        ("dataset", "a\0b"),
        ("dataset", "a/" + "b" * 100),
        ("config", "../../x"),
        ("config", "a/b"),
        ("split", ""),
        ("split", ".."),
        ("split", "train[:10]"),
        ("split", "a/b"),
        ("revision", "a b"),
    ],
)
def test_names_that_are_none_are_refused_by_their_field(mirror: Path, field: str, value: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        opened(SplitReader(mirror), request(**{field: value}))
    assert refused.value.field == f"source.{field}"


def test_a_folder_where_the_evaluator_runs_is_no_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "var/state").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NotFoundError, match="is a local folder"):
        opened(SplitReader(None, giving(pa.table({"n": [1]}))), request(dataset="var/state"))


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (ValueError("Unknown split"), NotFoundError),
        (ConnectionError("no route"), UnavailableError),
        (None, UnavailableError),
    ],
)
def test_what_the_hub_does_not_give_is_told_apart_from_a_silent_hub(
    cause: Exception | None, expected: type[Exception]
) -> None:
    def load(dataset: str, config: str, split: str, revision: str) -> tuple[pa.Table, str]:
        raise HubError("the Hugging Face Hub did not provide it (why)") from cause

    with pytest.raises(expected, match=r"ours/lamps \(default, test\) cannot be loaded: .* \(why\)"):
        opened(SplitReader(None, load), request())


def test_a_broken_file_is_told_when_it_is_read(mirror: Path) -> None:
    (mirror / "ours/lamps/default/train.parquet").write_bytes(b"PAR1 nonsense")

    with pytest.raises(UnavailableError, match="cannot be read"):
        opened(SplitReader(mirror), request(split="train"))


_READ = """
import asyncio, sys
from services.errors import TouchstoneError
from services.evaluator.hub_import.splits import SplitReader
from touchstone.v1.dataset_service_pb2 import CreateHubDatasetRequest
from touchstone.v1.suite_pb2 import DataSource

async def main(config, split, revision=""):
    source = DataSource(dataset="ours/lamps", config=config, split=split, revision=revision)
    try:
        opened = await SplitReader(None).open(CreateHubDatasetRequest(source=source))
        rows = b"".join([piece async for piece in opened.pieces])
        print(opened.source.revision, rows.count(b"\\n"), rows.split(b"\\n")[1].decode())
    except TouchstoneError as error:
        print(type(error).__name__, error.message)

for asked in sys.argv[1:]:
    asyncio.run(main(*asked.split(":")))
"""


def test_a_split_of_the_hub_is_read_at_a_commit_a_branch_or_the_newest(tmp_path: Path) -> None:
    asked = ["cola:train", f"cola:train:{COMMIT}", "cola:train:main", "cola:nowhere", "other:train"]
    with hub_stub.serving("ours/lamps", COMMIT) as address:
        environment = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_ENDPOINT": address}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        done = subprocess.run(
            [sys.executable, "-c", _READ, *asked],
            env=environment, capture_output=True, text=True, timeout=180, check=True, cwd=tmp_path,
        )  # fmt: skip
    *read, nowhere, other = done.stdout.splitlines()

    assert read == [f'{COMMIT} 8 {{"sentence": "There are 1 lamps.", "label": 1, "idx": 1}}'] * 3
    assert nowhere.startswith("NotFoundError")
    assert "Unknown split" in nowhere
    assert other.startswith("NotFoundError")


def test_a_mirrors_lines_come_as_they_are_with_their_hash(mirror: Path) -> None:
    source, rows = opened(SplitReader(mirror), request())

    assert rows == [{"q": "Why? é", "label": 1}, {"q": "How?", "options": {"A": "so"}}, {"q": "Who?"}]
    digest = hashlib.sha256(LINES).hexdigest()
    assert source == DataSource(dataset="ours/lamps", config="default", split="test", revision=digest)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_limit_takes_the_first_rows(mirror: Path, limit: int) -> None:
    path = mirror / "ours/lamps/default/train.parquet"
    pq.write_table(pa.table({"n": list(range(3))}), path)

    assert len(opened(SplitReader(mirror), request(limit=limit))[1]) == min(limit, 3)
    assert opened(SplitReader(mirror), request(limit=limit, split="train"))[1] == [
        {"n": n} for n in range(min(limit, 3))
    ]


def test_long_splits_come_whole(mirror: Path) -> None:
    path = mirror / "ours/lamps/default/train.parquet"
    table = pa.table({"n": list(range(1234))})
    pq.write_table(table, path, row_group_size=700)
    many = [{"n": n} for n in range(1234)]

    assert opened(SplitReader(mirror), request(split="train"))[1] == many
    assert opened(SplitReader(mirror), request(split="train", limit=1100))[1] == many[:1100]
    assert opened(SplitReader(None, giving(table)), request(limit=1001))[1] == many[:1001]
