"""Shell completion, as a shell uses it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from touchstone_client.command import main


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    file = tmp_path / "touchstone.bash"
    file.write_text(capsys.readouterr().out)
    return file


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("touchstone ga", {"gate"}),
        ("touchstone re", {"results", "resume", "retry", "rescore", "rerun", "receipt", "replay", "recorded-runs"}),
        ("touchstone ju", {"judge", "judges"}),
        ("touchstone run --judge-m", {"--judge-model"}),
        ("touchstone dataset u", {"upload"}),
        ("touchstone annotate last 3 fi", {"fix"}),
        ("touchstone side-by-side last --filter only-", {"only-right", "only-wrong"}),
        ("touchstone export go", {"golden"}),
        ("touchstone rescore last --scorer c", {"contains", "choice"}),
        ("touchstone schedules cr", {"create"}),
        ("touchstone run --mode lo", {"loglikelihood"}),
        ("touchstone run --ollama-t", {"--ollama-temperature", "--ollama-top-p", "--ollama-top-k"}),
    ],
)
def test_bash_completes_verbs_options_and_choices(script: Path, words: str, offered: set[str]) -> None:
    asked = words.split()
    lines = [
        f"source {script}",
        f"COMP_WORDS=({words})",
        f"COMP_CWORD={len(asked) - 1}",
        "$(complete -p touchstone | sed 's/.*-F \\([^ ]*\\).*/\\1/')",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    made = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120, check=False)
    assert {line.strip() for line in made.stdout.splitlines()} == offered, made.stderr


def test_zsh_gets_a_function_of_its_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef touchstone")
    assert "leaderboard" in script
    if zsh := shutil.which("zsh"):
        file = tmp_path / "_touchstone"
        file.write_text(script)
        subprocess.run([zsh, "-n", file], check=True, timeout=120)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit):
        main(["completion", "bash"])
    assert capsys.readouterr().err.splitlines()[-1].endswith("needs the package shtab. Install it: pip install shtab")
