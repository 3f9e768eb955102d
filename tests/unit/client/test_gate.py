"""`touchstone gate`: every way out, what it says before it runs, and JUnit's XML."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from services import errors
from tests.unit.client.fakes import JOB, OTHER, Answer, Fakes, job, metric, result
from touchstone.v1 import (
    comparison_pb2,
    endpoint_pb2,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    suite_pb2,
)
from touchstone_client.command import main
from touchstone_client.command.gate.junit import write
from touchstone_client.command.gate.verdict import Outcome, judge

ARGUMENTS = ["gate", "--suite", "glue", "--provider", "openai", "--model", "new", "--baseline", "base"]


def difference(
    value: float, low: float, high: float, p: float, task: str = "", **more: Any
) -> comparison_pb2.Difference:
    """Candidate − baseline, as Compare says it: the better run is `a`."""
    metric_name = "accuracy" if task else "score"
    if value >= 0:
        a, b = OTHER, JOB
    else:
        a, b, value, low, high = JOB, OTHER, -value, -high, -low
    return comparison_pb2.Difference(
        a=a, b=b, task=task, metric=metric_name, difference=value, low=low, high=high, p_value=p, n=1000, **more
    )


def compared(*differences: comparison_pb2.Difference, reason: str = "") -> comparison_pb2.CompareResponse:
    runs = [
        comparison_pb2.ComparedRun(job_id=OTHER, model="new", scores=[metric("score", 0.7)], not_ranked_reason=reason),
        comparison_pb2.ComparedRun(job_id=JOB, model="base", scores=[metric("score", 0.71)]),
    ]
    return comparison_pb2.CompareResponse(
        suite="glue", runs=runs, differences=differences, items=2000, margin=0.01, alpha=0.1, metrics=["score"]
    )


PASSING = compared(difference(-0.002, -0.008, 0.004, 0.6), difference(0.01, -0.01, 0.03, 0.4, "rte"))
REGRESSING = compared(difference(-0.05, -0.07, -0.03, 0.001), difference(-0.09, -0.1, -0.08, 0.001, "rte"))
UNDECIDED = compared(difference(-0.01, -0.04, 0.02, 0.6))


@dataclass
class Pipeline:
    """Runs the gate against services in which the candidate ends as told."""

    fakes: Fakes
    comparison: Any = field(default_factory=lambda: PASSING)
    states: list[job_pb2.Job] = field(default_factory=lambda: [job(OTHER, "RUNNING", "new"), job(OTHER, model="new")])
    last_time: Any = field(default_factory=lambda: errors.NotFoundError("'new@mine' has no run."))

    def run(self, *more: str) -> int:
        of_base = results_service_pb2.Configuration(
            configuration="hash-of-base", model="base", endpoint="e", alias="prod"
        )
        listed = results_service_pb2.ListConfigurationsResponse(configurations=[of_base])
        jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base")])
        mine = endpoint_pb2.Endpoint(endpoint="mine", kind="openai")
        told: dict[str, Answer] = {
            "ListConfigurations": lambda request: listed if request.model in ("", "base") else type(listed)(),
            "Results.ListJobs": jobs,
            "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
                job=self.states[-1] if request.job_id == OTHER else job(request.job_id, model="base")
            ),
            "GetJobResult": results_service_pb2.GetJobResultResponse(result=result()),
            "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=[mine]),
            "CreateJob": scheduler_service_pb2.CreateJobResponse(job=job(OTHER, "PENDING", "new")),
            "WatchJob": [scheduler_service_pb2.WatchJobResponse(job=state) for state in self.states],
            "Compare": lambda request: self.comparison if OTHER in request.subjects else self.last_time,
        }
        self.fakes.answers = told | self.fakes.answers
        return main([*ARGUMENTS, "--max-drop", "0.01", *more])


@pytest.fixture
def pipeline(fakes: Fakes) -> Pipeline:
    return Pipeline(fakes)


@pytest.mark.parametrize(
    ("comparison", "code", "said"),
    [
        (PASSING, 0, "Gate: passed. A drop of 0.0020. At 95 % confidence the drop is less than 0.0080"),
        (REGRESSING, 1, "Gate: regression. A significant drop of 0.0500; at 95 % confidence it is more than 0.0300"),
        (UNDECIDED, 2, "Gate: undecided. A drop of 0.0100. At 95 % confidence a drop could be as large as 0.0400"),
        (compared(difference(0.03, 0.01, 0.05, 0.01)), 0, "A rise of 0.0300. At 95 % confidence there is no drop"),
        (compared(difference(0.03, -0.02, 0.08, 0.3)), 2, "could be as large as 0.0200"),
        # A drop that is shown, and shown to be small enough.
        (compared(difference(-0.004, -0.009, -0.001, 0.03)), 0, "Gate: passed. A drop of 0.0040"),
        # The interval excludes 0 and the exact test does not: nothing is shown.
        (compared(difference(-0.02, -0.04, -0.0001, 0.11)), 2, "Gate: undecided"),
        # A one-sided test at 5 % is a two-sided one at 10 %.
        (compared(difference(-0.02, -0.04, -0.0001, 0.099)), 1, "Gate: regression"),
        (compared(difference(-0.01, -0.04, 0.02, 0.6), reason="8 % could not be read"), 3, "8 % could not be read"),
        (compared(comparison_pb2.Difference(a=JOB, b=OTHER, metric="score", reason="modes differ")), 3, "modes differ"),
        (compared(), 3, "says nothing of score"),
    ],
)
def test_each_comparison_has_its_code(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], comparison: Any, code: int, said: str
) -> None:
    pipeline.comparison = comparison
    assert pipeline.run() == code
    assert said in capsys.readouterr().out


def test_the_same_runs_in_the_other_order_are_judged_alike() -> None:
    for comparison in (PASSING, REGRESSING, UNDECIDED):
        turned = comparison_pb2.CompareResponse()
        turned.CopyFrom(comparison)
        for found in turned.differences:
            found.a, found.b, found.difference = found.b, found.a, -found.difference
            found.low, found.high = -found.high, -found.low
        one, other = (judge(each, OTHER, JOB, "score", 0.01) for each in (comparison, turned))
        assert one == other


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


def test_the_baseline_is_chosen_before_the_candidate_runs(pipeline: Pipeline) -> None:
    """Afterwards the newest run of the same model would be the candidate."""
    pipeline.run()
    order = [name.partition(".")[2] for name, _ in pipeline.fakes.heard]
    assert order.index("ListJobs") < order.index("CreateJob")


@pytest.mark.parametrize("word", [JOB, "hash-of-base", "prod", "base@e", "base"])
def test_a_baseline_is_named_in_any_way(pipeline: Pipeline, word: str) -> None:
    if word == "hash-of-base":
        hashed = results_service_pb2.Configuration(configuration="0123456789abcdef", model="base", endpoint="e")
        listed = results_service_pb2.ListConfigurationsResponse(configurations=[hashed])
        pipeline.fakes.answers["ListConfigurations"] = lambda request: listed if not request.named else type(listed)()
        jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base")])
        jobs.jobs[0].receipt.configuration = word = "0123456789abcdef"
        pipeline.fakes.answers["Results.ListJobs"] = jobs
    assert pipeline.run("--baseline", word) == 0
    assert pipeline.fakes.requests("Compare")[-1].baseline == JOB


def test_incomplete_marked_and_foreign_runs_are_no_baseline(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    other_mode, incomplete, marked = job(model="base"), job(model="base", incomplete=True), job(OTHER, model="base")
    other_mode.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    good = job("33333333-3333-3333-3333-333333333333", model="base")
    listed = results_service_pb2.ResultsServiceListJobsResponse(jobs=[other_mode, incomplete, marked, good])
    pipeline.fakes.answers["Results.ListJobs"] = listed
    pipeline.fakes.answers["GetJobResult"] = lambda request: results_service_pb2.GetJobResultResponse(
        result=result(mark="invalidated" if request.job_id == OTHER else "")
    )
    pipeline.run()
    assert f"baseline: job {good.job_id}" in capsys.readouterr().err


def test_a_name_of_several_configurations_is_refused(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    configurations = [results_service_pb2.Configuration(configuration=c, model="base") for c in ("one", "two")]
    listed = results_service_pb2.ListConfigurationsResponse(configurations=configurations)
    pipeline.fakes.answers["ListConfigurations"] = lambda request: listed if request.model == "base" else type(listed)()
    jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base"), job(OTHER, model="base")])
    jobs.jobs[0].receipt.configuration, jobs.jobs[1].receipt.configuration = "one", "two"
    pipeline.fakes.answers["Results.ListJobs"] = jobs
    assert pipeline.run() == 4
    said = capsys.readouterr().err
    assert "fits several configurations: one" in said
    assert pipeline.fakes.requests("CreateJob") == []


def test_a_baseline_that_never_ran_is_refused_before_anything_runs(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipeline.run("--baseline", "nobody") == 4
    assert "has no complete run of glue in generate mode" in capsys.readouterr().err
    assert pipeline.fakes.requests("CreateJob") == []


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


def test_a_refusal_has_a_code_of_its_own(pipeline: Pipeline) -> None:
    pipeline.fakes.answers["CreateJob"] = errors.InvalidRequestError("Unknown suite.", "spec.suite")
    assert pipeline.run() == 4


def test_silence_has_a_code_of_its_own(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline.fakes.answers["Compare"] = errors.UnavailableError("Not now.")
    assert pipeline.run() == 5


def test_the_end_of_the_time_leaves_the_job(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.fakes.answers["WatchJob"] = [scheduler_service_pb2.WatchJobResponse(job=job(OTHER, "RUNNING"))]
    assert pipeline.run("--timeout", "0.2") == 5
    said = capsys.readouterr().err
    assert f"{OTHER} is not finished after 0.2 s; it goes on. Judge it later: touchstone gate --job {OTHER}" in said
    assert pipeline.fakes.requests("CancelJob") == []


def test_a_defect_of_the_gate_is_no_regression(pipeline: Pipeline) -> None:
    """Python's own exit code for it would be 1."""
    pipeline.fakes.answers["GetJobResult"] = lambda request: results_service_pb2.GetJobResultResponse()
    broken = comparison_pb2.CompareResponse(items=2000, differences=[difference(0.1, 0, 0.2, 0.1, stderr=0.1)])
    pipeline.last_time = broken
    pipeline.fakes.answers["GetJobResult"] = results_service_pb2.GetJobResultResponse(result=result())
    assert pipeline.run() == 5


@pytest.mark.parametrize(
    "more",
    [
        ["--max-drop", "0"],
        ["--max-drop", "one"],
        ["--limit", "0"],
        ["--bogus"],
        ["--junit", "/nowhere/at/all.xml"],
        ["--timeout", "-1"],
        ["--custom-config", "[1]"],
    ],
)
def test_wrong_arguments_are_code_four_and_not_undecided(
    pipeline: Pipeline, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        pipeline.run(*more)
    assert ended.value.code == 4
    assert "usage: touchstone gate" in capsys.readouterr().err
    assert pipeline.fakes.heard == []


def test_a_model_or_a_job_must_be_named() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--baseline", "b", "--max-drop", "0.01"])
    assert ended.value.code == 4


def test_a_finished_job_is_judged_without_a_run(pipeline: Pipeline) -> None:
    assert main_with_job(pipeline) == 0
    assert pipeline.fakes.requests("CreateJob") == []


def main_with_job(pipeline: Pipeline) -> int:
    pipeline.run()
    pipeline.fakes.heard.clear()
    return main(["gate", "--job", OTHER, "--baseline", "base", "--max-drop", "0.01"])


def test_the_margin_is_told_before_the_run(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.run()
    said = capsys.readouterr().err
    # Two tasks of standard errors .01 and .02: √2 · √(.01² + .02²) / 2, times z.95 + z.80.
    expected = 2.4865 * math.sqrt(2) * math.sqrt(0.01**2 + 0.02**2) / 2
    assert f"On 2,000 items the gate can prove that a drop is less than about {expected:.4f}" in said
    assert "err independently of each other, which is the worst case" in said
    assert "if both are equally good, exit code 2, the data cannot tell, is likely" in said
    assert said.index("can prove") < said.index("candidate: job")


def test_the_margin_comes_from_the_candidates_last_run_where_there_is_one(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    last = compared(difference(-0.002, -0.008, 0.004, 0.6, stderr=0.003))
    last.runs[0].job_id = last.differences[0].b = "earlier"
    pipeline.last_time = last
    pipeline.run()
    said = capsys.readouterr().err
    assert f"less than about {2.4865 * 0.003:.4f}" in said
    assert "as the candidate's last run (earlier) does" in said
    assert "exit code 2" not in said
    assert list(pipeline.fakes.requests("Compare")[0].subjects) == [JOB, "new@mine"]


def junit(pipeline: Pipeline, file: Path) -> tuple[int, ElementTree.Element]:
    code = pipeline.run("--junit", str(file))
    return code, ElementTree.parse(file).getroot()


def test_junit_has_a_case_for_the_suite_and_each_task(pipeline: Pipeline, tmp_path: Path) -> None:
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert (code, root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == (0, "2", "0", "0")
    assert [case.attrib["name"] for case in root] == ["suite", "rte"]
    assert {case.attrib["classname"] for case in root} == {"touchstone.glue"}


def test_junit_is_xml_whatever_an_error_says(tmp_path: Path) -> None:
    outcome = Outcome(3, "The job failed: \x1b[31m no such \x00 model \ufffe")
    write(tmp_path / "gate.xml", outcome, "glue", 1.0)
    root = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert "no such" in root[0][1].attrib["message"]


def test_junit_fails_with_a_regression(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.comparison = REGRESSING
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert (code, root.attrib["failures"]) == (1, "2")
    assert "A significant drop" in "".join(part.attrib["message"] for part in root[0].iter("failure"))


def test_a_worse_task_fails_in_junit_alone(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.comparison = compared(
        difference(-0.002, -0.008, 0.004, 0.6),
        difference(-0.09, -0.1, -0.08, 0.001, "rte", p_adjusted=0.002),
        difference(-0.09, -0.1, -0.08, 0.04, "wnli", p_adjusted=0.2),
        comparison_pb2.Difference(a=OTHER, b=JOB, task="cola", metric="accuracy", reason="the prompts differ"),
    )
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert code == 0
    assert [(case.attrib["name"], [part.tag for part in case][1:]) for case in root] == [
        ("suite", []),
        ("rte", ["failure"]),
        ("wnli", []),
        ("cola", ["skipped"]),
    ]


@pytest.mark.parametrize("comparison", [UNDECIDED, errors.ConflictError("Not now <here>.")])
def test_junit_has_an_error_where_there_is_no_answer(pipeline: Pipeline, tmp_path: Path, comparison: Any) -> None:
    pipeline.comparison = comparison
    code, root = junit(pipeline, tmp_path / "gate.xml")
    assert root.attrib["errors"] == "1"
    assert [part.attrib["type"] for part in root[0].iter("error")] == [f"exit {code}"]


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
