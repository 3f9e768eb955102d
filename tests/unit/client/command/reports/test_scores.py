"""Scores of a job as the command prints them."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, Fakes, dataset_job
from touchstone.v1 import metric_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


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
