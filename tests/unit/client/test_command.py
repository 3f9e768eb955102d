"""The command's arguments, and what it does without a service."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from deploy.local.ports import free_port
from touchstone.v1 import item_result_pb2, job_pb2
from touchstone_client.command import arguments, main, parser
from touchstone_client.settings import Settings
from touchstone_client.specs import RERUN, rerun_spec, rescore_spec, suite_spec


def source() -> job_pb2.Job:
    sampling = job_pb2.Sampling(temperature=0.5, max_tokens=64)
    spec = suite_spec("glue", endpoint="e", model="m", tasks=["rte"], repeats=3, sampling=sampling)
    return job_pb2.Job(job_id="source", spec=spec)


def test_a_rescore_copies_everything() -> None:
    spec = rescore_spec(source())
    assert (spec.reuse.job_id, list(spec.reuse.rerun)) == ("source", [])
    spec.ClearField("reuse")
    assert spec == source().spec


def test_a_rerun_changes_limits_only() -> None:
    spec = rerun_spec(source(), [RERUN["truncated"]], max_tokens=512)
    assert list(spec.reuse.rerun) == [item_result_pb2.OUTCOME_OUTPUT_TRUNCATED]
    assert (spec.sampling.max_tokens, spec.sampling.HasField("context_length")) == (512, False)
    spec.ClearField("reuse")
    spec.sampling.max_tokens = 64
    assert spec == source().spec


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run", "--suite", "glue"],
        ["run", "--suite", "glue", "--endpoint", "e", "--model", "m", "--mode", "chat"],
        ["run", "--suite", "glue", "--endpoint", "e", "--model", "m", "--limit", "0"],
        ["rerun", "job"],
        ["rerun", "job", "--outcome", "answered"],
        ["rescore"],
        ["data"],
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


def test_settings_hide_the_token() -> None:
    settings = Settings.from_env({"TOUCHSTONE_TOKEN": "secret", "TOUCHSTONE_SCHEDULER": "a:1"})
    assert (settings.scheduler, settings.results, settings.token) == ("a:1", "127.0.0.1:8052", "secret")
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--bogus"], "usage: touchstone list"),
        (["token", "create"], "usage: touchstone token create"),
        (["export", "items"], "items need --job"),
        (["export", "metrics", "--job", "j", "--task", "rte"], "are for items"),
        (["export", "job", "--kind", "jobs"], "a job is named only for items and metrics"),
        (["export", "golden", "--job", "j", "--format", "csv"], "golden comes as jsonl"),
        (["export", "items", "--kind", "golden", "--job", "j"], "--kind is golden"),
        (["items", "job", "--length", "x..3"], "LOW..HIGH"),
        (["items", "job", "--score", "5..1"], "5 is above 1"),
        (["annotate", "job", "3", "fix"], "--answer and fix go together"),
        (["annotate", "job", "3", "golden", "--answer", "a"], "--answer and fix go together"),
        (["side-by-side", "one"], "name two to four jobs"),
        (["run", "--dataset", "ds_1", "--suite", "s", "--model", "m"], "not allowed with"),
        (["run", "--dataset", "ds_1", "--model", "m", "--shots", "2"], "--shots: for suites only"),
        (["run", "--suite", "s", "--model", "m", "--scorer", "json"], "for datasets only"),
        (["run", "--dataset", "ds_1", "--model", "m", "--label", "k"], "KEY=VALUE"),
        (["run", "--dataset", "ds_1", "--model", "m", "--budget-usd", "0"], "an amount of US dollars above 0"),
        (["dataset", "upload", "f", "--tolerance", "x%"], "a share of the reference"),
        (["dataset", "upload", "f", "--template", "@/nowhere"], "--template: /nowhere: No such file or directory\n"),
        (["dataset", "list", "--limit", "0"], "--limit: it must be a whole number from 1 to 2,147,483,647\n"),
        (
            ["list", "--project-id", "-1"],
            "--project-id: it must be a whole number from 0 to",
        ),
        (["items", "job", "--item", "x"], "--item: it must be a whole number from 0 to 2,147,483,647\n"),
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
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full. Make room and run it again."),
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b: the disk is full. Make room and run it again."),
        (OSError(errno.EACCES, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError("no free port"), "no free port"),
    ],
)
def test_the_systems_errors_say_what_to_do(error: OSError, words: str) -> None:
    assert arguments.of_system(error) == words
