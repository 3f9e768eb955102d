"""Chooses among scored continuations. Pure; as lm_eval 0.4.13 does for its multiple-choice tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from services.evaluator.items.task import Continuation

DELIMITER = " "
"""Between a context and each continuation. Lengths are counted without it."""

BY_SUM = "continuation with the highest log-likelihood"


@dataclass(frozen=True, slots=True)
class Choice:
    """Indices of the chosen continuations: by the sum of log-probabilities, by the sum per character, and per byte."""

    best: int
    by_characters: int
    by_bytes: int


def choose(choices: Sequence[str], continuations: Sequence[Continuation]) -> Choice:
    """The best of `choices` (each with its leading delimiter), scored in the same order. On a tie, the first one.

    Raises ValueError when the counts differ or a log-likelihood is not a number.
    """
    if len(choices) != len(continuations) or not choices:
        raise ValueError(f"{len(continuations)} continuations were scored instead of {len(choices)}")
    sums = [continuation.loglikelihood for continuation in continuations]
    if any(math.isnan(value) for value in sums):
        raise ValueError("a log-likelihood is not a number")
    texts = [choice.removeprefix(DELIMITER) for choice in choices]
    return Choice(
        _first_highest(sums),
        _first_highest([_per(value, len(text)) for value, text in zip(sums, texts, strict=True)]),
        _first_highest([_per(value, len(text.encode())) for value, text in zip(sums, texts, strict=True)]),
    )


def _per(value: float, length: int) -> float:
    return value / length if length else -math.inf


def _first_highest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=lambda place: values[place])
