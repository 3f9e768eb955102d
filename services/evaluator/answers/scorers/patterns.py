"""Patterns that users give: the regex scorer, and the pattern that finds an answer. Pure.

RE2's time is linear in the text. Linear is not short: a nested repetition takes a microsecond a byte and more, and may
match at each. What a response may take is bounded, as other jobs' calls wait meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from services.evaluator.answers.reading.cleaning import strip_reasoning
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.scorers.scorer import Read, Scorer, mean
from services.patterns import compiled

BY_PATTERN = "last match of the answer pattern"
NO_MATCH = "none: the answer pattern does not match"
TOO_SLOW = "none: the answer pattern takes too long on this response"

_SEARCHED_BYTES = 32 * 1024
"""Of a response, at its end, among whose matches the last is looked for: each match is found in linear time, but there
may be as many as bytes."""
_MOST_STEPS = 25_000_000
"""Bytes searched times instructions of the pattern; a step takes up to 4 ns."""
_LEAST_BYTES = 1024
_MOST_S = 0.1
"""CPU time of finding the last match: of usual patterns a hundredth of it. When it is over the last kilobyte counts."""


def answer_reader(pattern: str) -> Read:
    """Takes the first group of the pattern's last match, or the whole match where it has no group. Raises ValueError
    as `compiled`."""
    expression = compiled(pattern)
    group = min(1, expression.groups)

    def read(text: str, cut: bool = False) -> Extraction:
        searched = _end(_bytes(strip_reasoning(text))[-_SEARCHED_BYTES:], expression, _MOST_STEPS)
        try:
            last = _last(expression, searched)
        except TimeoutError:
            try:
                last = _last(expression, searched[-_LEAST_BYTES:])
            except TimeoutError:
                return Extraction("", TOO_SLOW)
        found = last.group(group) if last is not None else None
        answer = found.decode("utf-8", "replace").strip() if found else ""
        return Extraction(answer, BY_PATTERN if answer else NO_MATCH)

    return read


def regex(read: Read) -> Scorer:
    """The reference is a pattern that matches somewhere in the answer; (?i) leaves case out of account. Of an answer
    that is too long for so large a pattern, the end is looked at."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        text, steps = _bytes(answer), 4 * _MOST_STEPS // len(answers)
        return {"correct": float(any(_matches(compiled(pattern), text, steps) for pattern in answers))}

    return Scorer("regex", "regex-1", (mean("regex_match", "correct"),), ("correct",), _pattern, read, judge)


def _pattern(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is no pattern; give it as a text")
    compiled(value)
    return value


def _last(expression: Any, text: bytes) -> Any:
    """The last match or None. Raises TimeoutError."""
    last, until = None, time.thread_time() + _MOST_S
    for match in expression.finditer(text):
        last = match
        if time.thread_time() > until:
            raise TimeoutError
    return last


def _matches(expression: Any, text: bytes, steps: int) -> bool:
    return expression.search(_end(text, expression, steps)) is not None


def _end(text: bytes, expression: Any, steps: int) -> bytes:
    """As much of it as so many steps allow."""
    return text[-max(_LEAST_BYTES, steps // max(1, expression.programsize)) :]


def _bytes(text: str) -> bytes:
    # A lone surrogate, as JSON's escapes can bring, has no bytes.
    return text.encode("utf-8", "replace")
