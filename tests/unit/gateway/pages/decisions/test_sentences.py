"""What pages say of a decision."""

from __future__ import annotations

from typing import Any

import pytest

from services.gateway.pages.decisions import sentences
from touchstone.v1 import decision_pb2, job_pb2


def found(verdict: str = "", **fields: Any) -> decision_pb2.Decision:
    made = decision_pb2.Decision(pairs=412, items_total=14_042, difference=0.104, low=0.041, high=0.171, unlikely=0.1)
    made.baseline.spec.model, made.candidate.spec.model = "one", "two"
    made.baseline.job_id, made.candidate.job_id = "b", "c"
    made.baseline.spec.deciding.error = 0.05
    for job in (made.baseline, made.candidate):
        job.state = job_pb2.Job.STATE_CANCELLED if verdict else job_pb2.Job.STATE_RUNNING
    if verdict:
        made.MergeFrom(decision_pb2.Decision(verdict=f"DECISION_VERDICT_{verdict}", decided_at=412))
    made.MergeFrom(decision_pb2.Decision(**fields))
    return made


@pytest.mark.parametrize(
    ("verdict", "fields", "said"),
    [
        (
            "BETTER",
            {},
            "On 412 of 14,042 items, two scored 10.4 points higher. "
            "The true difference is between +4.1 and +17.1 points.",
        ),
        (
            "WORSE",
            {"difference": -0.01, "low": -0.02, "high": -0.001},
            "On 412 of 14,042 items, two scored 1.0 point lower. The true difference is between −2.0 and −0.1 points.",
        ),
        (
            "NO_DIFFERENCE",
            {},
            "On 412 of 14,042 items, two scored 10.4 points higher, which may be chance. The chance that the rest "
            "would show a difference was below 10 %, so it was not asked. This is no proof that they are equally good: "
            "that needs a margin. The true difference is between +4.1 and +17.1 points.",
        ),
        (
            "NO_DIFFERENCE",
            {"decided_at": 14_042, "difference": 0.0001},
            "On all 14,042 items, both scored the same. This is no proof that they are equally good: that needs a "
            "margin. The true difference is between +4.1 and +17.1 points.",
        ),
        ("", {}, "So far, on 412 of 14,042 items, two scored 10.4 points higher, which may still be chance."),
        (
            "",
            {"failed": 1},
            "So far, on 412 of 14,042 items, two scored 10.4 points higher, which may still be chance. "
            "1 item without an answer of both is left out.",
        ),
        ("", {"note": "The two jobs have other items."}, "The two jobs have other items."),
    ],
)
def test_what_was_found_is_explained(verdict: str, fields: dict[str, Any], said: str) -> None:
    assert sentences.explained(found(verdict, **fields)) == said


def test_a_rest_that_was_asked_is_not_said_to_be_left() -> None:
    made = found("NO_DIFFERENCE", saved=decision_pb2.DecisionSavings(items=0))
    assert "a difference was below 10 %. This is no proof" in sentences.explained(made)
    made.saved.items = 3
    assert "below 10 %, so it was not asked. This" in sentences.explained(made)


def test_a_margin_is_told_in_points() -> None:
    made = found("EQUIVALENT")
    made.baseline.spec.deciding.margin = 0.02
    assert sentences.headline(made) == "two and one differ by less than 2 points."
    assert sentences.points(0.01) == "1 point"
    assert sentences.points(0.125) == "12.5 points"


def test_one_that_ended_early_names_the_job_that_failed() -> None:
    made = found()
    made.baseline.state, made.candidate.state = job_pb2.Job.STATE_CANCELLED, job_pb2.Job.STATE_FAILED
    made.candidate.reason = "The key was refused."
    assert sentences.explained(made) == (
        "On 412 of 14,042 items, two scored 10.4 points higher, which may still be chance. "
        "It ended without a verdict, as the candidate's job failed: The key was refused."
    )
    made.pairs = 0
    assert sentences.explained(made).startswith("No item was answered. It ended without a verdict")


def test_the_error_is_explained() -> None:
    assert sentences.sureness(found()).startswith("At most 5 % of such verdicts are wrong")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.03, 0.09, "two answers 3 to 9 of 100 items better than one."),
        (-0.125, -0.004, "one answers 0.4 to 12.5 of 100 items better than two."),
        (-0.01, 0.04, "Of 100 items, two may answer up to 4 better, or one up to 1."),
        (-0.2, 0.0, "Of 100 items, one may answer up to 20 better, or two up to 0."),
    ],
)
def test_the_interval_is_said_of_100_items(low: float, high: float, said: str) -> None:
    assert sentences.worth(found(low=low, high=high)) == said


def test_a_rival_that_was_deleted_has_no_name() -> None:
    racer = decision_pb2.Racer(state=decision_pb2.Racer.STATE_BEATEN, beaten_at=18)
    assert sentences.fate(racer, "") == "beaten by a deleted one after 18 items"
