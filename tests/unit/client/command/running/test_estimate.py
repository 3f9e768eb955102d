"""An estimate of money and time, by a pilot."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job, job
from touchstone.v1 import endpoint_pb2, job_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def pilots(fakes: Fakes) -> Fakes:
    """Pilots of two models end at once; what they cost is known of one."""
    ids = {"one": JOB, "two": OTHER}
    endpoints = [endpoint_pb2.Endpoint(endpoint="e", kind="openai")]
    told = results_service_pb2.EstimateRunResponse(
        items=5000,
        pilot_items=30,
        input_tokens=results_service_pb2.Estimate(value=120_000, low=118_000, high=122_000),
        output_tokens=results_service_pb2.Estimate(value=64_000.4, low=51_000, high=80_000),
        duration_s=results_service_pb2.Estimate(value=1320, low=1080, high=1620),
    )
    priced = results_service_pb2.EstimateRunResponse()
    priced.CopyFrom(told)
    priced.cost_usd.MergeFrom(results_service_pb2.Estimate(value=1.234, low=0.9, high=1.6))
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": scheduler_service_pb2.ListModelsResponse(models=[endpoint_pb2.Model(model=name) for name in ids]),
        "CreateJobs": lambda request: scheduler_service_pb2.CreateJobsResponse(
            jobs=[dataset_job(ids[spec.model], spec.model, "PENDING") for spec in request.specs]
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue()),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one" if request.job_id == JOB else "two")
        ),
        "EstimateRun": lambda request: priced if request.job_id == JOB else told,
    }
    return fakes


ESTIMATE = ["estimate", "--dataset", DATASET, "--model", "one"]


def test_an_estimate_runs_a_pilot_and_prints_tokens_money_and_time(pilots: Fakes, capsys: Captured) -> None:
    assert main([*ESTIMATE, "--max-tokens", "400", "--provider-batch"]) == 0
    (spec,) = pilots.specs()
    work = spec.dataset
    assert (work.dataset_id, work.limit, spec.sampling.max_tokens) == (DATASET, 30, 400)
    assert (spec.priority, spec.provider_batch) == (job_pb2.PRIORITY_UNSPECIFIED, False)
    assert dict(spec.labels) == {"pilot": "0"}
    captured = capsys.readouterr()
    assert f"pilot: job {JOB}" in captured.err
    assert [re.split(r"  +", line)[1:] for line in captured.out.splitlines()[1:5]] == [
        ["tokens in", "120,000", "118,000 to 122,000"],
        ["tokens out", "64,000", "51,000 to 80,000"],
        ["cost", "$1.23", "$0.90 to $1.60"],
        ["time", "22 min", "18–27"],
    ]
    assert f"one: 5,000 items, learned from 30 of job {JOB}." in captured.out


def test_answers_are_promised_only_where_the_weights_are_known(pilots: Fakes, capsys: Captured) -> None:
    assert main(ESTIMATE) == 0
    assert "--reuse" not in capsys.readouterr().out
    known: Any = pilots.answers["Scheduler.GetJob"]

    def with_digest(request: Any) -> Any:
        made = known(request)
        made.job.receipt.model_digest = "sha256:aa" if request.job_id == JOB else ""
        return made

    pilots.answers["Scheduler.GetJob"] = with_digest
    assert main(ESTIMATE) == 0
    assert "A run with --reuse reuses the pilot's answers.\n" in capsys.readouterr().out
    assert main([*ESTIMATE, "--model", "two"]) == 0
    assert "A run with --reuse reuses the pilot's answers of one.\n" in capsys.readouterr().out


def test_several_models_are_estimated_together(pilots: Fakes, capsys: Captured) -> None:
    assert main([*ESTIMATE, "--model", "two@e", "--pilot", "10", "--limit", "200", "--format", "json"]) == 0
    one, two = json.loads(capsys.readouterr().out)
    assert (one["model_name"], one["pilot_job"], one["cost_usd"]["low"]) == ("one", JOB, 0.9)
    assert (two["model_name"], two["cost_usd"]) == ("two", None)
    assert [(spec.dataset.limit, spec.labels["pilot"]) for spec in pilots.specs()] == [(10, "200"), (10, "200")]
    assert [request.items for request in pilots.requests("EstimateRun")] == [200, 200]


def test_what_is_not_priced_is_said(pilots: Fakes, capsys: Captured) -> None:
    assert main(["estimate", "--dataset", DATASET, "--model", "two"]) == 0
    assert "two: the cost is unknown because no price is known." in capsys.readouterr().out


def test_a_suites_tasks_are_counted_by_their_plan(pilots: Fakes) -> None:
    planned = job(JOB, model="one")
    planned.plan.add(task="rte", items=30, published_items=277, repeats=2)
    planned.plan.add(task="sst2", items=30, published_items=872, repeats=2)
    pilots.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=planned)
    suite = ["estimate", "--suite", "glue", "--model", "one"]
    for more in (["--tasks", "rte,sst2", "--limit", "300"], ["--limit", "100"], []):
        assert main([*suite, *more]) == 0
    assert [request.items for request in pilots.requests("EstimateRun")] == [2 * (277 + 300), 2 * 200, 0]
    assert [spec.suite.limit for spec in pilots.specs()] == [30, 30, 30]


def test_a_pilot_that_fails_tells_why(pilots: Fakes, capsys: Captured) -> None:
    failed = dataset_job(JOB, "one", "FAILED", reason="The endpoint is down.")
    pilots.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=failed)
    assert main(ESTIMATE) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "touchstone: one: The endpoint is down." in captured.err


def test_a_pilot_with_too_few_answers_is_refused_in_words(pilots: Fakes, capsys: Captured) -> None:
    pilots.answers["EstimateRun"] = errors.ConflictError("Job x has 3 answers; 5 are needed.")
    assert main(ESTIMATE) == 2
    assert "5 are needed." in capsys.readouterr().err
