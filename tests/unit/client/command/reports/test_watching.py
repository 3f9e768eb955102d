"""Watching one job."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, Fakes, job
from touchstone.v1 import metric_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


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
