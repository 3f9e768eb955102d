"""The scorer `numeric`: a number within a tolerance of the right one. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.asked import number_asked
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.prose.cleaning import narrow
from services.evaluator.answers.reading.reader import AnswerReader
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, mean

_MOST_CHARACTERS = 400
"""The number in a right answer that is a text."""
_ONE = re.compile(r"\D*\d(?:[\d,.]*\d)?\D*")
"""A text with one number."""


def numeric(read: Read | None, layer: Layer, tolerance: float, relative: bool) -> Scorer:
    """A number is read as in suites by the layers up to `layer`, or in what `read` finds. 1.5e3 and .5 are numbers,
    too; 50% reads as 50.

    Right within `tolerance`, or within that share of the right number. Computed in fractions, so that 1.1 is within 0.1
    of 1.
    """
    within = Fraction(repr(tolerance))
    usual = AnswerReader(most=layer)

    def found(reply: Reply) -> Extraction:
        if read is None:
            return usual(reply.text, NumberKind(cut=reply.cut, asked=number_asked(reply.prompt)))
        answer = read(reply)
        number = _number(answer.answer)
        return Extraction(number, answer.how) if number or not answer.answer else Extraction("", layers.NO_LABEL)

    def right(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError("is not a number")
        text = value[:_MOST_CHARACTERS] if isinstance(value, str) else repr(value)
        # As an answer is read, so that "18 apples" is the number 18 on both sides.
        number = _number(text) or (usual(f"Answer: {text}", NumberKind()).answer if _ONE.fullmatch(text) else "")
        if not number:
            raise ValueError("is not a number")
        return number

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = Fraction(answer)
        rights = list(map(Fraction, answers))
        return {
            "correct": float(any(abs(given - right) <= within * (abs(right) if relative else 1) for right in rights))
        }

    metrics = (mean("within_tolerance", "correct"),)
    by = layer if read is None else None
    return Scorer("numeric", "numeric-6", metrics, ("correct",), right, found, judge, by)


def _number(text: str) -> str:
    """Written out; empty for anything but one number."""
    found = NumberKind().whole(narrow(text))
    return found.answer if found is not None else ""
