"""Rows of the Hub, and a Hub that does not answer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.evaluator import hub_stub
from tests.unit.evaluator.data.mirrored import COMMIT

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


def _from_hub(home: Path, *splits: str, **environment: str) -> list[str]:
    """What reading each split comes to, one line a split; `environment` sets the Hub's variables."""
    environment = {**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", _READ, COMMIT, *splits]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=True, cwd=home)
    return done.stdout.splitlines()


@pytest.mark.stack
def test_hub_rows_come_with_their_commit_and_offline_only_with_that_commit(tmp_path: Path) -> None:
    with hub_stub.serving("ours/lamps", COMMIT) as address:
        validation, test, unpinned = _from_hub(tmp_path, "validation", "test", "train@", HF_ENDPOINT=address)
    assert validation == f"5 {COMMIT} There are 1 lamps."
    assert unpinned == f"8 {COMMIT} There are 1 lamps."
    assert "(cola, test) is missing: the Hugging Face Hub did not provide it (Unknown split" in test
    assert _from_hub(tmp_path, "train", HF_HUB_OFFLINE="1") == [f"8 {COMMIT} There are 1 lamps."]
    cached = tmp_path / "datasets" / "ours___lamps" / "cola" / "0.0.0" / COMMIT
    cached.rename(cached.with_name("f" * 40))
    message, unpinned = _from_hub(tmp_path, "train", "train@", HF_HUB_OFFLINE="1")
    assert unpinned == f"8 {'f' * 40} There are 1 lamps."
    assert f"the local cache holds revision {'f' * 40}, not {COMMIT}" in message


REMEDY = (
    "Connect the evaluator to the internet, or set TOUCHSTONE_DATA_DIR to a mirror with "
    "ours/lamps/cola/validation.jsonl, which `touchstone data pull` writes. Otherwise leave the task out."
)


def test_unreachable_hub_is_reported_within_seconds_with_the_remedy(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    started = time.monotonic()
    (message,) = _from_hub(tmp_path, "validation", HF_ENDPOINT=address)
    assert time.monotonic() - started < 100
    assert message.startswith(
        "The data set ours/lamps (cola, validation) is missing: the Hugging Face Hub did not provide it ("
    )
    assert message.endswith(REMEDY)


def test_silent_hub_is_given_up_after_the_probe_time(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        (message,) = _from_hub(tmp_path, "validation", HF_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert time.monotonic() - started < 100
    assert message.startswith("The data set ours/lamps (cola, validation) is missing: the Hugging Face Hub did not ")
    assert message.endswith(REMEDY)


def test_offline_without_a_cache_is_reported_at_once(tmp_path: Path) -> None:
    (message,) = _from_hub(tmp_path, "validation", HF_HUB_OFFLINE="1")
    assert message.startswith("The data set ours/lamps (cola, validation) is missing: ")
    assert message.endswith(REMEDY)
