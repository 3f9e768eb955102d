"""`touchstone gate`: every way out, what it says before it runs, and JUnit's XML."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from services import errors
from tests.unit.client.command.gate.compared import Pipeline, main_with_job
from tests.unit.client.fakes import JOB, OTHER, job
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main
from touchstone_client.command.reports import stored


def test_the_comparison_is_asked_for_one_sided_tests_at_five_percent(pipeline: Pipeline) -> None:
    pipeline.run("--metric", "accuracy")
    last = pipeline.fakes.requests("Compare")[-1]
    assert (list(last.subjects), last.baseline, list(last.metrics)) == ([OTHER, JOB], JOB, ["accuracy"])
    assert (last.margin, last.alpha) == (pytest.approx(0.01), pytest.approx(0.1))


def test_the_candidate_runs_as_asked(pipeline: Pipeline) -> None:
    pipeline.run("--tasks", "rte,sst2", "--limit", "50", "--shots", "2", "--reuse", "--seed", "3")
    (request,) = pipeline.fakes.requests("CreateJob")
    spec = request.spec
    assert (spec.endpoint, spec.model, spec.suite.limit, list(spec.suite.tasks)) == ("mine", "new", 50, ["rte", "sst2"])
    assert spec.suite.shots == 2
    assert (spec.reuse.any_job, spec.sampling.seed, spec.priority) == (True, 3, job_pb2.PRIORITY_NORMAL)


@pytest.mark.parametrize(
    ("state", "fields", "said"),
    [
        ("FAILED", {"reason": "The endpoint is down."}, "is failed: The endpoint is down."),
        ("CANCELLED", {"reason": "By alice."}, "is cancelled: By alice."),
        ("COMPLETED", {"incomplete": True}, "touchstone retry"),
    ],
)
def test_a_candidate_that_did_not_finish_is_unusable(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], state: str, fields: dict[str, Any], said: str
) -> None:
    pipeline.states = [job(OTHER, state, "new", **fields)]
    assert pipeline.run() == 3
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_the_end_of_the_time_leaves_the_job(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.fakes.answers["WatchJob"] = [scheduler_service_pb2.WatchJobResponse(job=job(OTHER, "RUNNING"))]
    assert pipeline.run("--timeout", "0.2") == 5
    said = capsys.readouterr().err
    assert f"{OTHER} is not finished after 0.2 s; it continues. Judge it later: touchstone gate --job {OTHER}" in said
    assert pipeline.fakes.requests("CancelJob") == []


def test_a_model_or_a_job_must_be_named() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--baseline", "b", "--max-drop", "0.01"])
    assert ended.value.code == 4


def test_a_finished_job_is_judged_without_a_run(pipeline: Pipeline) -> None:
    assert main_with_job(pipeline) == 0
    assert pipeline.fakes.requests("CreateJob") == []


NOT_STORED = (
    errors.NotFoundError("Benchmark job not found"),
    results_service_pb2.ResultsServiceGetJobResponse(job=job(OTHER, "RUNNING", "new")),
)


def test_an_end_that_is_not_stored_yet_is_waited_for(pipeline: Pipeline) -> None:
    pipeline.stored = [*NOT_STORED]
    early = errors.NotFoundError(f"Job {OTHER} has no finished run yet.")
    pipeline.fakes.answers["Compare"] = lambda request: early if pipeline.stored else pipeline.comparison
    assert pipeline.run() == 0
    assert main_with_job(pipeline) == 0


def test_an_end_that_is_never_stored_is_no_refusal(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored, "_HEARD_S", 0.2)
    pipeline.fakes.answers["Results.GetJob"] = lambda request: (
        NOT_STORED[1] if request.job_id == OTHER else results_service_pb2.ResultsServiceGetJobResponse(job=job())
    )
    assert pipeline.run() == 5
    assert f"has not stored the end of job {OTHER} after 0.2 s" in capsys.readouterr().err


def test_the_answer_is_in_json(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert pipeline.run("--format", "json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["gate"]["exit_code"], made["gate"]["outcome"]) == (0, "passed")
    assert made["comparison"]["differences"][0]["p_value"] == 0.6


def test_the_process_ends_with_the_code(pipeline: Pipeline) -> None:
    """As a pipeline sees it."""
    pipeline.run()
    made = subprocess.run(
        [sys.executable, "-m", "touchstone_client", "gate", "--job", OTHER, "--baseline", JOB, "--max-drop", "2"],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 4, made.stderr
