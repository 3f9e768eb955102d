"""The command as a whole: refusals, errors, how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from services import __version__, errors
from tests.unit.client.command.verbs import RUN
from tests.unit.client.fakes import JOB, OTHER, Fakes, job
from touchstone.v1 import results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main
from touchstone_client.command.printing.output import FORMATS

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.InvalidRequestError("Set baseline_job_id.", "baseline_job_id"), "Set --baseline."),
        (errors.InvalidRequestError("Run without reuse.any_job.", "spec.reuse.any_job"), "Run without --reuse."),
        (
            errors.InvalidRequestError(
                "spec.sampling.temperature must be between 0 and 2.", "spec.sampling.temperature"
            ),
            "--temperature must be between 0 and 2.",
        ),
        (
            errors.InvalidRequestError(
                "config.params.temperature must be between 0 and 2.", "config.params.temperature"
            ),
            "--temperature must be between 0 and 2.",
        ),
        (
            errors.InvalidRequestError("max_tokens is 5, less than the 9 of job x.", "spec.sampling.max_tokens"),
            "--max-tokens is 5, less than the 9 of job x.",
        ),
        (errors.InvalidRequestError("limit is -1.", "limit"), "--limit is -1."),
        (
            errors.InvalidRequestError('The row has "custom_id", not "max_tokens".', "template"),
            'The row has "custom_id", not "max_tokens".',
        ),
        (
            errors.InvalidRequestError("Set max_tokens, or max_tokens in every row.", "spec.budget_usd"),
            "Set --max-tokens, or max_tokens in every row.",
        ),
        (errors.ConflictError("The mode of model x is not the limit."), "The mode of model x is not the limit."),
    ],
)
def test_a_refusal_names_arguments_and_not_fields(
    fakes: Fakes, capsys: Captured, error: errors.TouchstoneError, said: str
) -> None:
    fakes.answers["CancelJob"] = error
    assert main(["cancel", JOB]) == 2
    assert capsys.readouterr().err == f"touchstone: {said}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", JOB],
        ["results", JOB],
        ["list", "--status", "completed", "--days", "3"],
        ["history", "--days", "7", "--model", "m"],
        ["items", JOB, "--filter", "correct"],
        ["items", JOB, "--task", "rte", "--item", "3"],
        ["items", JOB, "--task", "rte", "--classes"],
        ["compare", JOB, OTHER],
        ["leaderboard"],
        ["queue"],
        ["evaluators"],
        ["endpoints"],
        ["models"],
        ["suites"],
        ["logs", JOB, "--level", "error"],
        ["schedules", "list"],
        ["webhooks", "list"],
        ["webhooks", "dead"],
        ["configurations", "list"],
        ["recorded-runs", "list"],
        ["judges", JOB],
    ],
)
def test_every_reading_verb_prints_every_format(told: Fakes, capsys: Captured, arguments: list[str]) -> None:
    printed = {}
    for format in FORMATS:
        assert main([*arguments, "--format", format]) == 0
        printed[format] = capsys.readouterr().out
    assert "\x1b" not in "".join(printed.values())
    assert json.loads(printed["json"]) is not None
    header, *rows = csv.reader(io.StringIO(printed["csv"]))
    assert {len(row) for row in rows} <= {len(header)}
    assert "| --- |" in printed["markdown"].replace("---:", "---").replace("| --- | ", "| --- |")
    assert printed["table"].strip()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConflictError("Job x is finished."), 2),
        (errors.NotFoundError("Job x is not known."), 2),
        (errors.PermissionDeniedError("Only its owner may do this."), 2),
        (errors.UnavailableError("NATS does not answer."), 3),
    ],
)
def test_errors_are_one_line_and_a_code(
    told: Fakes, capsys: Captured, error: errors.TouchstoneError, code: int
) -> None:
    told.answers["CancelJob"] = error
    assert main(["cancel", "x"]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"touchstone: {error.message}\n")


# A shell that runs the tests in the background has told their processes to ignore it. Not by `preexec_fn`: that forks
# this process, and gRPC's threads of it may write to the child's output before the child begins.
_INTERRUPTIBLE = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('touchstone_client', run_name='__main__', alter_sys=True)"
)


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(told: Fakes) -> None:
    over = threading.Event()

    def endless(request: Any) -> Any:
        yield scheduler_service_pb2.WatchJobResponse(job=job(state="RUNNING"))
        over.wait(60)

    told.answers["WatchJob"] = endless
    process = started(*RUN)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{JOB}\n"
    assert process.stderr is not None
    assert process.stderr.readline() == "Running\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=50)
    over.set()
    assert process.returncode == 130
    assert f"touchstone status {JOB} --watch" in said
    assert f"touchstone cancel {JOB}" in said
    assert "Traceback" not in said
    assert told.requests("CancelJob") == []


def test_a_reader_that_leaves_is_no_error(told: Fakes) -> None:
    told.answers["Export"] = lambda request: [results_service_pb2.ExportResponse(data=b"x" * 900_000)] * 5
    process = started("export", "jobs")
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 141


def test_without_a_verb_the_help_is_shown(capsys: Captured) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: touchstone")
    assert "leaderboard" in shown.out


def test_the_version_is_told(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"touchstone {__version__}\n")


def test_a_deletion_that_nobody_confirms_is_refused(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    fakes.answers["DeleteJob"] = scheduler_service_pb2.DeleteJobResponse()
    assert main(["delete", JOB]) == 2
    assert capsys.readouterr().err == "touchstone: Deleting cannot be undone. Repeat the command with --yes.\n"
    assert fakes.requests("DeleteJob") == []
    assert main(["delete", JOB, "--yes"]) == 0
    assert capsys.readouterr().out == f"{JOB} is deleted.\n"
