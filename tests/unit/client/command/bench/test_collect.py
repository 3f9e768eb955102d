"""Running experiments from the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from services import errors
from services.experiments import reading
from tests.unit.client.command.bench.boards import JOBS, NAME, board
from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import endpoint_pb2, job_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
DOCUMENT = [
    *("bench", "collect", "--models", "one,two", "--prompts", "v1,v2-mentor,v3-few-shot"),
    *("--experiment", NAME, "--n-tips", "5", "--diversity"),
]
DEFINITION = """\
name: other
models: [left/one]
prompts:
  - v1
  - {id: own, template: "{{about}} {{n_tips}}"}
scenarios: {set: tips, count: 3}
num_predict: 400
"""


@pytest.fixture
def told(pair: Fakes) -> Fakes:
    """Services that run experiments of two models; the jobs end one after the other."""

    def run(request: Any) -> scheduler_service_pb2.RunExperimentResponse:
        jobs = [dataset_job(job_id, model, "PENDING") for model, job_id in JOBS.items()]
        name = json.loads(request.definition)["name"]
        return scheduler_service_pb2.RunExperimentResponse(experiment=name, jobs=jobs, cells=36, calls=72)

    pair.answers |= {"RunExperiment": run, "GetExperiment": board()}
    return pair


def definition(fakes: Fakes) -> dict[str, Any]:
    (request,) = fakes.requests("RunExperiment")
    found: dict[str, Any] = json.loads(request.definition)
    return found


def test_the_documents_options_are_a_definition_whose_jobs_are_followed(told: Fakes, capsys: Captured) -> None:
    more = ["--n-scenarios", "3", "--temperature", "0.7", "--max-model-b", "4.0", "--provider", "ollama"]
    endpoints = [endpoint_pb2.Endpoint(endpoint="left", kind="ollama"), endpoint_pb2.Endpoint(endpoint="right")]
    told.answers["ListEndpoints"] = scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints)
    assert main([*DOCUMENT, *more]) == 0
    asked = definition(told)
    assert asked == {
        "name": NAME,
        "models": "one,two",
        "prompts": "v1,v2-mentor,v3-few-shot",
        "n_scenarios": 3,
        "n_tips": 5,
        "diversity": True,
        "temperature": 0.7,
        "max_model_b": 4.0,
        "provider": "left",
    }
    assert reading.read(asked).cells == 18
    shown = capsys.readouterr()
    assert shown.out.splitlines()[:2] == [JOB, OTHER]
    assert "0.800" in shown.out
    assert shown.err.splitlines()[0] == f"touchstone: {NAME}: 2 models, 36 cells, 72 questions"
    assert shown.err.splitlines()[1:] == ["one: Running", "two: Running", "one: Completed", "two: Completed"]


def test_options_replace_fields_of_a_file(told: Fakes, tmp_path: Path) -> None:
    path = tmp_path / "tips.yaml"
    path.write_text(DEFINITION)
    given = ["--experiment", NAME, "--n-scenarios", "2", "--max-tokens", "100", "--max-model-b", "0"]
    assert main(["bench", "collect", str(path), *given, "--budget-usd", "2", "--detach"]) == 0
    made = reading.read(definition(told))
    assert (made.name, made.rows, made.max_model_b, made.budget_usd) == (NAME, 4, 0, 2)
    assert made.sampling == {"num_predict": 100}
    assert [one.prompt_id for one in made.prompts] == ["v1", "own"]


def test_a_definition_comes_from_json_or_standard_input(
    told: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    path = tmp_path / "tips.json"
    fields = {"experiment": "other", "models": ["left/one"], "prompts": ["v1"]}
    path.write_text(json.dumps(fields))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"about": "A"}\n\n{"about": "B"}\n')
    assert main(["bench", "collect", str(path), "--scenarios", str(rows), "--experiment", NAME, "--detach"]) == 0
    assert definition(told) == {
        "models": ["left/one"],
        "prompts": ["v1"],
        "name": NAME,
        "scenarios": [{"about": "A"}, {"about": "B"}],
    }
    assert capsys.readouterr().out == f"{JOB}\n{OTHER}\n"
    told.heard.clear()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(DEFINITION.encode())))
    assert main(["bench", "collect", "-", "--check"]) == 0
    (request,) = told.requests("RunExperiment")
    assert request.check_only
    assert capsys.readouterr().out == "other: 36 cells, 72 questions. Nothing was started.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x", "has a YAML alias"),
        ("a: [1", "The file is not valid YAML"),
        ("- a\n- b", "The file must hold an object with name, models and prompts."),
        ("a: 1\na: 2", "A name occurs twice in the map on line 1."),
        ("x" * 3_000_001, "has more than 3,000,000 bytes. Shorten it."),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_asked(
    told: Fakes, tmp_path: Path, capsys: Captured, text: str, said: str
) -> None:
    path = tmp_path / "tips.yaml"
    path.write_text(text)
    assert main(["bench", "collect", str(path)]) == 2
    assert said in capsys.readouterr().err
    assert told.heard == []
    rows = tmp_path / "rows.jsonl"
    rows.write_text("{")
    assert main([*DOCUMENT, "--scenarios", str(rows)]) == 2
    assert "Line 1" in capsys.readouterr().err


def test_each_wrong_field_has_its_line(told: Fakes, capsys: Captured) -> None:
    problems = [("models[0]", "models[0]: provider x not found."), ("prompts[0]", "prompts[0]: v9 does not ship.")]
    told.answers["RunExperiment"] = errors.InvalidFieldsError("Two.", problems)
    assert main(DOCUMENT) == 2
    assert capsys.readouterr().err == "".join(f"touchstone: {sentence}\n" for _, sentence in problems)
    told.answers["RunExperiment"] = errors.InvalidRequestError("models is required: the models to ask.", "models")
    assert main(["bench", "collect", "--experiment", NAME]) == 2
    assert capsys.readouterr().err == "touchstone: models is required: the models to ask.\n"


def test_a_judge_has_the_rubric_of_the_experiment(told: Fakes, capsys: Captured) -> None:
    assert main([*DOCUMENT, "--judge-model", "two", "--judge-provider", "right", "--detach"]) == 0
    (request,) = told.requests("RunExperiment")
    assert list(request.judges) == [job_pb2.Judge(endpoint="right", model="two")]
    assert f"touchstone bench compare --experiment {NAME}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*DOCUMENT, "--judge-endpoint", "right"])


def test_a_failed_job_says_how_to_go_on(told: Fakes, capsys: Captured) -> None:
    def ended(request: Any) -> scheduler_service_pb2.GetJobResponse:
        failed = request.job_id == JOB
        job = dataset_job(request.job_id, "one" if failed else "two", "FAILED" if failed else "COMPLETED")
        job.reason = "No answer." if failed else ""
        return scheduler_service_pb2.GetJobResponse(job=job)

    told.answers["Scheduler.GetJob"] = ended
    assert main(DOCUMENT) == 1
    said = capsys.readouterr().err
    assert "touchstone: one: No answer." in said
    assert "the same command asks again for what is missing." in said


def test_interrupted_watching_leaves_the_jobs(told: Fakes, capsys: Captured) -> None:
    with patch("touchstone_client.command.bench.collect.ends", side_effect=KeyboardInterrupt):
        assert main(DOCUMENT) == 130
    assert "the jobs continue" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [["--max-model-b", "-1"], ["--n-tips", "0"], ["--n-scenarios", "2", "--scenarios", "f"]]
)
def test_wrong_arguments_are_refused(told: Fakes, given: list[str]) -> None:
    with pytest.raises(SystemExit):
        main([*DOCUMENT, *given])
    assert told.heard == []
