"""What a response would be read as had the first of several stated answers counted. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning

_ANSWER = re.compile(r"(?<![A-Za-z0-9])answer[\s\u00a0*_`\"']{0,6}(?:is\b|[:：])", re.IGNORECASE | re.ASCII)
_MOST_PLACES = 8
_STATED = (layers.AMBIGUOUS, layers.NEGATED, layers.OUT_OF_RANGE)
"""Why an answer that was stated does not count."""


def read_first(text: str, read: Callable[[str], Extraction]) -> Extraction | None:
    """The response read up to where a second "answer: …" begins. Where nothing before it is an answer ("the answer is
    the same for both"), up to where the third begins, and so on. None where only the last one may be an answer."""
    # Nearly every response has one, and this runs for each.
    if text.lower().count("answer") < 2:
        return None
    for said in _beginnings(strip_reasoning(text)):
        found = read(said)
        if found.answer or found.how in _STATED:
            return found
    return None


def _beginnings(text: str) -> Iterator[str]:
    for place in islice(_ANSWER.finditer(text), 1, _MOST_PLACES):
        yield text[: place.start()]
