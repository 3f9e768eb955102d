"""Decisions from the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job
from touchstone.v1 import (
    decision_pb2,
    endpoint_pb2,
    job_pb2,
    queue_pb2,
    results_service_pb2,
    scheduler_service_pb2,
)
from touchstone_client.command import main
from touchstone_client.command.running.decide import sentence

Captured = pytest.CaptureFixture[str]


def found(**fields: Any) -> decision_pb2.Decision:
    made = decision_pb2.Decision(
        decision_id=JOB,
        baseline=dataset_job(JOB, "one", "CANCELLED"),
        candidate=dataset_job(OTHER, "two", "CANCELLED"),
        verdict=job_pb2.DECISION_VERDICT_BETTER,
        decided_at=96,
        pairs=104,
        items_total=600,
        difference=0.31,
        low=0.12,
        high=0.5,
        saved=decision_pb2.DecisionSavings(items=992, tokens=12_345, cost_usd=0.42, seconds=130),
    )
    made.baseline.spec.deciding.error = 0.05
    made.MergeFrom(decision_pb2.Decision(**fields))
    return made


@pytest.fixture
def deciding(fakes: Fakes) -> Fakes:
    endpoints = [endpoint_pb2.Endpoint(endpoint="e", kind="openai")]
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": scheduler_service_pb2.ListModelsResponse(
            models=[endpoint_pb2.Model(model=name) for name in ("one", "two")]
        ),
        "StartDecision": scheduler_service_pb2.StartDecisionResponse(
            decision_id=JOB, baseline=dataset_job(JOB, "one", "PENDING"), candidate=dataset_job(OTHER, "two", "PENDING")
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue()),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one" if request.job_id == JOB else "two", "CANCELLED")
        ),
        "GetDecision": results_service_pb2.GetDecisionResponse(decision=found()),
        "ListDecisions": results_service_pb2.ListDecisionsResponse(decisions=[found()]),
    }
    return fakes


SAID = (
    "two@e is better than one@e: +0.3100 (95 %: +0.1200 to +0.5000), after 96 of 600 items. "
    "Saved about 992 calls, 12,345 tokens, $0.42, 2 min."
)


def test_a_decision_asks_both_the_same_and_says_what_it_found(deciding: Fakes, capsys: Captured) -> None:
    arguments = ["--margin", "0.02", "--error", "0.1", "--order-seed", "7", "--limit", "300", "--temperature", "0.5"]
    assert main(["decide", "one", "two", "--dataset", DATASET, *arguments]) == 0
    (request,) = deciding.requests("StartDecision")
    assert (request.margin, request.error, request.seed) == (0.02, 0.1, 7)
    assert (request.baseline.model, request.candidate.model) == ("one", "two")
    assert request.baseline.dataset == request.candidate.dataset
    assert (request.baseline.dataset.limit, request.candidate.sampling.temperature) == (300, 0.5)
    assert capsys.readouterr().out.splitlines() == [JOB, SAID]


def test_a_model_may_be_compared_with_itself(deciding: Fakes) -> None:
    assert main(["decide", "one", "one@e", "--suite", "glue", "--no-watch"]) == 0
    (request,) = deciding.requests("StartDecision")
    assert request.baseline == request.candidate
    assert (request.error, request.margin) == (0.05, 0.0)


def test_each_model_may_have_settings_of_its_own(deciding: Fakes) -> None:
    own = ["--set", "1:shots=5", "--set", "2:temperature=0.7", "--set", '2:custom-config={"think": false}']
    assert main(["decide", "one", "one", "--suite", "glue", "--temperature", "0", "--no-watch", *own]) == 0
    (request,) = deciding.requests("StartDecision")
    first, second = request.baseline, request.candidate
    assert (first.suite.shots, first.sampling.temperature, first.sampling.extra_json) == (5, 0, "")
    assert (second.suite.shots, second.sampling.temperature) == (0, 0.7)
    assert json.loads(second.sampling.extra_json) == {"think": False}


def test_each_model_may_have_a_dataset_with_a_prompt_of_its_own(deciding: Fakes) -> None:
    other = f"ds_{'b' * 32}"
    assert main(["decide", "one", "two", "--dataset", DATASET, "--no-watch", "--set", f"2:dataset={other}"]) == 0
    (request,) = deciding.requests("StartDecision")
    assert (request.baseline.dataset.dataset_id, request.candidate.dataset.dataset_id) == (DATASET, other)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("3:temperature=1", "--set 3: there are 2 models"),
        ("temperature=1", "it must be N:NAME=VALUE"),
        ("0:temperature=1", "it must be N:NAME=VALUE"),
        ("1:temperature=hot", "--temperature"),
        ("1:mode=generate", "unrecognized arguments: --mode=generate"),
    ],
)
def test_wrong_settings_are_refused(deciding: Fakes, capsys: Captured, own: str, said: str) -> None:
    with pytest.raises(SystemExit):
        main(["decide", "one", "two", "--suite", "glue", "--set", own])
    assert said in capsys.readouterr().err
    assert not deciding.requests("StartDecision")


def test_without_a_verdict_the_command_fails_with_the_reasons(deciding: Fakes, capsys: Captured) -> None:
    none = found()
    none.verdict, none.decided_at = job_pb2.DECISION_VERDICT_UNSPECIFIED, 0
    deciding.answers["GetDecision"] = results_service_pb2.GetDecisionResponse(decision=none)
    assert main(["decide", "one", "two", "--suite", "glue"]) == 1
    captured = capsys.readouterr()
    assert "It is not decided whether two@e is better than one@e" in captured.out
    assert "after 104 of 600 items" in captured.out
    assert "Saved" not in captured.out
    assert "touchstone: one: " in captured.err


def test_a_verdict_that_is_not_stored_yet_is_waited_for(deciding: Fakes, capsys: Captured) -> None:
    early = found()
    early.ClearField("saved")
    early.verdict = job_pb2.DECISION_VERDICT_UNSPECIFIED
    waiting = [errors.NotFoundError("Decision not found"), results_service_pb2.GetDecisionResponse(decision=early)]
    done = deciding.answers["GetDecision"]
    deciding.answers["GetDecision"] = lambda request: waiting.pop(0) if waiting else done
    assert main(["decide", "one", "two", "--suite", "glue"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == SAID


def test_programs_get_a_document(deciding: Fakes, capsys: Captured) -> None:
    assert main(["decide", "one", "two", "--suite", "glue", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["decided_at"], document["saved"]["items"]) == ("better", 96, 992)


def test_decisions_are_listed_and_one_is_read_by_its_id(deciding: Fakes, capsys: Captured) -> None:
    assert main(["decisions"]) == 0
    assert "better" in capsys.readouterr().out
    assert main(["decisions", "--schedule", "s1", "--format", "json"]) == 0
    assert [one.schedule_id for one in deciding.requests("ListDecisions")] == ["", "s1"]
    assert json.loads(capsys.readouterr().out)[0]["saved"] == 992
    assert main(["decisions", JOB]) == 0
    assert capsys.readouterr().out.strip() == SAID


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("WORSE", "two@e is worse than one@e: "),
        ("EQUIVALENT", "two@e and one@e differ by less than 0.02: "),
        ("NO_DIFFERENCE", "two@e and one@e are not shown to differ, and all items are unlikely to show it: "),
    ],
)
def test_every_verdict_has_its_words(verdict: str, said: str) -> None:
    made = found(verdict=f"DECISION_VERDICT_{verdict}", failed=2)
    made.baseline.spec.deciding.margin = 0.02
    assert sentence(made).startswith(said)
    assert "2 items without an answer left out." in sentence(made)


def test_a_provider_s_batch_is_no_option(deciding: Fakes, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["decide", "one", "two", "--dataset", DATASET, "--provider-batch"])
    assert "--provider-batch" in capsys.readouterr().err
