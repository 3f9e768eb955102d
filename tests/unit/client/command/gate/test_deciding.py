"""`touchstone gate --until-decided`: what is asked, and how each verdict ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from services import errors
from tests.unit.client.command.gate.compared import ARGUMENTS, Pipeline
from tests.unit.client.fakes import JOB, OTHER, job
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client.command import main

NEW = "0a1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d"


def decision(verdict: str, low: float, high: float, **fields: Any) -> decision_pb2.Decision:
    made = decision_pb2.Decision(
        decision_id=NEW,
        baseline=job(NEW, "CANCELLED", "base"),
        candidate=job(OTHER, "CANCELLED", "new"),
        verdict=f"DECISION_VERDICT_{verdict}",
        decided_at=96 if verdict != "UNSPECIFIED" else 0,
        pairs=96,
        items_total=600,
        difference=(low + high) / 2,
        low=low,
        high=high,
        saved=decision_pb2.DecisionSavings(items=1008),
    )
    made.MergeFrom(decision_pb2.Decision(**fields))
    return made


def decide(pipeline: Pipeline, found: decision_pb2.Decision | Callable[[Any], Any], *more: str) -> int:
    pipeline.fakes.answers |= {
        "StartDecision": scheduler_service_pb2.StartDecisionResponse(
            decision_id=NEW, baseline=job(NEW, "PENDING", "base"), candidate=job(OTHER, "PENDING", "new")
        ),
        "GetDecision": found if callable(found) else results_service_pb2.GetDecisionResponse(decision=found),
    }
    pipeline.states = [job(OTHER, "RUNNING", "new"), job(OTHER, "CANCELLED", "new")]
    return pipeline.run("--until-decided", *more)


@pytest.mark.parametrize(
    ("verdict", "low", "high", "code", "said"),
    [
        ("BETTER", 0.0, 0.2, 0, "A rise of 0.1000, decided after 96 of 600 items: there is no drop; 0.01 was allowed."),
        ("EQUIVALENT", -0.009, 0.009, 0, "No difference, decided after 96 of 600 items: the drop is less than 0.0090"),
        ("WORSE", -0.008, -0.002, 0, "the drop is less than 0.0080; 0.01 was allowed."),
        (
            "WORSE",
            -0.2,
            -0.1,
            1,
            "A drop of 0.1500, decided after 96 of 600 items. It is not shown to be less than 0.01",
        ),
        ("NO_DIFFERENCE", -0.03, 0.05, 2, "A drop could be as large as 0.0300, where 0.01 was allowed"),
        ("NO_DIFFERENCE", -0.003, 0.05, 0, "the drop is less than 0.0030"),
    ],
)
def test_the_verdict_decides_the_exit_code(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], verdict: str, low: float, high: float, code: int, said: str
) -> None:
    assert decide(pipeline, decision(verdict, low, high)) == code
    assert said in capsys.readouterr().out
    assert pipeline.fakes.requests("CreateJob") == []
    assert pipeline.fakes.requests("Compare") == []


def test_both_are_asked_the_same_and_the_baseline_as_its_run_was(pipeline: Pipeline) -> None:
    assert decide(pipeline, decision("BETTER", 0.1, 0.2), "--limit", "50", "--temperature", "0.5", "--reuse") == 0
    (request,) = pipeline.fakes.requests("StartDecision")
    assert request.margin == pytest.approx(0.01)
    assert request.baseline.suite == request.candidate.suite
    assert (request.candidate.model, request.candidate.suite.limit) == ("new", 50)
    assert request.candidate.sampling.temperature == 0.5
    run = job(JOB, model="base").spec
    assert (request.baseline.model, request.baseline.endpoint) == (run.model, run.endpoint)
    assert request.baseline.sampling == run.sampling
    assert request.baseline.reuse.any_job


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"note": "The two jobs have other items."}, "without a verdict: The two jobs have other items."),
        (
            {"candidate": job_pb2.Job(reason="The key was refused.", state="STATE_FAILED")},
            f"job {OTHER} is failed: The key was refused.",
        ),
    ],
)
def test_without_a_verdict_there_is_no_answer(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], said: str
) -> None:
    assert decide(pipeline, decision("UNSPECIFIED", -1, 1, **fields)) == 3
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "low", "high"), [("BETTER", 0.1, 0.2), ("WORSE", -0.2, -0.1)])
def test_items_without_an_answer_make_it_unusable_as_they_do_full_runs(
    pipeline: Pipeline, capsys: pytest.CaptureFixture[str], verdict: str, low: float, high: float
) -> None:
    # A model that refuses half of the items must not pass on the other half.
    assert decide(pipeline, decision(verdict, low, high, failed=4)) == 3
    said = "The decision cannot be relied on: 4 of 100 items have no answer of both models after all retries."
    assert said in capsys.readouterr().out


def test_the_answer_is_in_json_with_the_decision(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert decide(pipeline, decision("WORSE", -0.2, -0.1), "--format", "json") == 1
    made = json.loads(capsys.readouterr().out)
    assert (made["gate"]["exit_code"], made["gate"]["outcome"]) == (1, "regression")
    assert (made["decision"]["verdict"], made["decision"]["decided_at"]) == ("worse", 96)


def test_the_ends_of_both_jobs_are_waited_for(pipeline: Pipeline) -> None:
    """The candidate's may come long before the baseline's, and both before the results service hears of them."""
    early = decision("UNSPECIFIED", -1, 1)
    early.ClearField("saved")
    waiting = [errors.NotFoundError("Decision not found"), results_service_pb2.GetDecisionResponse(decision=early)]
    done = results_service_pb2.GetDecisionResponse(decision=decision("BETTER", 0.0, 0.2))
    assert decide(pipeline, lambda request: waiting.pop(0) if waiting else done) == 0
    assert [request.job_id for request in pipeline.fakes.requests("WatchJob")] == [OTHER, NEW]


def test_the_end_of_the_time_leaves_the_decision(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.fakes.answers["WatchJob"] = [scheduler_service_pb2.WatchJobResponse(job=job(OTHER, "RUNNING"))]
    assert decide(pipeline, decision("BETTER", 0.1, 0.2), "--timeout", "0.2") == 5
    assert f"Read it later: touchstone decisions {NEW}" in capsys.readouterr().err


@pytest.mark.parametrize("more", [("--job", OTHER), ("--metric", "accuracy"), ("--weighting", "tasks")])
def test_what_a_decision_does_not_take_is_refused(more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*ARGUMENTS, "--max-drop", "0.01", "--until-decided", *more])
    assert ended.value.code == 4
    assert f"--until-decided: not with {more[0]}" in capsys.readouterr().err
