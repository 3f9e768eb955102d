"""Answers, patterns and choices that are made to be slow: scoring shares its event loop with other jobs' calls."""

from __future__ import annotations

import time

from services.evaluator.answers.scorers.choosing import scorer
from touchstone.v1.scoring_pb2 import Scoring


def test_patterns_that_match_everywhere_at_length_hold_up_nobody() -> None:
    slow, began = r"((?:[a-y]{1,50}){0,20}z)?", time.process_time()
    assert not scorer(Scoring(answer_pattern=slow)).read("a" * 100_000, False).answer
    patterns = [f"((a?){{30}}){{30}}z{number}" for number in range(20)]
    assert scorer(Scoring(scorer="regex")).judge("a" * 1_000_000, patterns) == {"correct": 0.0}
    assert time.process_time() - began < 5


def test_choices_that_begin_alike_hold_up_nobody() -> None:
    choices, began = ["a " * 38 + f"{number:03d}" for number in range(60)], time.process_time()
    assert (
        scorer(Scoring(scorer="choice", choices=choices)).read(f"Answer: {choices[0]} " + "a " * 200_000, False).answer
    )
    assert time.process_time() - began < 5


def test_json_that_is_hostile_is_no_answer_and_takes_no_seconds() -> None:
    began = time.process_time()
    for response in (
        "[" * 900_000,
        '{"a":' * 50_000,
        "```\n" * 200_000,
        "{" * 2_000_000,
        "{" * 1_000_000,
        "{a" * 500_000,
        "[NaN]",
        '{"a": 1',
    ):
        assert not scorer(Scoring(scorer="json")).read(response, False).answer
    assert time.process_time() - began < 5
