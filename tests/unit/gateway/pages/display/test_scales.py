"""Scores on their own scale, as pages write them."""

from __future__ import annotations

import pytest

from services.gateway.pages.display import scales
from services.words import rubrics
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1.rubric_pb2 import RubricCriterion

FIVE = RubricCriterion(name="five", lowest=1, highest=5)
YES = RubricCriterion(name="yes", lowest=0, highest=1)
AROUND = RubricCriterion(name="around", lowest=-2, highest=2)


def test_only_criteria_with_a_scale_have_one() -> None:
    tips, correct = rubrics.of_value(TIPS), rubrics.of_value(CORRECT)
    assert scales.scale_of(tips, "tone") == tips.criteria[2]
    assert scales.scale_of(tips, "composite") is None
    assert scales.scale_of(correct, "correct") is None
    assert [scales.unit(FIVE), scales.unit(None)] == ["of 1–5", "of 100"]
    assert scales.weights(tips) == ["40 %", "40 %", "20 %"]
    assert scales.weights(correct) == ["100 %"]


@pytest.mark.parametrize(
    ("criterion", "usual", "fine"),
    [(FIVE, "3.9", "3.92"), (YES, "0.73", "0.73"), (AROUND, "0.9", "0.92"), (None, "73.0", "73.0")],
)
def test_a_mean_has_the_decimals_that_its_scale_needs(criterion: RubricCriterion | None, usual: str, fine: str) -> None:
    assert scales.mean(criterion, 0.73) == usual
    assert scales.mean(criterion, 0.73, fine=True) == fine


def test_intervals_and_differences() -> None:
    assert scales.span(FIVE, 0.25, 0.5) == "2.0–3.0"
    assert scales.span(AROUND, 0.25, 0.5) == "−1.0 to 0.0"
    assert scales.span(None, 0.25, 0.5) == "25.0–50.0"
    assert [scales.change(FIVE, one) for one in (0.105, -0.105, 0.0001, -0.0001)] == ["+0.42", "−0.42", "0.00", "0.00"]
    assert [scales.change(None, one) for one in (0.105, -0.105, 0)] == ["+10.5", "−10.5", "0.0"]
