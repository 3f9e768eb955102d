"""Answers, scored."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from services.evaluator.answers.scorers.choosing import scorer
from services.evaluator.answers.scorers.scorer import Reply, Scorer
from services.words.scorers import OF_FIELD
from touchstone.v1.scoring_pb2 import Scoring

TEXTS = st.text(
    st.sampled_from("ab the. The, A an-\n\t'\"3.5Ünıß中") | st.characters(codec="utf-8"), max_size=60
) | st.lists(st.sampled_from(["the", "cat", "Cat.", "sat", "on", "a", "mat", "3.5"]), max_size=30).map(" ".join)


def statistics(scoring: Scoring, response: str, *rights: Any) -> dict[str, float]:
    """Of a response against right answers given as JSON values; 0 each where nothing was read. Without those by
    field."""
    found = judged(scoring, Reply(response), *rights)
    return {name: value for name, value in found.items() if not name.startswith(OF_FIELD)}


def by_field(scoring: Scoring, reply: Reply, *rights: Any) -> dict[str, float]:
    """The statistics by field, as `statistics`."""
    found = judged(scoring, reply, *rights)
    return {name.removeprefix(OF_FIELD): value for name, value in found.items() if name.startswith(OF_FIELD)}


def judged(scoring: Scoring, reply: Reply, *rights: Any) -> dict[str, float]:
    """All statistics of a reply, as `statistics`."""
    chosen = scorer(scoring)
    found = chosen.read(reply)
    answers = [chosen.right(right) for right in rights]
    return dict(chosen.judge(found.answer, answers)) if found.answer else chosen.missed(answers)


def correct(name: str, response: str, *rights: Any, **options: Any) -> float:
    return statistics(Scoring(scorer=name, **options), response, *rights)["correct"]


ORACLE: dict[str, Any] = {
    "exact_match": "Paris",
    "contains": "Paris",
    "regex": "Paris",
    "choice": "B",
    "numeric": 3,
    "token_f1": "the red car",
    "rouge_l": "the red car",
    "json": {"a": 1},
    "tool_calls": [{"name": "f", "arguments": {"a": 1}}],
    "json_schema": {"type": "object"},
}


def perfect(chosen: Scorer, right: str) -> Reply:
    """Of a model that gives the right answer."""
    return Reply(right) if chosen.calls is None else Reply("", calls=chosen.calls(right))
