"""Starting judges from the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.words import rubrics
from tests.unit.client.command.verbs import RUN
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job, metric
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import job_pb2, metric_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
RUBRIC = rubrics.written(rubrics.of_value(TIPS))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "tips.json"
    path.write_text(json.dumps(TIPS, indent=2))
    return str(path)


def judging() -> job_pb2.Job:
    """A completed job that judges."""
    made = dataset_job(OTHER, "one")
    made.spec.judging.job_id = JOB
    made.spec.dataset.scoring.rubric = RUBRIC
    return made


def test_a_judge_is_asked_for_and_its_means_are_shown_on_their_scales(pair: Fakes, capsys: Captured, file: str) -> None:
    told = metric_pb2.TaskResult(task="rows", items=10, items_planned=12, metrics=[metric("relevance", 0.75, 0.05)])
    told.outcomes.answered, told.outcomes.unparsed = 9, 1
    pair.answers |= {
        "CreateJob": scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER, state="PENDING")),
        "WatchJob": [scheduler_service_pb2.WatchJobResponse(job=judging())],
        "GetJobResult": results_service_pb2.GetJobResultResponse(
            result=metric_pb2.JobResult(job_id=OTHER, tasks=[told])
        ),
    }
    command = ["judge", JOB, "--model", "one", "--rubric", file, "--temperature", "0", "--repeats", "2"]
    assert main([*command, "--budget-usd", "1.5", "--priority", "low", "--request-id", "once"]) == 0
    (request,) = pair.requests("CreateJob")
    assert request.request_id == "once"
    assert request.spec == job_pb2.JobSpec(
        endpoint="left",
        model="one",
        sampling=job_pb2.Sampling(temperature=0),
        budget_usd=1.5,
        priority=job_pb2.PRIORITY_LOW,
        judging=job_pb2.Judging(job_id=JOB, rubric=RUBRIC, repeats=2),
    )
    first, *table = capsys.readouterr().out.splitlines()
    assert first == OTHER
    (line,) = [words for words in map(str.split, table) if "relevance" in words]
    assert line[line.index("relevance") + 1 :] == ["4.00", "3.60", "to", "4.40", "1", "to", "5", "9", "12", "1"]
    assert main(["status", OTHER, "--watch", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["job_id"], made["judged"], made["asked"], made["failed"]) == (OTHER, 9, 12, 1)
    assert made["criteria"][1]["mean_on_scale"] == 4.0


def test_a_judge_compares_two_jobs_with_and_without_a_rubric(pair: Fakes, file: str) -> None:
    pair.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER, state="PENDING"))
    command = ["judge", JOB, "--model", "one", "--against", OTHER, "--no-watch"]
    assert main(command) == 0
    assert main([*command, "--rubric", file]) == 0
    plain, by_rubric = (request.spec.judging for request in pair.requests("CreateJob"))
    assert plain == job_pb2.Judging(job_id=JOB, against_job_id=OTHER)
    assert by_rubric == job_pb2.Judging(job_id=JOB, against_job_id=OTHER, rubric=RUBRIC)


def test_a_judge_of_single_answers_needs_a_rubric(pair: Fakes, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["judge", JOB, "--model", "one"])
    assert "needs --rubric, unless it compares with another job: --against" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": "a-v1",\n "criteria" []}', "is not JSON: Expecting ':' delimiter at line 2, character 13."),
        ("version: a-v1", "is not JSON: Expecting value at line 1, character 1."),
        ("[]", "is not a JSON object."),
        ('{"version": "a-v1"}', "needs between 1 and 12 criteria; it has 0."),
        (
            '{"version": "a b",\n "criteria": [{"name": "a"},\n {"name": "b", "weight": -1}]}',
            'needs a version such as "tip-v1": 1 to 64 letters, digits, _, . and - (line 1). It gives b a weight of '
            "-1; it must be between 0 and 1,000 (line 3).",
        ),
        ("\udcff", "is not UTF-8 text."),
    ],
)
def test_a_mistake_in_a_rubric_is_found_before_anything_is_asked(
    fakes: Fakes, capsys: Captured, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    assert main(["judge", JOB, "--model", "one", "--rubric", str(path)]) == 2
    assert capsys.readouterr().err == f"touchstone: The rubric in {path} {said}\n"
    assert main(["judge", JOB, "--model", "one", "--rubric", f"{path}.none"]) == 2
    assert capsys.readouterr().err == f"touchstone: {path}.none: No such file or directory\n"
    assert fakes.heard == []


def test_a_rubric_may_come_from_standard_input(pair: Fakes, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER))
    text = b"\xef\xbb\xbf" + json.dumps(TIPS).encode()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert main(["judge", JOB, "--model", "two@right", "--rubric", "-", "--no-watch"]) == 0
    assert capsys.readouterr().out == f"{OTHER}\n"
    spec = pair.requests("CreateJob")[0].spec
    assert (spec.endpoint, spec.model, spec.judging.rubric) == ("right", "two", RUBRIC)


def test_a_run_names_a_judge_for_each_of_its_jobs(pair: Fakes, capsys: Captured, file: str) -> None:
    run = ["run", "--dataset", DATASET, "--model", "one", "--model", "two", "--no-watch"]
    assert main([*run, "--judge-model", "two", "--judge-provider", "right", "--judge-rubric", file]) == 0
    judge = job_pb2.Judge(endpoint="right", model="two", rubric=RUBRIC)
    assert [list(spec.judges) for spec in pair.specs()] == [[judge], [judge]]
    assert "touchstone judges JOB" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--judge-model", "m"], ["--judge-rubric", "f"], ["--judge-endpoint", "e"]])
def test_half_a_judge_is_refused(told: Fakes, capsys: Captured, given: list[str]) -> None:
    with pytest.raises(SystemExit):
        main([*RUN, *given])
    assert "--judge-" in capsys.readouterr().err
    assert told.heard == []
