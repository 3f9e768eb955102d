"""The scorer `numeric`: a number within a tolerance of the right one. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from services.evaluator.answers import free_text, scoring
from services.evaluator.answers.scorers.scorer import Read, Scorer, mean
from services.evaluator.answers.scoring import Extraction

_MOST_DIGITS = 100
"""Of a number as it stands, and of its exponent's size."""
_WRITTEN = re.compile(
    r"(?P<sign>[-+−]?)[$€£]?\s{0,2}(?P<minus>[-+−]?)"
    rf"(?P<digits>(?:\d{{1,3}}(?:{free_text.THOUSANDS}){{1,30}}|\d+)(?:\.\d*)?|\.\d+)"
    r"(?P<exponent>[eE][-+−]?\d{1,4})?\s?%?"
)
"""A number by itself. A comma before other than three digits parts two numbers, or is a decimal one: not to be told."""
_ONE = re.compile(r"\D*\d(?:[\d,.]*\d)?\D*")
"""A text with one number."""


def numeric(read: Read | None, tolerance: float, relative: bool) -> Scorer:
    """A number is read as in suites (after “answer: …”, or as the whole response), or out of what `read` finds. Also
    1.5e3 and .5; of 50% the 50.

    Right within `tolerance`, or within that share of the right number. Computed in decimals, so that 1.1 is within 0.1
    of 1. Raises ValueError for a tolerance that is none.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance is {tolerance:g}; it must be a number of 0 or more")
    within = Decimal(repr(tolerance))
    usual, said = free_text.FinalNumberExtractor(), free_text.TextExtractor()

    def found(text: str, cut: bool = False) -> Extraction:
        if read is None:
            # Cut, the number may lack digits.
            if not cut and (number := _number(scoring.strip_reasoning(text))):
                return Extraction(number, scoring.WHOLE_RESPONSE)
            plain = usual(text, cut=cut)
            number = "" if plain.answer or cut else _number(said(text).answer)
            return Extraction(number, scoring.BY_MARKER) if number else plain
        answer = read(text, cut)
        number = _number(answer.answer)
        return Extraction(number, answer.how) if number or not answer.answer else Extraction("", scoring.NO_LABEL)

    def right(value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError("is no number")
        text = value[: 4 * _MOST_DIGITS] if isinstance(value, str) else repr(value)
        # As an answer is read, so that "18 apples" is the number 18 on both sides.
        number = _number(text) or (usual(f"Answer: {text}").answer if _ONE.fullmatch(text) else "")
        if not number:
            raise ValueError("is no number")
        return number

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        given = Decimal(answer)
        rights = [Decimal(right) for right in answers]
        return {
            "correct": float(any(abs(given - right) <= within * (abs(right) if relative else 1) for right in rights))
        }

    metrics = (mean("within_tolerance", "correct"),)
    return Scorer("numeric", "numeric-2", metrics, ("correct",), right, found, judge)


def _number(text: str) -> str:
    """Written out, without thousands separators; empty for what is not one number or has too many digits."""
    if len(text) > 4 * _MOST_DIGITS:
        return ""
    bare = text.strip(" \t\r\n\u00a0*_`$").rstrip(".")
    written = _WRITTEN.fullmatch(bare) if len(bare) <= _MOST_DIGITS else None
    if written is None or (written["sign"] and written["minus"]):
        return ""
    exponent = (written["exponent"] or "e0").replace("−", "-")
    if abs(int(exponent[1:])) > _MOST_DIGITS:
        return ""
    return free_text.canonical_number(written["sign"] + written["minus"] + written["digits"] + exponent)
