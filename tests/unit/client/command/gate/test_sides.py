"""`touchstone gate`: the job that is judged is the one described, and the candidate stands first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.command.gate.compared import Pipeline, compared, difference, main_with_job
from tests.unit.client.fakes import JOB, OTHER, job
from touchstone.v1 import comparison_pb2
from touchstone_client.command import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suite", "mmlu"], "--suite is mmlu, the job's is glue"),
        (["--endpoint", "elsewhere"], "--endpoint is elsewhere, the job's is e"),
        (["--provider", "openai"], "--endpoint is mine, the job's is e"),
        (["--model", "other"], "--model is other, the job's is new"),
        (["--mode", "loglikelihood"], "--mode is loglikelihood, the job's is generate"),
        (["--limit", "40"], "--limit is 40, the job's is not set"),
        (["--shots", "2"], "--shots is 2, the job's is not set"),
        (["--reading", "strict"], "--reading is strict, the job's is not set"),
        (["--tasks", "rte"], "--tasks is rte, the job's is not set"),
        (["--temperature", "0"], "--temperature is 0.0, the job's is not set"),
        (["--custom-config", '{"n": 1}'], '--custom-config is {"n": 1}, the job\'s is not set'),
        (["--suite", "mmlu", "--model", "x"], "--suite is mmlu, the job's is glue; --model is x, the job's is new"),
    ],
)
def test_arguments_that_the_job_does_not_fit_are_refused(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    main_with_job(pipeline)
    pipeline.fakes.heard.clear()
    assert main(["gate", "--job", OTHER, "--baseline", "base", "--max-drop", "0.01", *arguments]) == 4
    assert said in capsys.readouterr().err
    assert pipeline.fakes.requests("Compare") == []


def test_arguments_that_the_job_fits_are_taken(pipeline: Pipeline) -> None:
    main_with_job(pipeline)
    fitting = ["--suite", "glue", "--endpoint", "e", "--model", "new", "--mode", "generate", "--repeats", "1"]
    assert main(["gate", "--job", OTHER, "--baseline", "base", "--max-drop", "0.01", *fitting]) == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "No difference. At 95 % confidence the drop is less than 0.0050"),
        (-0.0, "No difference."),
        (0.00002, "A rise of less than 0.0001."),
        (-0.00002, "A drop of less than 0.0001."),
    ],
)
def test_a_difference_too_small_for_its_figures_has_no_sign(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], value: float, said: str
) -> None:
    found = comparison_pb2.Difference(
        a=JOB, b=OTHER, metric="score", difference=-value, low=-0.005, high=0.005, p_value=1
    )
    pipeline.comparison = compared(found)
    assert pipeline.run() == 0
    out = capsys.readouterr().out
    assert f"Gate: passed. {said}" in out
    assert "0.0000" not in out.replace(" 0.0000 ", "")


def test_the_candidate_stands_first_in_every_row(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    better: dict[str, Any] = {"verdict": comparison_pb2.VERDICT_BETTER, "only_a": 9, "only_b": 2}
    whole = difference(-0.05, -0.07, -0.03, 0.001, **better)
    task, other = difference(-0.09, -0.1, -0.08, 0.001, "rte", **better), difference(0.02, 0.01, 0.03, 0.1, "sst2")
    assert (whole.a, task.a, other.a) == (JOB, JOB, OTHER)
    pipeline.comparison = compared(whole, task, other)
    pipeline.comparison.runs.sort(key=lambda run: run.job_id != JOB)
    assert pipeline.run() == 1
    out = capsys.readouterr().out
    assert out.startswith("glue: new (candidate), base (baseline)\n")
    rows = [line for line in out.splitlines() if " / " in line]
    assert [row.split()[2:7] for row in rows] == [["new", "(candidate)", "/", "base", "(baseline)"]] * 3
    for row, said in zip(
        rows, (("worse", "−0.0500", "−0.0700 to −0.0300"), ("worse", "−0.0900"), ("+0.0200",)), strict=True
    ):
        assert all(words in row for words in said)
    pipeline.run("--format", "json")
    told = json.loads(capsys.readouterr().out)["comparison"]["differences"]
    assert {one["a"] for one in told} == {OTHER}
    assert (told[0]["difference"], told[0]["verdict"], told[0]["only_a"], told[0]["only_b"]) == (-0.05, "worse", 2, 9)


def test_notes_call_runs_as_the_table_does(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    """The service tells two runs of one model apart by what is different in them."""
    made = compared(difference(-0.002, -0.008, 0.004, 0.6))
    for run in made.runs:
        run.model, run.endpoint, run.configuration = "same", "e", "c"
    made.notes.append(f"same (job {OTHER}) is not ranked: too short. same (job {JOB}) ran 5.")
    pipeline.comparison, pipeline.states = made, [job(OTHER, model="same")]
    assert pipeline.run("--baseline", JOB) == 0
    assert "same (candidate) is not ranked: too short. base (baseline) ran 5." in capsys.readouterr().out
