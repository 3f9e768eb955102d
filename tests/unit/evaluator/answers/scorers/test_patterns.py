"""Scorers that search for patterns."""

from __future__ import annotations

from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.scorers.choosing import canonical, check_scoring, scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.growth import is_about_linear
from tests.unit.evaluator.answers.scorers.scored import correct, statistics
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, ANSWER_MATCH_LAST, Scoring


def test_regex_searches_and_minds_case_unless_told() -> None:
    assert correct("regex", "It is No. 5", r"\bNo\. \d") == 1
    assert correct("regex", "it is no. 5", r"\bNo\. \d") == 0
    assert correct("regex", "it is no. 5", r"(?i)\bNo\. \d") == 1
    assert correct("regex", "\udcff é", r"é$") == 1


def test_patterns_that_would_explode_are_linear() -> None:
    scoring = Scoring(scorer="exact_match", answer_pattern=r"x*y|(x)")

    def read(size: int) -> None:
        assert correct("regex", "x" * size, r"(x+x+)+y") == 0
        assert statistics(scoring, "x" * size, "x") == {"correct": 1.0}

    assert is_about_linear(read, 1_000_000)


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "a" * 1001, "(a{1000}){1000}"])
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match="answer_pattern") as refused:
        check_scoring(Scoring(answer_pattern=pattern))
    assert refused.value.message.endswith("Correct it, or leave it out.")
    with pytest.raises(ValueError, match=r"is not a valid RE2 pattern|characters"):
        scorer(Scoring(scorer="regex")).right(pattern)


@pytest.mark.parametrize("value", ["\ud800", "", 5, None, ["a"]])
def test_a_reference_that_is_no_pattern_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a string|is not valid text"):
        scorer(Scoring(scorer="regex")).right(value)


def test_the_answer_pattern_takes_the_first_group_of_the_last_match() -> None:
    scoring = Scoring(answer_pattern=r"(?i)final answer: *(.+)")
    assert statistics(scoring, "Final answer: Rome\nNo: final answer: Paris.\nDone", "Paris") == {"correct": 1.0}
    assert statistics(Scoring(answer_pattern=r"\d+"), "Of 12, 30 are left", "30") == {"correct": 1.0}
    assert scorer(scoring).read(Reply("I do not know")).answer == ""
    assert scorer(scoring).read(Reply("<think>final answer: Rome</think>Hm")).answer == ""


def test_the_answer_pattern_may_take_the_first_match() -> None:
    text = "Final answer: A\nAnother question has the final answer: B"
    last = Scoring(answer_pattern=r"(?i)final answer: *(.+)")
    first = Scoring(answer_pattern=last.answer_pattern, answer_match=ANSWER_MATCH_FIRST)
    assert (statistics(last, text, "B"), statistics(first, text, "A")) == ({"correct": 1.0}, {"correct": 1.0})
    assert scorer(first).read(Reply(text)).how == "first match of the answer pattern"
    named = Scoring(answer_pattern=last.answer_pattern, answer_match=ANSWER_MATCH_LAST)
    assert canonical(named) == canonical(last) != canonical(first)
    assert canonical(Scoring(answer_match=ANSWER_MATCH_FIRST)) == canonical(Scoring())


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is (A).\n\nQuestion: What next?\nThe answer is (B).", "A"),
        ("The answer is (A).<|eot_id|>user\nThe answer is (B).", "A"),
        ("Question: What is it?\nThe answer is (A).\nQ: And this?\nThe answer is (B).", "A"),
        ("I see.\nQuestion: What is it?\nThe answer is (A).", "A"),
        ("The answer is (A). No, the answer is (B).", "B"),
        ("The answer\nQ: is (C).", ""),
    ],
)
def test_the_answer_pattern_stops_at_an_invented_next_question(text: str, answer: str) -> None:
    assert scorer(Scoring(answer_pattern=r"answer is \((.)\)")).read(Reply(text)).answer == answer
    across = scorer(Scoring(answer_pattern=r"(?s)answer.*is \((.)\)")).read(Reply("The answer\nQ: is (C)."))
    assert across.answer == "C", "what matches in no part may match in the whole"


def test_the_answer_pattern_serves_every_scorer() -> None:
    found = {"answer_pattern": r"=> *(.*)"}
    assert correct("numeric", "5 => 1,200.0 apples", 1200, **found) == 0
    assert correct("numeric", "5 => 1,200.0", 1200, **found) == 1
    assert correct("numeric", "5 => 1.2e3", 1200, **found) == 1
    assert correct("choice", "A or B => (b).", "B", **found) == 1
    assert correct("json", 'x => {"a": 1}', {"a": 1.0}, **found) == 1
    assert correct("contains", "red => blue", "red", **found) == 0
    assert correct("regex", "red => blue", "^blue$", **found) == 1
