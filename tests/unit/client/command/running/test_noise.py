"""How many answers change when they are asked for again, from the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from services import errors
from services.words import noise as words
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import endpoint_pb2, noise_pb2, queue_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
FOUND = noise_pb2.Noise(
    suite="gsm8k",
    servings=[
        noise_pb2.NoiseServing(
            model="one",
            endpoint="e",
            runs=[noise_pb2.NoiseRun(job_id=job, repeats=1, score=0.75) for job in (JOB, OTHER)],
        )
    ],
    total=noise_pb2.NoiseFigures(
        items=1319,
        reasking=noise_pb2.Flips(share=0.0212, low=0.0141, high=0.031),
        variance=noise_pb2.VarianceParts(items=0.18, reasking=0.0106, runs=0.0),
        floor=0.0062,
    ),
    notes=["2 items without a new answer in every run left out."],
)
SAID = (
    "Asked again, 2.12 % (1.41 to 3.10) of the items flip.",
    "Scores of two runs by one serving differ by up to 0.62 points with a chance of 95 %.",
    "2 items without a new answer in every run left out.",
)


@pytest.fixture
def measured(fakes: Fakes) -> Fakes:
    endpoints = [endpoint_pb2.Endpoint(endpoint="e", kind="openai")]
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": scheduler_service_pb2.ListModelsResponse(
            models=[endpoint_pb2.Model(model=name) for name in ("one", "two")]
        ),
        "CreateJobs": lambda request: scheduler_service_pb2.CreateJobsResponse(
            jobs=[
                dataset_job(job, spec.model, "PENDING")
                for job, spec in zip((JOB, OTHER, JOB, OTHER), request.specs, strict=False)
            ]
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue()),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one", "COMPLETED")
        ),
        "Results.GetJob": lambda request: results_service_pb2.ResultsServiceGetJobResponse(
            job=dataset_job(request.job_id, "one", "COMPLETED")
        ),
        "GetNoise": results_service_pb2.GetNoiseResponse(noise=FOUND),
    }
    return fakes


def test_each_asking_is_a_job_of_its_own(measured: Fakes, capsys: Captured) -> None:
    arguments = ["--repeats", "2", "--request-id", "r1", "--temperature", "0.5"]
    assert main(["noise", "one", "--dataset", DATASET, *arguments]) == 0
    (request,) = measured.requests("CreateJobs")
    first, second = request.specs
    assert first == second
    assert (request.request_id, first.sampling.temperature, first.suite.repeats) == ("r1", 0.5, 0)
    assert [*measured.requests("GetNoise")[0].job_ids] == [JOB, OTHER]
    out = capsys.readouterr().out
    assert all(sentence in out for sentence in SAID)


def test_nothing_is_measured_before_all_answers_are_stored(measured: Fakes) -> None:
    stored = measured.answers["Results.GetJob"]
    waiting = [errors.NotFoundError("Benchmark job not found")]
    measured.answers["Results.GetJob"] = lambda request: waiting.pop() if waiting else stored(request)  # type: ignore[operator]
    measured.answers["GetNoise"] = lambda request: (
        errors.NotFoundError("Job has no finished run yet.")
        if waiting
        else results_service_pb2.GetNoiseResponse(noise=FOUND)
    )
    assert main(["noise", "one", "--suite", "gsm8k", "--repeats", "2"]) == 0


def test_several_servings_are_asked_as_often(measured: Fakes) -> None:
    assert main(["noise", "one", "two", "--suite", "gsm8k", "--repeats", "2", "--no-watch"]) == 0
    assert [spec.model for spec in measured.specs()] == ["one", "one", "two", "two"]
    assert not measured.requests("GetNoise")


def test_finished_jobs_are_read(measured: Fakes, capsys: Captured) -> None:
    assert main(["noise", "--jobs", f"{JOB},{OTHER}", "--format", "json"]) == 0
    assert not measured.requests("CreateJobs")
    document = json.loads(capsys.readouterr().out)
    assert document["total"]["reasking"]["share"] == pytest.approx(0.0212)
    assert document["servings"][0]["runs"][0]["job_id"] == JOB
    assert main(["noise", "--jobs", JOB, "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["reasking_low"], row["floor"], row["variance_servings"]) == ("0.0141", "0.0062", "")


def test_a_job_that_failed_ends_the_measurement(measured: Fakes, capsys: Captured) -> None:
    measured.answers["Scheduler.GetJob"] = lambda request: scheduler_service_pb2.GetJobResponse(
        job=dataset_job(request.job_id, "one", "FAILED")
    )
    assert main(["noise", "one", "--suite", "gsm8k", "--repeats", "2"]) == 1
    assert not measured.requests("GetNoise")
    assert "touchstone: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--suite", "gsm8k"], "name models with --suite or --dataset, or finished jobs with --jobs"),
        (["one", "--jobs", JOB], "name models with --suite or --dataset, or finished jobs with --jobs"),
        (["one", "--suite", "gsm8k", "--reuse"], "noise is measured by asking again"),
        (["one", "--suite", "gsm8k", "--repeats", "1"], "ask at least twice"),
    ],
)
def test_what_measures_nothing_is_refused(measured: Fakes, capsys: Captured, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit):
        main(["noise", *arguments])
    assert said in capsys.readouterr().err
    assert not measured.requests("CreateJobs")


def test_many_flips_need_fewer_digits() -> None:
    between = noise_pb2.NoiseFigures(servings=noise_pb2.Flips(share=0.143, low=0.121, high=0.168))
    assert [*words.sentences(between)] == ["Between servings, 14.3 % (12.1 to 16.8) of the items flip."]


REPLAY = noise_pb2.Replay(
    job_id=OTHER,
    replayed_job_id=JOB,
    items=100,
    flips=noise_pb2.Flips(share=0.04, low=0.016, high=0.098),
    higher=1,
    lower=3,
    measured=noise_pb2.Flips(share=0.02, low=0.01, high=0.05),
    measured_runs=3,
    beyond=0.02,
    beyond_low=-0.01,
    beyond_high=0.05,
    verdict=noise_pb2.REPLAY_VERDICT_WITHIN_NOISE,
)


@pytest.fixture
def replaying(measured: Fakes) -> Fakes:
    REPLAY.words[:] = words.replay_sentences(REPLAY)

    def known(request: scheduler_service_pb2.GetJobRequest) -> scheduler_service_pb2.GetJobResponse:
        job = dataset_job(request.job_id, "one", "COMPLETED")
        job.spec.replays_job_id = JOB if request.job_id == OTHER else ""
        return scheduler_service_pb2.GetJobResponse(job=job)

    measured.answers |= {
        "Scheduler.GetJob": known,
        "SchedulerService.GetJob": known,
        "CreateJob": lambda request: scheduler_service_pb2.CreateJobResponse(
            job=dataset_job(OTHER, request.spec.model, "PENDING")
        ),
        "GetReplay": results_service_pb2.GetReplayResponse(replay=REPLAY),
    }
    return measured


def test_a_replay_asks_items_of_a_job_again_and_says_what_changed(replaying: Fakes, capsys: Captured) -> None:
    assert main(["replay", JOB, "--items", "40", "--budget-usd", "2", "--priority", "low"]) == 0
    (request,) = replaying.requests("CreateJob")
    spec = request.spec
    assert (spec.replays_job_id, spec.dataset.limit, spec.budget_usd, spec.priority) == (JOB, 40, 2, 1)
    out = capsys.readouterr().out
    assert "Asked again, 4.00 % (1.60 to 9.80) of 100 items flip" in out
    assert "More than noise is not shown" in out


def test_what_a_replay_found_is_read_again(replaying: Fakes, capsys: Captured) -> None:
    assert main(["replay", OTHER, "--format", "json"]) == 0
    assert not replaying.requests("CreateJob")
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["measured_runs"]) == ("within_noise", 3)
    assert main(["replay", JOB, "--no-watch"]) == 0
    assert replaying.requests("CreateJob")[0].spec.dataset.limit == 100


def test_more_than_noise_is_said_with_its_interval() -> None:
    found = noise_pb2.Replay(
        items=100,
        flips=noise_pb2.Flips(share=0.2, low=0.13, high=0.29),
        measured=noise_pb2.Flips(share=0.02, low=0.01, high=0.05),
        measured_runs=1,
        beyond=0.18,
        beyond_low=0.1,
        beyond_high=0.27,
        verdict=noise_pb2.REPLAY_VERDICT_MORE_THAN_NOISE,
    )
    assert [*words.replay_sentences(found)][1] == (
        "Between the answers to an item before, 2.00 % (1.00 to 5.00) flip. That is more than noise, by 18.0 points "
        "(10.0 to 27.0)."
    )
