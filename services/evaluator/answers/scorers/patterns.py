"""Patterns that users give: the regex scorer, and the pattern that finds an answer. Pure.

RE2's time is linear in the text. Linear is not fast: a nested repetition takes a microsecond or more per byte, and may
match at each. The time for a response is bounded, as other jobs' calls wait meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.reading.prose.cleaning import parts_pattern, strip_reasoning
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, mean
from services.patterns import compiled

BY_LAST = "last match of the answer pattern"
BY_FIRST = "first match of the answer pattern"
NO_MATCH = "none: the answer pattern does not match"
TOO_SLOW = "none: the answer pattern takes too long on this response"

_SEARCHED_BYTES = 32 * 1024
"""The part of a response that is searched: its end for the last match, its beginning for the first. Each match is found
in linear time, but there may be as many matches as bytes."""
_MOST_STEPS = 25_000_000
"""A step is one instruction of the pattern on one byte and takes up to 4 ns."""
_LEAST_BYTES = 1024
_MOST_S = 0.1
"""CPU time for finding the last match; usual patterns take a hundredth of it. Afterwards only the last kilobyte is
searched."""
_PARTS = parts_pattern(())
_MOST_PARTS = 8
"""Parts of a response that are searched one by one."""


def answer_reader(pattern: str, *, first: bool = False) -> Read:
    """Takes the first group of the pattern's last match, or of its first, or the whole match where it has no group.

    The response is cut where the model starts to invent a next question; the first part that has a match counts, and
    where none has, the whole response. Raises ValueError as `compiled`.
    """
    expression = compiled(pattern)
    group = min(1, expression.groups)
    room = min(_SEARCHED_BYTES, max(_LEAST_BYTES, _MOST_STEPS // max(1, expression.programsize)))
    find, by = (_first, BY_FIRST) if first else (_last, BY_LAST)

    def read(reply: Reply) -> Extraction:
        for piece in _pieces(strip_reasoning(reply.text), room, from_start=first):
            try:
                found = find(expression, piece)
            except TimeoutError:
                return Extraction("", TOO_SLOW)
            said = found.group(group) if found is not None else None
            if answer := said.decode("utf-8", "replace").strip() if said else "":
                return Extraction(answer, by)
        return Extraction("", NO_MATCH)

    return read


def _pieces(text: str, room: int, *, from_start: bool) -> Iterator[bytes]:
    """The texts to search in turn: the parts before and between invented next questions, then the whole text. The parts
    together, and the whole, are cut to the bytes that there is room for, at the start or at the end."""
    left = room
    parts = [part for part in _PARTS.split(text, _MOST_PARTS) if part.strip()]
    for part in parts[:_MOST_PARTS] if len(parts) > 1 else ():
        if left > 0:
            piece = _bytes(part)
            yield piece[:left] if from_start else piece[-left:]
            left -= len(piece)
    whole = _bytes(text)
    yield whole[:room] if from_start else whole[-room:]


def regex(read: Read) -> Scorer:
    """The reference is a pattern that matches somewhere in the answer; (?i) ignores case. Where an answer is too long
    for a large pattern, only its end is searched."""

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        text, steps = _bytes(answer), 4 * _MOST_STEPS // len(answers)
        return {"correct": float(any(_matches(compiled(pattern), text, steps) for pattern in answers))}

    return Scorer("regex", "regex-1", (mean("regex_match", "correct"),), ("correct",), _pattern, read, judge)


def _pattern(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a string")
    compiled(value)
    return value


def _first(expression: Any, text: bytes) -> Any:
    """The first match or None."""
    return expression.search(text)


def _last(expression: Any, text: bytes) -> Any:
    """The last match or None; where the search takes too long, the last match in the last kilobyte. Raises TimeoutError
    where that also takes too long."""
    try:
        return _last_in_time(expression, text)
    except TimeoutError:
        return _last_in_time(expression, text[-_LEAST_BYTES:])


def _last_in_time(expression: Any, text: bytes) -> Any:
    last, until = None, time.thread_time() + _MOST_S
    for match in expression.finditer(text):
        last = match
        if time.thread_time() > until:
            raise TimeoutError
    return last


def _matches(expression: Any, text: bytes, steps: int) -> bool:
    return expression.search(_end(text, expression, steps)) is not None


def _end(text: bytes, expression: Any, steps: int) -> bytes:
    """As much of it as the number of steps allows."""
    return text[-max(_LEAST_BYTES, steps // max(1, expression.programsize)) :]


def _bytes(text: str) -> bytes:
    # A lone surrogate, which JSON's escapes can produce, has no bytes.
    return text.encode("utf-8", "replace")
