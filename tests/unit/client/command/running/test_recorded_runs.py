"""Recorded runs from the command line."""

from __future__ import annotations

import json

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import call_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def specs() -> results_service_pb2.CloseRecordedRunResponse:
    made = results_service_pb2.CloseRecordedRunResponse(request_id="r1", dataset_id=DATASET)
    made.specs.extend(dataset_job(JOB, model).spec for model in ("one", "two"))
    return made


def test_a_run_is_closed_with_a_job_for_each_model(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["CloseRecordedRun"] = specs()
    jobs = [dataset_job(JOB, "one", "PENDING"), dataset_job(OTHER, "two", "PENDING")]
    jobs[0].spec.labels["endpoint"] = "local"
    fakes.answers["CreateJobs"] = scheduler_service_pb2.CreateJobsResponse(jobs=jobs)
    assert main(["recorded-runs", "close", "bot", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["job_id"], row["model_name"], row["endpoint"], row["status"]) for row in rows] == [
        (JOB, "one", "local", "pending"),
        (OTHER, "two", "", "pending"),
    ]
    assert {row["dataset_id"] for row in rows} == {DATASET}
    assert fakes.requests("CloseRecordedRun")[0].name == "bot"
    assert fakes.requests("CreateJobs")[0].request_id == "r1"

    # Closed before: the same jobs, and none is created.
    fakes.answers["CloseRecordedRun"] = results_service_pb2.CloseRecordedRunResponse(job_ids=[JOB])
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=dataset_job(JOB, "one"))
    assert main(["recorded-runs", "close", "bot"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == [JOB, "one"]
    assert len(fakes.requests("CreateJobs")) == 1


def test_a_run_is_deleted_or_refused(fakes: Fakes, capsys: Captured) -> None:
    fakes.answers["DeleteRecordedRun"] = results_service_pb2.DeleteRecordedRunResponse(
        run=call_pb2.RecordedRun(name="bot")
    )
    assert main(["recorded-runs", "delete", "bot"]) == 0
    assert capsys.readouterr().out == "What bot has recorded is deleted.\n"
    fakes.answers["CloseRecordedRun"] = errors.NotFoundError("No recorded run has the name 'bot'.")
    assert main(["recorded-runs", "close", "bot"]) == 2
    assert capsys.readouterr().err == "touchstone: No recorded run has the name 'bot'.\n"
