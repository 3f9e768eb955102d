"""Scorers that compare texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from rouge_score.rouge_scorer import RougeScorer

from services.evaluator.answers.scorers import texts
from services.evaluator.answers.scorers.choosing import scorer
from tests.growth import is_about_linear
from tests.unit.evaluator.answers.scorers.scored import TEXTS, correct, statistics
from touchstone.v1.scoring_pb2 import Scoring


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Paris", "paris"),
        (" the  Eiffel\nTower. ", "Eiffel Tower"),
        ("**Paris**, “France”", "paris france"),
        ("<think>Rome?</think>Paris!", "Paris"),
        ("3.50", "3.50"),
        ("A", "a"),
        ("Straße", "STRASSE"),
        ("e\u0301te\u0301", "été"),
        ("true", True),
        ("7", 7.0),
    ],
)
def test_exact_match_is_blind_to_case_blanks_marks_and_articles(response: str, right: Any) -> None:
    assert correct("exact_match", response, right) == 1


@pytest.mark.parametrize(
    ("response", "right"),
    [
        *(("35", "3.5"), ("-5", "5"), ("C", "C#"), ("the", "a"), ("Paris, Texas", "Paris"), ("not true", True)),
        *(("!", "?"), ("[]", "()"), ("", "?")),
    ],
)
def test_exact_match_tells_different_answers_apart(response: str, right: Any) -> None:
    assert correct("exact_match", response, right) == 0


def test_the_best_of_several_right_answers_counts() -> None:
    assert correct("exact_match", "colour", "color", "colour") == 1
    assert correct("contains", "It is the colour.", "color", "colour") == 1
    assert correct("regex", "colour", "^color$", "^colou?r$") == 1
    assert correct("numeric", "7", 6, 7) == 1
    assert correct("choice", "B", "A", "B") == 1
    assert statistics(Scoring(scorer="token_f1"), "a red car", "blue bus", "red car")["token_f1"] == 1
    assert statistics(Scoring(scorer="rouge_l"), "red car", "blue bus", "red car")["rouge_l"] == 1
    assert statistics(Scoring(scorer="json"), '{"a": 1}', {"a": 2}, {"a": 1})["json_match"] == 1


def test_contains_finds_the_answer_within_words_and_across_lines() -> None:
    assert correct("contains", "I think it is\nNEW  york.", "New York") == 1
    assert correct("contains", "unknown", "know") == 1
    assert correct("contains", "York", "New York") == 0


@pytest.mark.parametrize(
    ("response", "right", "found"),
    [
        *(("know", "no", 0), ("I know: no.", "no", 1), ("No", "no", 1), ("15 or 51", 5, 0), ("It is 5.", 5, 1)),
        *(("a b", "b", 1), ("ab", "b", 0), ("C++ and C", "C#", 0), ("in C#.", "C#", 1), ("e\u0301t\u0331", "t", 0)),
        *(("know", "kno", 1), ("答案是北京。", "北京", 1), ("是5。", 5, 1), ("snake_no", "no", 0)),
    ],
)
def test_an_answer_of_one_or_two_characters_counts_as_a_whole_word_only(response: str, right: Any, found: int) -> None:
    assert correct("contains", response, right) == found


@given(TEXTS, TEXTS)
def test_rouge_l_is_the_packages(response: str, right: str) -> None:
    expected = RougeScorer(["rougeL"]).score(right, response)["rougeL"].fmeasure
    assert texts.rouge_l_f(texts.rouge_tokens(response), texts.rouge_tokens(right)) == pytest.approx(expected, abs=1e-9)


def test_rouge_l_of_long_texts_takes_linear_time() -> None:
    def compare(size: int) -> None:
        first = " ".join(f"w{number % 997}" for number in range(size))
        second = " ".join(f"w{number % 991}" for number in range(size))
        assert 0 < statistics(Scoring(scorer="rouge_l"), first, second)["rouge_l"] < 1

    assert is_about_linear(compare, 60_000)


def test_rouge_l_refuses_a_reference_whose_words_it_does_not_count() -> None:
    with pytest.raises(ValueError, match="token_f1"):
        scorer(Scoring(scorer="rouge_l")).right("東京")
