"""Scorers of numbers."""

from __future__ import annotations

from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import check_scoring, scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.unit.evaluator.answers.scorers.scored import correct
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize(
    ("response", "right", "options", "is_right"),
    [
        ("Answer: 1,234.50", 1234.5, {}, True),
        ("So it is 5.\nAnswer: $18", "18", {}, True),
        ("1.1", 1, {"tolerance": 0.1}, True),
        ("1.11", 1, {"tolerance": 0.1}, False),
        ("0.9", 1, {"tolerance": 0.1}, True),
        ("102", "100", {"tolerance": 0.02, "tolerance_is_relative": True}, True),
        ("97.9", "100", {"tolerance": 0.02, "tolerance_is_relative": True}, False),
        ("-102", -100, {"tolerance": 0.02, "tolerance_is_relative": True}, True),
        ("0.0001", 0, {"tolerance": 0.5, "tolerance_is_relative": True}, False),
        ("0.30000000000000004", 0.3, {}, False),
        ("Answer: 18 apples", "18 apples", {}, True),
        ("I think 5", 5, {}, True),
        ("Answer: .5 apples", "$.50", {}, True),
        ("Answer: 3 or .5", 3, {}, False),
    ],
)
def test_numbers_are_right_within_the_tolerance(
    response: str, right: Any, options: dict[str, Any], is_right: bool
) -> None:
    assert correct("numeric", response, right, **options) == is_right


@pytest.mark.parametrize("value", ["five", True, None, {}, [], "1e999999999", "9" * 400, float("1e300")])
def test_a_reference_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        scorer(Scoring(scorer="numeric")).right(value)


@pytest.mark.parametrize(
    ("response", "read"),
    [
        *((".5", "0.5"), ("Answer: -.5", "-0.5"), ("50%", "50"), ("12.5 %.", "12.5"), ("-$1,234.50", "-1234.5")),
        *(("1.5e3", "1500"), ("The answer is 1e-7.", "0.0000001"), ("−5", "-5"), ("$1{,}234$", "1234")),
        *(("1,2", ""), ("1, 2, 3", ""), ("Answer: 1.234,5", "1234.5"), ("--5", ""), ("1e999", ""), ("1 234", "1234")),
    ],
)
def test_a_number_is_read_as_it_is_written_or_not_at_all(response: str, read: str) -> None:
    assert scorer(Scoring(scorer="numeric")).read(Reply(response)).answer == read


def test_a_number_that_the_limit_may_have_cut_is_not_read() -> None:
    assert not scorer(Scoring(scorer="numeric")).read(Reply("1.5e3", cut=True)).answer


@pytest.mark.parametrize("value", ["3,5", "1, 2", "3 or 4"])
def test_a_reference_that_may_be_two_numbers_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        scorer(Scoring(scorer="numeric")).right(value)


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(InvalidRequestError, match="tolerance"):
        check_scoring(Scoring(scorer="numeric", tolerance=tolerance))
