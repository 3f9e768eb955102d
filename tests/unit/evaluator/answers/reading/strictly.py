"""Answers, read by the strict layer."""

from __future__ import annotations

from services.evaluator.answers.reading.layers import Layer
from services.evaluator.answers.reading.reader import AnswerReader


def strict(*captions: str) -> AnswerReader:
    return AnswerReader(captions, Layer.STRICT)
