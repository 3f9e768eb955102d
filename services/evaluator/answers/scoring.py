"""How a response is scored: its outcome, and how it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.items.task import Response, Scored
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
