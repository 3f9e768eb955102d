"""How a response is scored: its outcome and how it was read, or the choice among scored continuations. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.items.task import Continuation, Response, Scored
from touchstone.v1 import item_result_pb2

VERSION = "7"
"""The version for suites. Since 6, a number is read with the question in view. Since 5, sentences are parsed to find
what they assert. Since 4, answers are read in layers; before, 2 for labels and letters and 3 for numbers."""

LAYER = "layer"
"""Statistic of an answer that no strict rule reads: the `Layer` that reads it."""
WOULD_READ = "would_read"
"""Statistic of an unread answer: the strictest `Layer` beyond those asked for that reads it."""

_TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "continuation"}
)
"""Finish reasons, in lower case, by which providers say that a token limit ended the text."""


def unanswered(response: Response, statistics: Mapping[str, float]) -> Scored | None:
    """The outcome that the provider's answer decides before its text is read, or None."""
    if response.refused:
        return Scored(item_result_pb2.OUTCOME_REFUSED, "", statistics, "none: the provider refused")
    if response.input_truncated:
        return Scored(item_result_pb2.OUTCOME_INPUT_TRUNCATED, "", statistics, "none: the prompt was cut")
    return None


def is_cut(response: Response) -> bool:
    """Whether the token limit ended the response."""
    return response.finish_reason.lower() in _TRUNCATED


def scored(response: Response, extraction: Extraction, statistics: Mapping[str, float]) -> Scored:
    """The item's outcome: answered where something was extracted, else truncated or unparsed."""
    if extraction.answer:
        outcome = item_result_pb2.OUTCOME_ANSWERED
    elif is_cut(response):
        outcome = item_result_pb2.OUTCOME_OUTPUT_TRUNCATED
    else:
        outcome = item_result_pb2.OUTCOME_UNPARSED
    if extraction.layer > Layer.STRICT:
        statistics = {**statistics, LAYER: float(extraction.layer)}
    if extraction.would_read is not None:
        statistics = {**statistics, WOULD_READ: float(extraction.would_read)}
    return Scored(outcome, extraction.answer, statistics, extraction.how)


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
