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
from services.experiments.fields import DefinitionError
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
        ("a: 1\na: 2", 'The name "a" occurs twice in one map, on lines 1 and 2. Keep one of them.'),
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


def checked(request: Any) -> Any:
    """What the scheduler says of a definition."""
    try:
        reading.read(json.loads(request.definition), providers=["left", "right"], default_provider="left")
    except DefinitionError as error:
        return error
    raise AssertionError("The definition is right.")


def refused(capsys: Captured, *arguments: str) -> list[str]:
    assert main(["bench", "collect", *arguments]) == 2
    return [line.removeprefix("touchstone: ") for line in capsys.readouterr().err.splitlines()]


def test_each_wrong_field_is_named_by_its_argument(told: Fakes, capsys: Captured, tmp_path: Path) -> None:
    told.answers["RunExperiment"] = checked
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"about": "A"}\n\n{"id": "a/b"}\n')
    given = ["--models", "one,one,x:7b", "--prompts", "v9", "--scenarios", str(rows), "--budget-usd", "1"]
    assert refused(capsys, *given) == [
        "--experiment is required: 1 to 64 letters, digits, _, . and -, not only dots.",
        "entry 2 of --models is the same model as entry 1 of --models. Leave one out.",
        "entry 1 of --prompts: v9 does not ship with Touchstone. Give it a template.",
        f"id in line 3 of {rows} must be 1 to 64 letters, digits, _, . and -, not only dots; it is a/b.",
        "--budget-usd needs --max-tokens, which limits what an answer may cost.",
        "entry 3 of --models: x:7b at left has 7 billion parameters; --max-model-b is 4. Choose a smaller model, or "
        "set --max-model-b to 0 for any.",
    ]
    assert refused(capsys, "--experiment", "a b", "--num-predict", "5", "--prompts", "v1", "--budget-usd", "1") == [
        "--experiment must be 1 to 64 letters, digits, _, . and -, not only dots; it is 'a b'.",
        "--models is required: the models to ask, such as ollama/qwen2.5:0.5b.",
    ]
    told.answers["RunExperiment"] = errors.InvalidRequestError("left has no model two.", "judges[0].model")
    assert refused(capsys, *DOCUMENT[2:], "--judge-model", "two@left") == ["--judge-model: left has no model two."]


def test_each_wrong_field_of_a_file_is_named_by_its_place(told: Fakes, capsys: Captured, tmp_path: Path) -> None:
    told.answers["RunExperiment"] = checked
    path = tmp_path / "tips.yaml"
    path.write_text(
        "experiment: a b\nmodels: [x:7b]\nprompts: [{id: own, template: '{{whom}}'}]\nntips: 3\nmax_tokens: 0\n"
        "scenarios: [{persona: A},\n {persona: B, repeat: 1}]\nrubric: tip-v2\n"
    )
    assert refused(capsys, str(path), "--ollama-temperature", "1", "--max-model-b", "3") == [
        f"{path}: {sentence}"
        for sentence in (
            f"Line 4: ntips is not known. Did you mean n_tips? Allowed: {', '.join(reading.NAMES)}.",
            "Line 1: experiment must be 1 to 64 letters, digits, _, . and -, not only dots; it is 'a b'.",
            "Line 7: scenarios[1].repeat is set by the experiment. Use another name.",
            "Line 8: Rubric tip-v2 not found. Did you mean tip-v1? Use tip-v1, or write a rubric.",
            "Line 5: max_tokens must be between 1 and 1,000,000.",
            "Line 2: models[0]: x:7b at left has 7 billion parameters; --max-model-b is 3. Choose a smaller model, or "
            "set --max-model-b to 0 for any.",
        )
    ]
    path.write_text("name: tips\nmodels: a\nprompts: v1\nn_scenarios: 211\nbudget_usd: 1\n")
    assert refused(capsys, str(path)) == [
        f"{path}: Line 4: n_scenarios must be between 1 and 210.",
        f"{path}: Line 5: budget_usd needs num_predict, which limits what an answer may cost.",
    ]
    assert refused(capsys, str(path), "--n-scenarios", "3") == [
        f"{path}: Line 5: budget_usd needs num_predict, which limits what an answer may cost."
    ]
    said = "Nothing is left of the $1 of experiment tips. Raise budget_usd."
    told.answers["RunExperiment"] = errors.ConflictError(said)
    assert refused(capsys, str(path)) == [said]
    assert refused(capsys, str(path), "--budget-usd", "1")[0].endswith("Raise --budget-usd.")


def test_problems_that_did_not_fit_into_the_answer_are_counted(told: Fakes, capsys: Captured, tmp_path: Path) -> None:
    told.answers["RunExperiment"] = checked
    path = tmp_path / "tips.yaml"
    models = ", ".join(f"{{modle: {number}}}" for number in range(50))
    path.write_text(f"name: tips\nmodels: [{models}]\nprompts: v1\n")
    said = refused(capsys, str(path))
    assert len(said) > 20
    assert said[-1] == f"{101 - len(said)} further problems not shown."


def test_a_judge_has_the_rubric_of_the_experiment(told: Fakes, capsys: Captured) -> None:
    assert main([*DOCUMENT, "--judge-model", "two", "--judge-provider", "right", "--detach"]) == 0
    (request,) = told.requests("RunExperiment")
    assert list(request.judges) == [job_pb2.Judge(endpoint="right", model="two")]
    assert f"touchstone bench compare --experiment {NAME}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*DOCUMENT, "--judge-endpoint", "right"])


ASKED = job_pb2.Sampling(max_tokens=400)


def test_several_judges_have_options_of_their_own(told: Fakes, capsys: Captured) -> None:
    first = ["--judge-provider", "right", "--judge-model", "two"]
    second = ["--judge-model", "one", "--judge-endpoint", "left", "--judge-repeats", "3"]
    second += ["--judge-max-tokens", "400", "--judge-budget-usd", "2.5"]
    third = ["--judge-model", "two", "--judge-endpoint", "right", "--judge-seed", "-2", "--judge-temperature", "0"]
    third += ["--judge-custom-config", '{"think": false}']
    assert main([*DOCUMENT, *first, *second, *third, "--detach"]) == 0
    (request,) = told.requests("RunExperiment")
    seeded = job_pb2.Sampling(seed=-2, temperature=0, extra_json='{"think":false}')
    assert list(request.judges) == [
        job_pb2.Judge(endpoint="right", model="two"),
        job_pb2.Judge(endpoint="left", model="one", repeats=3, budget_usd=2.5, sampling=ASKED),
        job_pb2.Judge(endpoint="right", model="two", sampling=seeded),
    ]
    capsys.readouterr()
    for wrong, said in (
        (["--judge-repeats", "2"], "need --judge-model"),
        (["--judge-model", "one", "--judge-repeats", "11"], "must be between 1 and 10"),
        (["--judge-model", "one", "--judge-max-tokens", "0"], "must be between 1 and"),
        (["--judge-model", "one", "--judge-budget-usd", "2"], "needs --judge-max-tokens"),
        (["--judge-model", "one"] * 4, "--judge-model may be given up to 3 times"),
    ):
        with pytest.raises(SystemExit):
            main([*DOCUMENT, *wrong])
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(("had", "told_so"), [(None, True), (ASKED, False)])
def test_the_same_model_with_other_parameters_is_said_to_cost_all_answers(
    told: Fakes, capsys: Captured, had: job_pb2.Sampling | None, told_so: bool
) -> None:
    job = dataset_job(JOB, "one", "PENDING")
    job.spec.judges.add(endpoint="right", model="two", sampling=had)
    told.answers["RunExperiment"] = scheduler_service_pb2.RunExperimentResponse(experiment=NAME, jobs=[job])
    judge = ["--judge-model", "two", "--judge-endpoint", "right", "--judge-max-tokens", "400"]
    assert main([*DOCUMENT, *judge, "--check"]) == 0
    assert ("Each judges, and costs, all answers." in capsys.readouterr().err) is told_so


@pytest.mark.parametrize("of", [1, 2])
def test_a_deleted_judge_is_not_said_to_judge(told: Fakes, capsys: Captured, of: int) -> None:
    jobs = [dataset_job(JOB, "one", "PENDING"), dataset_job(OTHER, "two", "PENDING")]
    made = scheduler_service_pb2.RunExperimentResponse(experiment=NAME, jobs=jobs)
    made.deleted_judges.add(judge=0, job_ids=[JOB, OTHER][:of])
    told.answers["RunExperiment"] = made
    assert main([*DOCUMENT, "--judge-model", "two", "--judge-endpoint", "right", "--detach"]) == 0
    said = capsys.readouterr().err
    assert f"two does not judge the answers of {'one' if of == 1 else 'one, two'} again: its job was deleted." in said
    assert ("two judges the answers once all are there" in said) is (of == 1)


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
    ("given", "said"),
    [
        (["--max-model-b", "-1"], "argument --max-model-b: it must be between 0 and 1,000,000"),
        (["--n-tips", "0"], "argument --n-tips: it must be between 1 and 20"),
        (["--n-scenarios", "211"], "argument --n-scenarios: it must be between 1 and 210"),
        (["--repeats", "1.5"], "argument --repeats: it must be a whole number"),
        (["--n-scenarios", "2", "--scenarios", "f"], "not allowed with argument"),
    ],
)
def test_wrong_arguments_are_refused(told: Fakes, capsys: Captured, given: list[str], said: str) -> None:
    with pytest.raises(SystemExit):
        main([*DOCUMENT, *given])
    assert said in capsys.readouterr().err
    assert told.heard == []
