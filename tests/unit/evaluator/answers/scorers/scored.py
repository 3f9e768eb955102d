"""Answers, scored."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from services.evaluator.answers.scorers.choosing import scorer
from services.evaluator.answers.scorers.scorer import Reply
from touchstone.v1.scoring_pb2 import Scoring

TEXTS = st.text(
    st.sampled_from("ab the. The, A an-\n\t'\"3.5Ünıß中") | st.characters(codec="utf-8"), max_size=60
) | st.lists(st.sampled_from(["the", "cat", "Cat.", "sat", "on", "a", "mat", "3.5"]), max_size=30).map(" ".join)


def statistics(scoring: Scoring, response: str, *rights: Any) -> dict[str, float]:
    """Of a response against right answers given as JSON values; 0 each where nothing was read."""
    chosen = scorer(scoring)
    found = chosen.read(Reply(response))
    if not found.answer:
        return dict.fromkeys(chosen.statistics, 0.0)
    return dict(chosen.judge(found.answer, [chosen.right(right) for right in rights]))


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
}
