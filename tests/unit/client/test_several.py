"""Several jobs at once: runs of several models, and all jobs that live."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job, job, result
from touchstone.v1 import (
    dataset_service_pb2,
    endpoint_pb2,
    metric_pb2,
    queue_pb2,
    results_service_pb2,
    scheduler_service_pb2,
    scoring_pb2,
)
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
RUN = ["run", "--dataset", DATASET, "--model", "one", "--model", "two@right"]


@pytest.fixture
def pair(fakes: Fakes) -> Fakes:
    """Two endpoints with a model each, and two jobs of which the first ends before the second."""
    endpoints = [endpoint_pb2.Endpoint(endpoint=name, kind="vllm") for name in ("left", "right")]
    models = {"left": "one", "right": "two"}
    ids = {"one": JOB, "two": OTHER}
    running = {model: dataset_job(job_id, model, "RUNNING") for model, job_id in ids.items()}
    queues: Iterator[list[Any]] = itertools.chain([[*running.values()], [running["two"]]], itertools.repeat([]))
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": lambda request: scheduler_service_pb2.ListModelsResponse(
            models=[endpoint_pb2.Model(model=models[request.endpoint])]
        ),
        "CreateJobs": lambda request: scheduler_service_pb2.CreateJobsResponse(
            jobs=[dataset_job(ids[spec.model], spec.model, "PENDING") for spec in request.specs]
        ),
        "GetQueue": lambda request: scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue(running=next(queues))),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one" if request.job_id == JOB else "two")
        ),
        "GetJobResult": lambda request: results_service_pb2.GetJobResultResponse(result=result(request.job_id)),
    }
    return fakes


def test_several_models_print_ids_and_then_a_table_each(pair: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--max-tokens", "9", "--label", "a=1", "--label", "b=x=y", "--budget-usd", "2.5"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[:2] == [JOB, OTHER]
    assert [line for line in lines if line in ("one", "two")] == ["one", "two"]
    assert captured.err.splitlines() == ["one: Running", "two: Running", "one: Completed", "two: Completed"]
    first, second = pair.specs()
    assert (first.endpoint, first.model, second.endpoint, second.model) == ("left", "one", "right", "two")
    assert (first.dataset.dataset_id, first.sampling.max_tokens, first.budget_usd) == (DATASET, 9, 2.5)
    assert dict(first.labels) == {"a": "1", "b": "x=y"}
    assert not first.dataset.HasField("scoring")


def test_for_programs_there_is_one_document(pair: Fakes, capsys: Captured) -> None:
    assert main([*RUN, "--format", "json"]) == 0
    assert [made["job_id"] for made in json.loads(capsys.readouterr().out)] == [JOB, OTHER]


def test_for_spreadsheets_there_is_one_table(pair: Fakes, capsys: Captured) -> None:
    main([*RUN, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["job_id"], row["model_name"]) for row in rows} == {(JOB, "one"), (OTHER, "two")}
    assert len(rows) == 6


def test_one_that_fails_is_code_one_and_says_why(pair: Fakes, capsys: Captured) -> None:
    failed = dataset_job(OTHER, "two", "FAILED", reason="$2.50 of $2.50 are spent after 812 of 5,000 items.")
    pair.answers["Scheduler.GetJob"] = lambda request: scheduler_service_pb2.GetJobResponse(
        job=failed if request.job_id == OTHER else dataset_job(JOB, "one")
    )
    assert main(RUN) == 1
    captured = capsys.readouterr()
    assert "touchstone: two: $2.50 of $2.50 are spent after 812 of 5,000 items." in captured.err
    assert "rte" in captured.out


@pytest.mark.parametrize("command", [RUN, ["estimate", *RUN[1:]]])
def test_several_models_are_asked_for_at_once_so_that_a_refusal_leaves_nothing(
    pair: Fakes, capsys: Captured, command: list[str]
) -> None:
    pair.answers["CreateJobs"] = errors.LimitReachedError("The queue has room for 1 more of your jobs, not for 2.", 9)
    assert main(command) == 2
    assert len(pair.requests("CreateJobs")) == 1
    assert len(pair.specs()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "touchstone: The queue has room for 1 more of your jobs, not for 2." in captured.err


def test_a_request_id_is_sent_as_it_is(pair: Fakes) -> None:
    for _ in range(2):
        assert main([*RUN, "--request-id", "friday", "--no-watch"]) == 0
    assert main([*RUN, "--no-watch"]) == 0
    first, second, own = (request.request_id for request in pair.requests("CreateJobs"))
    assert (first, second) == ("friday", "friday")
    assert own not in ("", "friday")


def test_another_scorer_keeps_the_datasets_reference(pair: Fakes) -> None:
    known = dataset_service_pb2.GetDatasetResponse()
    known.dataset.scoring.reference_field = "label"
    pair.answers["GetDataset"] = known
    assert main([*RUN, "--scorer", "numeric", "--tolerance", "1%", "--no-watch"]) == 0
    scoring = pair.specs()[0].dataset.scoring
    assert (scoring.scorer, scoring.reference_field) == ("numeric", "label")
    assert (scoring.tolerance, scoring.tolerance_is_relative) == (0.01, True)


def test_layers_and_the_match_that_counts_are_chosen(pair: Fakes, capsys: Captured) -> None:
    pair.answers["GetDataset"] = dataset_service_pb2.GetDatasetResponse()
    pattern = ["--answer-pattern", "is (.)", "--answer-match", "first"]
    assert main([*RUN, "--scorer", "choice", *pattern, "--no-watch"]) == 0
    assert main([*RUN, "--scorer", "choice", "--reading", "strict", "--no-watch"]) == 0
    assert main(["run", "--suite", "glue", "--model", "one", "--reading", "marked", "--no-watch"]) == 0
    by_pattern, strict, suite = pair.specs()[0], pair.specs()[2], pair.specs()[-1]
    assert (by_pattern.reading, by_pattern.dataset.scoring.answer_match) == (0, scoring_pb2.ANSWER_MATCH_FIRST)
    assert (strict.reading, suite.reading) == (scoring_pb2.READING_STRICT, scoring_pb2.READING_MARKED)
    with pytest.raises(SystemExit):
        main([*RUN, "--answer-match", "second"])
    assert "it may be last or first" in capsys.readouterr().err


def test_the_suite_form_takes_several_models_as_well(pair: Fakes, capsys: Captured) -> None:
    assert main(["run", "--suite", "glue", "--model", "one", "--model", "two", "--shots", "2", "--no-watch"]) == 0
    assert capsys.readouterr().out.splitlines() == [JOB, OTHER]
    assert [(spec.endpoint, spec.suite.suite, spec.suite.shots) for spec in pair.specs()] == [
        ("left", "glue", 2),
        ("right", "glue", 2),
    ]


def test_status_without_a_job_shows_all_that_live(pair: Fakes, capsys: Captured) -> None:
    assert main(["status", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(row["job_id"], row["status"], row["benchmark_suite"]) for row in shown] == [
        (JOB, "running", DATASET),
        (OTHER, "running", DATASET),
    ]


def test_a_watch_without_a_job_follows_all_to_their_end(pair: Fakes, capsys: Captured) -> None:
    assert main(["status", "--watch"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["one: Completed", "two: Running", "two: Completed"]
    assert [line.split()[:2] for line in captured.out.splitlines()[1:]] == [[JOB, "completed"], [OTHER, "completed"]]


def test_a_watch_of_all_outlasts_a_scheduler_that_restarts(pair: Fakes) -> None:
    there: Any = pair.answers["GetQueue"]
    # The channel itself tries a call five times.
    asked = itertools.count()
    pair.answers["GetQueue"] = lambda request: grpc.StatusCode.UNAVAILABLE if 1 <= next(asked) <= 6 else there(request)
    assert main(["status", "--watch"]) == 0
    assert next(asked) > 7


def test_a_watch_of_all_says_when_a_job_was_lost(pair: Fakes, capsys: Captured) -> None:
    lost = errors.NotFoundError("Job x was never heard of.")
    pair.answers |= {"Scheduler.GetJob": lost, "Results.GetJob": lost}
    assert main(["status", "--watch"]) == 2
    assert "never heard of" in capsys.readouterr().err


def test_nothing_to_watch_is_said(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["GetQueue"] = scheduler_service_pb2.GetQueueResponse()
    assert main(["status", "--watch"]) == 0
    assert "No job runs or waits." in capsys.readouterr().out


def test_rows_without_references_show_what_became_of_them(fakes: Fakes, capsys: Captured) -> None:
    counts = metric_pb2.OutcomeCounts(answered=4998, infrastructure_error=2)
    told = metric_pb2.JobResult(
        job_id=JOB, outcomes=counts, output_tokens=120_000, cost_usd=0.42, not_ranked_reason="no row has a reference"
    )
    fakes.answers |= {
        "WatchJob": [scheduler_service_pb2.WatchJobResponse(job=dataset_job())],
        "GetJobResult": results_service_pb2.GetJobResultResponse(result=told),
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=dataset_job()),
    }
    assert main(["status", JOB, "--watch"]) == 0
    captured = capsys.readouterr()
    facts = dict(line.rsplit("  ", 1) for line in captured.out.splitlines() if line)
    assert {name.strip(): value for name, value in facts.items()} == {
        "answered": "4,998",
        "infrastructure error": "2",
        "tokens out": "120,000",
        "cost": "$0.42",
    }
    assert "not ranked: no row has a reference" in captured.err
    assert main(["results", JOB]) == 0
    assert "exact_match against label" in capsys.readouterr().out


def test_money_and_budget_stand_beside_the_bar(fakes: Fakes, capsys: Captured) -> None:
    spending = job(state="RUNNING")
    spending.spec.budget_usd, spending.progress.cost_usd, spending.progress.reserved_usd = 5.0, 0.4215, 0.003
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=spending)
    assert main(["status", JOB]) == 0
    assert "$0.42 of $5.00, at most $0.0030 more in flight" in capsys.readouterr().out


def test_what_lost_calls_may_cost_stands_beside_the_cost(fakes: Fakes, capsys: Captured) -> None:
    ended = job(state="FAILED")
    ended.spec.budget_usd, ended.progress.lost_usd, ended.progress.reserved_usd = 5.0, 1.4, 1.4
    ended.progress.lost_calls = 44
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=ended)
    assert main(["status", JOB]) == 0
    assert "budget $5.00, up to 44 calls without a known price, up to $1.40" in capsys.readouterr().out
    told = metric_pb2.JobResult(job_id=JOB, cost_usd=0.03)
    fakes.answers["GetJobResult"] = results_service_pb2.GetJobResultResponse(result=told)
    assert main(["results", JOB]) == 0
    assert "up to 44 calls without a known price, up to $1.40" in capsys.readouterr().out
