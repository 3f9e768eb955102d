"""Arguments of the command: how they are read, refused and explained."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from deploy.local.ports import free_port
from touchstone_client.command import main, parser
from touchstone_client.command.arguments import declaring


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--suite", "glue"],
        ["run", "--suite", "glue", "--endpoint", "e", "--model", "m", "--mode", "chat"],
        ["run", "--suite", "glue", "--endpoint", "e", "--model", "m", "--limit", "0"],
        ["rerun", "job"],
        ["rerun", "job", "--outcome", "answered"],
        ["rescore"],
        ["dataset"],
    ],
)
def test_arguments_that_cannot_be_end_with_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: touchstone" in capsys.readouterr().err


def test_many_arguments_do_not_hide_what_is_wrong_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["run", "--suite", "s"], ["list", "--status", "x"]):
        with pytest.raises(SystemExit):
            main(verb)
        assert len(capsys.readouterr().err.splitlines()) <= 5
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "--request-id ID" in capsys.readouterr().out


def test_a_file_that_cannot_be_is_named_as_it_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "rows.jsonl"
    assert main(["dataset", "upload", str(missing)]) == 2
    assert capsys.readouterr().err == f"touchstone: {missing}: No such file or directory\n"
    target = tmp_path / "nowhere" / "x.csv"
    assert main(["export", "jobs", "--output", str(target)]) == 2
    assert capsys.readouterr().err == f"touchstone: {target}: No such file or directory\n"


def test_tasks_are_separated_by_commas_and_outcomes_repeated() -> None:
    run = parser().parse_args(["run", "--suite", "s", "--endpoint", "e", "--model", "m", "--tasks", "a, b,"])
    assert run.tasks == ["a", "b"]
    again = parser().parse_args(["rerun", "job", "--outcome", "truncated", "--outcome", "error"])
    assert again.outcome == ["truncated", "error"]


def test_a_service_that_does_not_answer_is_code_three_with_its_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("TOUCHSTONE_SCHEDULER", address)
    assert main(["rescore", "job"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"touchstone: Nothing answers at {address}. Start Touchstone, or set TOUCHSTONE_SCHEDULER.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--bogus"], "usage: touchstone list"),
        (["dataset", "upload"], "usage: touchstone dataset upload"),
        (["export", "items"], "items need --job"),
        (["export", "metrics", "--job", "j", "--task", "rte"], "are only for items"),
        (["export", "job", "--kind", "jobs"], "only items and metrics take a job"),
        (["export", "golden", "--job", "j", "--format", "csv"], "golden is written as jsonl"),
        (["export", "items", "--kind", "golden", "--job", "j"], "--kind is golden"),
        (["items", "job", "--length", "x..3"], "LOW..HIGH"),
        (["items", "job", "--score", "5..1"], "5 is above 1"),
        (["annotate", "job", "3", "fix"], "--answer and fix require each other"),
        (["annotate", "job", "3", "golden", "--answer", "a"], "--answer and fix require each other"),
        (["side-by-side", "one"], "name two to four jobs"),
        (["run", "--dataset", "ds_1", "--suite", "s", "--model", "m"], "not allowed with"),
        (["run", "--dataset", "ds_1", "--model", "m", "--shots", "2"], "--shots: for suites only"),
        (["run", "--suite", "s", "--model", "m", "--scorer", "json"], "for datasets only"),
        (["run", "--dataset", "ds_1", "--model", "m", "--label", "k"], "KEY=VALUE"),
        (
            ["run", "--dataset", "ds_1", "--model", "m", "--budget-usd", "0"],
            "--budget-usd: it must be above 0 and at most 1,000,000,000",
        ),
        (["dataset", "upload", "f", "--tolerance", "x%"], "a share of the reference"),
        (["dataset", "upload", "f", "--template", "@/nowhere"], "--template: /nowhere: No such file or directory\n"),
        (["dataset", "list", "--limit", "0"], "--limit: it must be between 1 and 2,147,483,647\n"),
        (
            ["list", "--project-id", "-1"],
            "--project-id: it must be between 0 and",
        ),
        (["items", "job", "--item", "x"], "--item: it must be a whole number\n"),
        (["dataset", "hub", "openai/gsm8k", "--split", "test"], "--template"),
        (["compare", "one"], "name at least two runs"),
        (["configurations", "name", "hash"], "give --name, --alias or both"),
        (["run", "--suite", "s", "--model", "m", "--endpoint", "e", "--custom-config", "{"], "it is not JSON"),
    ],
)
def test_arguments_are_explained_by_their_own_verb(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk is full. Free some space and run the command again.",
        ),
        (
            OSError(errno.ENOSPC, "No space left", "/a/b"),
            "/a/b: the disk is full. Free some space and run the command again.",
        ),
        (OSError(errno.EACCES, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError("no free port"), "no free port"),
    ],
)
def test_the_systems_errors_say_what_to_do(error: OSError, words: str) -> None:
    assert declaring.of_system(error) == words
