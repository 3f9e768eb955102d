"""A log that is set aside while its process writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import IO

import pytest

from deploy.local import logs

LINES = b"".join(b"line %d\n" % i for i in range(20_000))


@pytest.mark.parametrize("whole_blocks", [True, False], ids=["by blocks", "emptied"])
def test_a_line_that_comes_during_the_copy_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_blocks: bool
) -> None:
    log, aside = tmp_path / "a.log", tmp_path / "a.log.1"
    log.write_bytes(LINES)
    copy = shutil.copyfileobj

    def beside_a_writer(source: IO[bytes], target: IO[bytes]) -> None:
        copy(source, target)
        with log.open("ab") as writer:
            writer.write(b"late\n")

    monkeypatch.setattr(shutil, "copyfileobj", beside_a_writer)
    if not whole_blocks:
        monkeypatch.setattr(logs, "_drop_head", lambda file, size: False)
    with log.open("ab") as process:
        logs.set_aside(log, aside)
        process.write(b"later\n")
    assert aside.read_bytes() + log.read_bytes() == LINES + b"late\nlater\n"
    assert log.stat().st_size < 10_000
    assert aside.stat().st_size > 100_000


def test_without_room_for_the_copy_the_log_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: IO[bytes], target: IO[bytes]) -> None:
        raise OSError(28, "No space left on device")

    log = tmp_path / "a.log"
    log.write_bytes(LINES)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        logs.set_aside(log, tmp_path / "a.log.1")
    assert log.read_bytes() == LINES
