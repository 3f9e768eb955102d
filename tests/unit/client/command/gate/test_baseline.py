"""Which run `touchstone gate` measures against, and what it says of the runs that it passes over."""

from __future__ import annotations

import pytest

from tests.unit.client.command.gate.compared import Pipeline
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, result
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2


def test_the_baseline_is_chosen_before_the_candidate_runs(pipeline: Pipeline) -> None:
    """Afterwards the newest run of the same model would be the candidate."""
    pipeline.run()
    order = [name.partition(".")[2] for name, _ in pipeline.fakes.heard]
    assert order.index("ListJobs") < order.index("CreateJob")


@pytest.mark.parametrize("word", [JOB, "hash-of-base", "prod", "base@e", "base"])
def test_a_baseline_is_named_in_any_way(pipeline: Pipeline, word: str) -> None:
    if word == "hash-of-base":
        hashed = results_service_pb2.Configuration(configuration="0123456789abcdef", model="base", endpoint="e")
        listed = results_service_pb2.ListConfigurationsResponse(configurations=[hashed])
        pipeline.fakes.answers["ListConfigurations"] = lambda request: listed if not request.named else type(listed)()
        jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base")])
        jobs.jobs[0].receipt.configuration = word = "0123456789abcdef"
        pipeline.fakes.answers["Results.ListJobs"] = jobs
    assert pipeline.run("--baseline", word) == 0
    assert pipeline.fakes.requests("Compare")[-1].baseline == JOB


def test_incomplete_marked_and_foreign_runs_are_no_baseline(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    other_mode, incomplete, marked = job(model="base"), job(model="base", incomplete=True), job(OTHER, model="base")
    other_mode.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    good = job("33333333-3333-3333-3333-333333333333", model="base")
    listed = results_service_pb2.ResultsServiceListJobsResponse(jobs=[other_mode, incomplete, marked, good])
    pipeline.fakes.answers["Results.ListJobs"] = listed
    pipeline.fakes.answers["GetJobResult"] = lambda request: results_service_pb2.GetJobResultResponse(
        result=result(mark="invalidated" if request.job_id == OTHER else "")
    )
    pipeline.run()
    assert f"baseline: job {good.job_id}" in capsys.readouterr().err


def test_a_name_of_several_configurations_is_refused(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    configurations = [results_service_pb2.Configuration(configuration=c, model="base") for c in ("one", "two")]
    listed = results_service_pb2.ListConfigurationsResponse(configurations=configurations)
    pipeline.fakes.answers["ListConfigurations"] = lambda request: listed if request.model == "base" else type(listed)()
    jobs = results_service_pb2.ResultsServiceListJobsResponse(jobs=[job(model="base"), job(OTHER, model="base")])
    jobs.jobs[0].receipt.configuration, jobs.jobs[1].receipt.configuration = "one", "two"
    pipeline.fakes.answers["Results.ListJobs"] = jobs
    assert pipeline.run() == 4
    said = capsys.readouterr().err
    assert "fits several configurations: one" in said
    assert pipeline.fakes.requests("CreateJob") == []


def test_a_baseline_that_never_ran_is_refused_before_anything_runs(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipeline.run("--baseline", "nobody") == 4
    assert "has no complete run of glue in generate mode" in capsys.readouterr().err
    assert pipeline.fakes.requests("CreateJob") == []


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
    assert f"job {whole} is the newest full run, 40; job {trial} is newer and ran 5." in said


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
    assert (
        f"job {JOB} ran 5 items; job {whole} is a full run of the same configuration with 40 items, but is not used."
        in said
    )
    assert f"baseline: job {JOB}, base@e" in said
