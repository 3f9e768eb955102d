"""Running a job again from the command line."""

from __future__ import annotations

from tests.unit.client.fakes import JOB, Fakes
from touchstone.v1 import results_service_pb2
from touchstone_client.command import main

Verdict = results_service_pb2.Annotation


def test_a_rerun_takes_a_higher_budget(kept: Fakes) -> None:
    assert main(["rerun", JOB, "--outcome", "error", "--budget-usd", "10", "--no-watch"]) == 0
    assert kept.requests("CreateJob")[0].spec.budget_usd == 10
