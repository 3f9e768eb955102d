"""Scoring a job's answers again from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, Fakes, job
from touchstone.v1 import results_service_pb2, scheduler_service_pb2, scoring_pb2
from touchstone_client import Scoring
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
Verdict = results_service_pb2.Annotation


def test_a_rescore_keeps_what_is_not_said(kept: Fakes) -> None:
    assert main(["rescore", JOB, "--scorer", "contains", "--no-watch"]) == 0
    assert main(["rescore", JOB, "--no-watch"]) == 0
    assert main(["rescore", JOB, "--reading", "lenient", "--no-watch"]) == 0
    assert main(["rescore", JOB, "--further-scorer", "contains", "--no-watch"]) == 0
    specs = [request.spec for request in kept.requests("CreateJob")]
    usual = Scoring(scorer="exact_match", reference_field="label")
    assert [spec.dataset.scoring for spec in specs] == [
        Scoring(scorer="contains", reference_field="label"),
        usual,
        usual,
        usual,
    ]
    assert [spec.reading for spec in specs] == [0, 0, scoring_pb2.READING_LENIENT, 0]
    assert [list(spec.dataset.further) for spec in specs] == [[], [], [], [Scoring(scorer="contains")]]


def test_a_suites_run_is_not_scored_by_another_scorer(kept: Fakes, capsys: Captured) -> None:
    kept.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    assert main(["rescore", JOB, "--scorer", "contains"]) == 2
    assert "whose tasks have their own scorers" in capsys.readouterr().err
    assert kept.requests("CreateJob") == []
