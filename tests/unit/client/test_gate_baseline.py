"""Which run `touchstone gate` measures against, and what it says of the runs that it passes over."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes, job
from tests.unit.client.test_gate import Pipeline
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2


@pytest.fixture
def pipeline(fakes: Fakes) -> Pipeline:
    return Pipeline(fakes)


def sized(job_id: str, items: int, minute: int, subset: bool = False) -> job_pb2.Job:
    made = job(job_id, model="base", subset=subset, plan=[job_pb2.TaskPlan(task="sst2", items=items)])
    made.finished_at.FromSeconds(60 * minute)
    return made


def test_the_newest_whole_run_is_the_baseline_and_a_newer_trial_is_told(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    older, whole, trial = (f"{digit}" * 8 + "-3333-3333-3333-333333333333" for digit in "345")
    jobs = [sized(trial, 5, 3, subset=True), sized(older, 40, 1), sized(whole, 40, 2)]
    pipeline.fakes.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(jobs=jobs)
    pipeline.run()
    said = capsys.readouterr().err
    assert f"baseline: job {whole}, base@e" in said
    assert f"job {whole} is the newest whole run, 40; job {trial} is newer and ran 5." in said


def test_without_a_whole_run_the_newest_on_the_most_items_is_the_baseline(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    older, large, trial = (f"{digit}" * 8 + "-3333-3333-3333-333333333333" for digit in "345")
    jobs = [sized(trial, 5, 3, subset=True), sized(large, 20, 2, subset=True), sized(older, 20, 1, subset=True)]
    pipeline.fakes.answers["Results.ListJobs"] = results_service_pb2.ResultsServiceListJobsResponse(jobs=jobs)
    pipeline.run()
    assert f"baseline: job {large}, base@e" in capsys.readouterr().err


def test_a_job_on_a_subset_says_that_there_is_a_whole_run(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = "33333333-3333-3333-3333-333333333333"
    listed = results_service_pb2.ResultsServiceListJobsResponse(
        jobs=[sized(JOB, 5, 3, subset=True), sized(whole, 40, 2)]
    )
    pipeline.fakes.answers |= {
        "Results.ListJobs": listed,
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=pipeline.states[-1] if request.job_id == OTHER else sized(JOB, 5, 3, subset=True)
        ),
    }
    pipeline.run("--baseline", JOB)
    said = capsys.readouterr().err
    assert f"job {JOB} ran 5 items; job {whole} is a whole run of the same configuration, 40, and is not taken." in said
    assert f"baseline: job {JOB}, base@e" in said
