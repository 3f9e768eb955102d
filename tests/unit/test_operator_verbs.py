"""Verbs that administer a server: where the services are installed, and only there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import touchstone_client.command as client
from deploy.command import main


def test_a_mirror_needs_a_directory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TOUCHSTONE_DATA_DIR", raising=False)
    assert main(["data", "pull", "glue"]) == 2
    assert "name the mirror directory" in capsys.readouterr().err


def test_an_unknown_suite_is_not_pulled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "pull", "gleu", "--dir", str(tmp_path)]) == 2
    assert "gleu" in capsys.readouterr().err


def test_what_an_operators_command_writes_is_closed_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert main(["check", "--state-dir", str(tmp_path)]) == 1
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    written = list(tmp_path.rglob("*"))
    assert written
    assert [path for path in written if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("verb", ["token", "data", "backup", "restore", "check", "repair"])
def test_the_client_alone_has_none_of_them(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (main, client.main):
        with pytest.raises(SystemExit):
            command([verb, "--help"])
    shown = capsys.readouterr()
    assert shown.out.startswith(f"usage: touchstone {verb}")
    assert f"invalid choice: '{verb}'" in shown.err
