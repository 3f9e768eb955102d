"""Jobs by the blocking client: creating, watching, waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from services import errors
from services.words import rubrics
from tests.unit.client.fakes import JOB, OTHER, Fakes, job, states, watched
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client import Client, InvalidError, NotFoundError, suite_spec


def test_two_runs_of_one_spec_are_two_jobs(fakes: Fakes) -> None:
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=job())
    with Client() as client:
        for _ in range(2):
            client.run(suite_spec("glue", endpoint="e", model="m"))
        client.run(suite_spec("glue", endpoint="e", model="m"), "nightly")
    first, second, third = (request.request_id for request in fakes.requests("CreateJob"))
    assert first != second
    assert third == "nightly"


def test_a_watch_outlasts_a_scheduler_that_restarts(fakes: Fakes) -> None:
    watched(fakes)
    with Client() as client:
        seen = [state.state for state in client.watch(JOB)]
    names = [job_pb2.Job.State.Name(state) for state in seen]
    assert names == ["STATE_PENDING", "STATE_RUNNING", "STATE_RUNNING", "STATE_COMPLETED"]


def test_a_job_that_the_scheduler_has_forgotten_is_with_results(fakes: Fakes) -> None:
    fakes.answers["WatchJob"] = [errors.NotFoundError("Unknown.")]
    fakes.answers["Scheduler.GetJob"] = errors.NotFoundError("Unknown.")
    fakes.answers["Results.GetJob"] = results_service_pb2.ResultsServiceGetJobResponse(job=job(model="old"))
    with Client() as client:
        assert client.job(JOB).spec.model == "old"
        assert client.wait(JOB).spec.model == "old"


def test_a_job_that_nobody_knows_is_not_found(fakes: Fakes) -> None:
    for method in ("Scheduler.GetJob", "Results.GetJob"):
        fakes.answers[method] = errors.NotFoundError("Job x was never heard of.")
    fakes.answers["WatchJob"] = [errors.NotFoundError("Unknown.")]
    with Client() as client:
        for ask in (client.job, client.wait):
            with pytest.raises(NotFoundError, match="never heard of"):
                ask("x")


def test_waiting_ends_with_the_time_given(fakes: Fakes) -> None:
    release = threading.Event()

    def pending(request: Any) -> Iterator[Any]:
        yield from states("RUNNING")
        release.wait(10)

    fakes.answers["WatchJob"] = pending
    try:
        with Client() as client, pytest.raises(TimeoutError, match=r"not finished after 0\.3 s; it continues"):
            client.wait(JOB, timeout_s=0.3)
    finally:
        release.set()


def test_a_rescore_and_a_rerun_copy_their_source(fakes: Fakes) -> None:
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=job(OTHER))
    with Client() as client:
        client.rescore(JOB)
        client.rerun(JOB, [item_result_pb2.OUTCOME_UNPARSED], max_tokens=9)
    first, second = (request.spec for request in fakes.requests("CreateJob"))
    assert (first.reuse.job_id, list(first.reuse.rerun)) == (JOB, [])
    assert (list(second.reuse.rerun), second.sampling.max_tokens) == ([item_result_pb2.OUTCOME_UNPARSED], 9)


def test_an_estimate_names_the_run_it_is_learned_from(fakes: Fakes) -> None:
    fakes.answers["EstimateRun"] = results_service_pb2.EstimateRunResponse(items=5000)
    with Client() as client:
        assert client.estimate(JOB, 5000, concurrency=8).items == 5000
    (request,) = fakes.requests("EstimateRun")
    assert (request.job_id, request.items, request.concurrency) == (JOB, 5000, 8)


def test_a_judge_is_a_job_over_another_jobs_answers(fakes: Fakes) -> None:
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=job(OTHER))
    with Client() as client:
        made = client.judge(JOB, endpoint="e", model="judge", rubric=TIPS, repeats=2, priority="low", request_id="once")
        with pytest.raises(InvalidError, match="needs a version"):
            client.judge(JOB, endpoint="e", model="judge", rubric="{}")
    assert made.job_id == OTHER
    (request,) = fakes.requests("CreateJob")
    spec = request.spec
    assert (request.request_id, spec.endpoint, spec.model, spec.WhichOneof("work")) == ("once", "e", "judge", None)
    assert (spec.judging.job_id, spec.judging.repeats, spec.priority) == (JOB, 2, job_pb2.PRIORITY_LOW)
    assert rubrics.parse(spec.judging.rubric) == rubrics.of_value(TIPS)
