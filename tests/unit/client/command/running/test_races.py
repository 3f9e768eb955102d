"""Races from the command line."""

from __future__ import annotations

import json

import pytest

from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import (
    decision_pb2,
    endpoint_pb2,
    queue_pb2,
    results_service_pb2,
    scheduler_service_pb2,
)
from touchstone_client.command import main
from touchstone_client.command.running.decide import sentence

Captured = pytest.CaptureFixture[str]
THIRD = OTHER[:-1] + "9"
MODELS = {JOB: "one", OTHER: "two", THIRD: "three"}


def race(verdict: str = "BEST", *states: str) -> decision_pb2.Decision:
    made = decision_pb2.Decision(
        decision_id=JOB,
        baseline=dataset_job(JOB, "one", "CANCELLED"),
        verdict=f"DECISION_VERDICT_{verdict}",
        decided_at=210,
        pairs=216,
        items_total=600,
        saved=decision_pb2.DecisionSavings(items=1_300),
    )
    made.baseline.spec.deciding.error, made.baseline.spec.deciding.margin = 0.05, 0.02
    for (job_id, model), state in zip(MODELS.items(), states or ("BEATEN", "BEST", "BEATEN"), strict=True):
        racer = made.racers.add(job=dataset_job(job_id, model, "CANCELLED"), state=f"STATE_{state}")
        if state == "BEATEN":
            racer.against_job_id, racer.beaten_at, racer.pairs = OTHER, 96, 104
            racer.difference, racer.low, racer.high = -0.31, -0.5, -0.12
    return made


@pytest.fixture
def racing(fakes: Fakes) -> Fakes:
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(
            endpoints=[endpoint_pb2.Endpoint(endpoint="e", kind="openai")]
        ),
        "ListModels": scheduler_service_pb2.ListModelsResponse(
            models=[endpoint_pb2.Model(model=name) for name in MODELS.values()]
        ),
        "StartDecision": scheduler_service_pb2.StartDecisionResponse(
            decision_id=JOB,
            baseline=dataset_job(JOB, "one", "PENDING"),
            candidate=dataset_job(OTHER, "two", "PENDING"),
            further_candidates=[dataset_job(THIRD, "three", "PENDING")],
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue()),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, MODELS[request.job_id], "CANCELLED")
        ),
        "GetDecision": results_service_pb2.GetDecisionResponse(decision=race()),
        "ListDecisions": results_service_pb2.ListDecisionsResponse(decisions=[race()]),
    }
    return fakes


SAID = "two@e is the best of 3 models, after 210 of 600 items. Saved about 1,300 calls."


def test_a_race_asks_all_the_same_and_says_which_is_the_best(racing: Fakes, capsys: Captured) -> None:
    arguments = ["--dataset", DATASET, "--limit", "300", "--set", "3:temperature=0.5"]
    assert main(["decide", "one", "two", "three", *arguments]) == 0
    (request,) = racing.requests("StartDecision")
    specs = (request.baseline, request.candidate, *request.further_candidates)
    assert [spec.model for spec in specs] == [*MODELS.values()]
    assert request.further_candidates[0].sampling.temperature == 0.5
    assert request.further_candidates[0].dataset == request.baseline.dataset
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == [JOB, SAID]
    assert "beaten" in out
    assert "0.3100" in out


def test_lists_name_the_best_and_programs_get_a_document(racing: Fakes, capsys: Captured) -> None:
    assert main(["decisions"]) == 0
    out = capsys.readouterr().out
    assert "best two@e" in out
    assert "2 others" in out
    assert main(["decisions", JOB, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "best"
    assert [racer["beaten_at"] for racer in document["racers"]] == [96, 0, 96]


@pytest.mark.parametrize(
    ("verdict", "states", "said"),
    [
        ("UNSPECIFIED", ("BEATEN", "RACING", "RACING"), "It is not decided which of 3 models is the best, after"),
        ("BEST", ("BEATEN", "BEST", "WITHDRAWN"), "two@e is the best of 2 models, after"),
        ("EQUIVALENT", ("LEFT", "LEFT", "LEFT"), "one@e, two@e and three@e differ by less than 0.02, after"),
        (
            "NO_DIFFERENCE",
            ("BEATEN", "LEFT", "LEFT"),
            "two@e and three@e are not shown to differ, and all items are unlikely to show it. The best is one of them",
        ),
    ],
)
def test_every_end_of_a_race_has_its_words(verdict: str, states: tuple[str, ...], said: str) -> None:
    assert sentence(race(verdict, *states)).startswith(said)
