"""Why an answer is right by one rule and wrong by the other. Each reason is checked on the answer, so that what has
none of them stays unexplained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from services.evaluator.answers.words import plain
from tests.record import authors

NO_ANSWER = "the authors' rule finds no answer, ours does"
NO_NUMBER = "what their rule takes has no number"
CALCULATION = "a calculation: its first number there, its result here"
LAST_ANSWER = "several answers: the first there, the last here"
NOT_READ = "their rule takes the first number or text, ours finds no one answer"
CUT_THERE = "their rule takes a part: up to a blank, a comma or a quotation mark in the answer"
FULL_STOP = "the same answer: a final full stop counts there, not here"
ELSEWHERE = "different words are taken for the answer"
ESCAPED = "the same words, which here keep the escapes of JSON"
LINE_BREAK = "the same answer with a line break: equal there, not here"
CASE = "the same answer: case counts there, not here"
SPACE = "the same answer: white space counts there, not here"
CASE_AND_SPACE = "the same answer: case and white space count there, not here"
MARKS = "the same answer: marks around its words count there, not here"

_WHOLE = "whole response"


@dataclass(frozen=True, slots=True)
class Judged:
    """One output by both rules. `theirs` is None where the authors' rule finds no answer; `how` names our rule."""

    output: str
    reference: str
    theirs: str | None
    right_there: bool
    ours: str
    how: str
    right_here: bool


def reason(judged: Judged, numeric: bool) -> str:
    """The reason of a difference; "" when it has none of them."""
    if judged.theirs is None:
        return NO_ANSWER if judged.ours else ""
    return _of_numbers(judged, judged.theirs) if numeric else _of_texts(judged, judged.theirs)


def _of_numbers(judged: Judged, theirs: str) -> str:
    if not judged.ours:
        return NOT_READ
    first, here = authors.number(theirs), float(Fraction(judged.ours))
    if first is None:
        return NO_NUMBER
    if first == here:
        return ""
    if here in authors.numbers(theirs):
        return CALCULATION
    after_first = judged.output[judged.output.find("answer") + 1 :]
    return LAST_ANSWER if here in authors.numbers(after_first) else ""


def _of_texts(judged: Judged, theirs: str) -> str:
    if judged.how.startswith(_WHOLE):
        return NOT_READ
    if not _same(theirs, judged.ours):
        return _of_other_words(judged, theirs)
    there, right = authors.unquoted(theirs), authors.unquoted(judged.reference)
    if judged.right_there:
        return LINE_BREAK if "\\n" in there else ""
    if there.casefold() == right.casefold():
        return CASE
    if there.split() == right.split():
        return SPACE
    if there.casefold().split() == right.casefold().split():
        return CASE_AND_SPACE
    return MARKS if plain(judged.ours) == plain(judged.reference) else ""


def _of_other_words(judged: Judged, theirs: str) -> str:
    try:
        if _same(str(json.loads(judged.ours)), theirs):
            return ESCAPED
    except ValueError:
        pass
    if _same(theirs.rstrip("\"'").removesuffix("."), judged.ours):
        return FULL_STOP
    part, whole = _words(theirs).lstrip("'\""), _words(judged.ours).lstrip("'\"")
    is_part = 0 < len(part) < len(whole) and whole.startswith(part)
    if not judged.right_there and (is_part or theirs.endswith("\\")):
        return CUT_THERE
    return ELSEWHERE if _words(judged.ours) in _words(judged.output) else ""


def _words(text: str) -> str:
    """Without line breaks and escapes, written out or not."""
    return " ".join(text.replace("\\n", " ").replace("\\", "").split())


def _same(one: str, other: str) -> bool:
    return authors.unquoted(one.strip()).strip() == authors.unquoted(other.strip()).strip()
