"""Running a job from the command line."""

from __future__ import annotations

import json
import shlex

import pytest

from services.words.job_options import command_of
from tests.unit.client.command.verbs import RUN
from tests.unit.client.fakes import JOB, Fakes, job
from touchstone.v1 import dataset_service_pb2, endpoint_pb2, job_pb2, scheduler_service_pb2, scoring_pb2, suite_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_the_documents_spellings_make_the_job(told: Fakes) -> None:
    more = (
        "--ollama-temperature 0.1 --ollama-top-p 0.9 --ollama-top-k 40 --ollama-num-predict 64 --ollama-num-ctx 2048 "
        "--ollama-seed 42 --ollama-repeat-penalty 1.1 --tasks rte,sst2 --no-watch"
    )
    assert main([*RUN, *more.split(), "--custom-config", '{"num_gpu": 1}']) == 0
    spec = told.specs()[0]
    assert (spec.project_id, spec.endpoint, spec.model, spec.suite.suite) == (7, "local", "mistral:latest", "glue")
    assert list(spec.suite.tasks) == ["rte", "sst2"]
    expected = job_pb2.Sampling(
        temperature=0.1, top_p=0.9, top_k=40, max_tokens=64, context_length=2048, seed=42, repeat_penalty=1.1
    )
    expected.extra_json = '{"num_gpu":1}'
    assert spec.sampling == expected


@pytest.mark.parametrize("name", ["--max-tokens", "--num-predict", "--ollama-num-predict"])
def test_the_limit_on_tokens_has_one_meaning(told: Fakes, name: str) -> None:
    assert main([*RUN, name, "9", "--no-watch"]) == 0
    assert told.specs()[0].sampling == job_pb2.Sampling(max_tokens=9)


def test_a_kind_that_two_endpoints_have_names_them(told: Fakes, capsys: Captured) -> None:
    two = [endpoint_pb2.Endpoint(endpoint=name, kind="ollama") for name in ("left", "right")]
    told.answers["ListEndpoints"] = scheduler_service_pb2.ListEndpointsResponse(endpoints=two)
    assert main([*RUN, "--no-watch"]) == 2
    assert "Several endpoints are of kind ollama: left, right" in capsys.readouterr().err
    assert told.specs() == []


def test_a_run_prints_its_id_and_then_its_scores(told: Fakes, capsys: Captured) -> None:
    assert main(RUN) == 0
    captured = capsys.readouterr()
    first, *table = captured.out.splitlines()
    assert first == JOB
    assert ["rte", "accuracy", "0.6000"] in [line.split()[:3] for line in table]
    assert captured.err.splitlines() == ["Running", "Completed"]


def test_a_run_in_json_prints_nothing_else(told: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--format", "json"]) == 0
    captured = capsys.readouterr()
    made = json.loads(captured.out)
    assert (made["job_id"], made["status"]) == (JOB, "completed")
    assert made["result"]["suite_score"]["mean"] == 0.7
    assert captured.err.splitlines()[0] == JOB


@pytest.mark.parametrize(
    ("last", "code", "said"),
    [
        (job(state="FAILED", reason="The endpoint is down."), 1, "The endpoint is down."),
        (job(state="CANCELLED"), 1, "cancelled"),
        (job(incomplete=True), 1, "Completed"),
    ],
)
def test_a_job_that_did_not_finish_well_is_code_one(
    told: Fakes, capsys: Captured, last: job_pb2.Job, code: int, said: str
) -> None:
    told.answers["WatchJob"] = [scheduler_service_pb2.WatchJobResponse(job=last)]
    assert main(["status", JOB, "--poll"]) == code
    assert said in capsys.readouterr().err


SPECS = [
    job_pb2.JobSpec(
        endpoint="local",
        model="mistral:latest",
        mode=suite_pb2.MODE_GENERATE,
        suite=job_pb2.SuiteWork(suite="glue", tasks=["rte", "sst2"], limit=40, shots=2, repeats=3, seed=-7),
        sampling=job_pb2.Sampling(temperature=0.1, top_k=4, seed=42, extra_json='{"num_gpu":1,"stop":["it\'s"]}'),
        priority=job_pb2.PRIORITY_LOW,
        reading=scoring_pb2.READING_STRICT,
        project_id=9,
        time_limit_s=60,
        stream=True,
        budget_usd=0.07,
        labels={"ticket": "T 1", "a": "b=c"},
        reuse=job_pb2.Reuse(any_job=True, without_digest=True),
    ),
    job_pb2.JobSpec(
        endpoint="local",
        model="mistral:latest",
        mode=suite_pb2.MODE_LOGLIKELIHOOD,
        suite=job_pb2.SuiteWork(suite="lm_eval:hellaswag"),
        sampling=job_pb2.Sampling(),
    ),
    job_pb2.JobSpec(
        endpoint="local",
        model="mistral:latest",
        dataset=job_pb2.DatasetWork(
            dataset_id="ds_" + "0" * 32,
            limit=5,
            scoring=scoring_pb2.Scoring(
                scorer="numeric", tolerance=0.07, tolerance_is_relative=True, answer_pattern="= (.*)"
            ),
            further=[scoring_pb2.Scoring(scorer="choice", choices=["yes", "no"])],
        ),
        sampling=job_pb2.Sampling(min_p=0.25),
        provider_batch=True,
    ),
]


@pytest.mark.parametrize("spec", SPECS, ids=["options", "open suite", "dataset"])
def test_the_command_of_a_job_makes_the_same_job(told: Fakes, spec: job_pb2.JobSpec) -> None:
    told.answers["GetDataset"] = dataset_service_pb2.GetDatasetResponse()
    program, *arguments = shlex.split(command_of(spec))
    assert program == "touchstone"
    assert main([*arguments, "--no-watch"]) == 0
    assert told.specs() == [spec]


def test_a_job_over_other_jobs_answers_has_no_command() -> None:
    assert command_of(job_pb2.JobSpec(reuse=job_pb2.Reuse(job_id=JOB))) == ""
    assert command_of(job_pb2.JobSpec(judging=job_pb2.Judging(job_id=JOB))) == ""
