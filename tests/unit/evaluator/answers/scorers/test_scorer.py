"""How answers to uploaded rows are scored, against the field's own implementations where there are some."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.evaluator.answers.scorers.scored import ORACLE, TEXTS, correct, statistics
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize(
    ("response", "right", "is_right"),
    [
        (">", "> )", False),
        ("> )", "> )", True),
        ("([)", "([", False),
        ("f(x", "f(x)", False),
        (".", "'.'", True),
        ("',,,?'", ",,,?", True),
        ("!", "'?'", False),
        (")", "')'", True),
        ("')'", "']'", False),
        ("(Paris)", "Paris", True),
        ("Answer: Paris", "Paris", True),
        ("The answer is Paris.", "paris", True),
        ("\\boxed{Paris}", "Paris", True),
        ("It is a long story about Paris.", "Paris", False),
    ],
)
def test_exact_match_keeps_what_the_answer_is_about(response: str, right: str, is_right: bool) -> None:
    assert correct("exact_match", response, right) == is_right


@pytest.mark.parametrize("name", ORACLE)
@given(response=TEXTS)
def test_every_scorer_takes_any_response(name: str, response: str) -> None:
    for value in statistics(Scoring(scorer=name), response, ORACLE[name]).values():
        assert 0 <= value <= 1
