"""Answers, patterns and choices that are made to be slow: scoring shares its event loop with other jobs' calls."""

from __future__ import annotations

import pytest

from services.evaluator.answers.scorers.choosing import scorer
from services.evaluator.answers.scorers.scorer import Reply
from tests.growth import is_about_linear
from touchstone.v1.scoring_pb2 import Scoring


def test_patterns_that_match_everywhere_at_length_hold_up_nobody() -> None:
    slow = scorer(Scoring(answer_pattern=r"((?:[a-y]{1,50}){0,20}z)?"))
    patterns = [f"((a?){{30}}){{30}}z{number}" for number in range(20)]

    def read(size: int) -> None:
        assert not slow.read(Reply("a" * (size // 10))).answer
        assert scorer(Scoring(scorer="regex")).judge("a" * size, patterns) == {"correct": 0.0}

    assert is_about_linear(read, 1_000_000)


def test_choices_that_begin_alike_hold_up_nobody() -> None:
    choices = ["a " * 38 + f"{number:03d}" for number in range(60)]
    choose = scorer(Scoring(scorer="choice", choices=choices))

    def read(size: int) -> None:
        assert choose.read(Reply(f"Answer: {choices[0]} " + "a " * size)).answer

    assert is_about_linear(read, 200_000)


@pytest.mark.parametrize("unit", ["[", '{"a":', "```\n", "{", "{a"])
def test_hostile_json_is_no_answer_and_takes_linear_time(unit: str) -> None:
    json = scorer(Scoring(scorer="json"))

    def read(size: int) -> None:
        assert not json.read(Reply(unit * (size // len(unit)))).answer

    assert is_about_linear(read, 1_000_000)


@pytest.mark.parametrize("text", ["[NaN]", '{"a": 1'])
def test_broken_json_is_no_answer(text: str) -> None:
    assert not scorer(Scoring(scorer="json")).read(Reply(text)).answer
