"""The tips in a model's answer, and how much they differ."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

MOST_TIPS = 100
"""A model that repeats itself without end gives no more."""
_MOST_CHARACTERS = 200_000
"""Of an answer that is read."""
_MOST_STARTS = 50
"""Brackets that are tried as the start of a list."""
_MOST_TIP = 4_000
"""Characters of a tip."""
_KEYS = ("tip", "text", "advice", "content", "action", "description", "title")
"""Of an object in place of a text: the first of these that is a text."""
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_NUMBERED = re.compile(r"([ \t]*)(?:\*\*|#{1,6} )?(?:tip )?\(?[0-9]{1,3}[.):](?:\*\*)?(?=[ \t]|\D)[ \t]*(.*)", re.I)
_BULLET = re.compile(r"([ \t]*)[-*•–‣·][ \t]+(.*)")
_WORD = re.compile(r"\w+")
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()

Form = Literal["json", "lines", "none"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The tips of an answer in order, and the form that they were read from. `complete` is false if a JSON list breaks
    off, as it does at a limit of tokens: the tip that it breaks off in is left out."""

    tips: tuple[str, ...]
    form: Form
    complete: bool = True


def read(answer: str) -> Candidates:
    """The tips: of a JSON list of texts or of objects with a text, also in a block of code, within an object or after
    other words; otherwise of numbered or bulleted lines. Thoughts between tags are left out."""
    # The tag before the thoughts may be part of the prompt.
    text = _END_OF_THOUGHTS.split(_THOUGHTS.sub("", answer[:_MOST_CHARACTERS]))[-1]
    fenced = [found[1] for found in _FENCE.finditer(text)]
    for piece in (*fenced, text):
        if found := _of_json(piece):
            return found
    for piece in (text, *fenced):
        if tips := _of_lines(piece):
            return Candidates(tips, "lines")
    return Candidates((), "none")


def diversity(tips: Sequence[str]) -> float | None:
    """How much tips differ, from 0 to 1: one minus the mean Jaccard similarity of their sets of words over all pairs
    (P. Jaccard, The distribution of the flora in the alpine zone, New Phytologist 11, 1912). 0 means the same words in
    all, 1 that no two tips share a word. None for fewer than two tips.

    Words are the same in upper and lower case. Two tips without any word are the same.
    """
    sets = [frozenset(words(tip)) for tip in tips[:MOST_TIPS]]
    pairs = [_similarity(one, other) for one, other in combinations(sets, 2)]
    return 1 - sum(pairs) / len(pairs) if pairs else None


def words(text: str) -> list[str]:
    """The words of a text in order, as `diversity` compares them."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one | other)
    return len(one & other) / both if both else 1.0


# -- JSON ----------------------------------------------------------------------------------------------------------


def _of_json(text: str) -> Candidates | None:
    """The first list that holds a tip."""
    start = -1
    for _ in range(_MOST_STARTS):
        start = text.find("[", start + 1)
        if start < 0:
            break
        values, complete = _values(text, start + 1)
        tips = tuple(filter(None, map(_tip, values)))
        if tips:
            return Candidates(tips, "json", complete)
    return None


def _values(text: str, at: int) -> tuple[list[Any], bool]:
    """The values of a list from after its bracket, and whether the list ends. A value that is not JSON ends it."""
    found: list[Any] = []
    while len(found) < MOST_TIPS:
        at = _after_space(text, at)
        if text[at : at + 1] == "]":
            return found, True
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, False
        found.append(value)
        at = _after_space(text, at)
        if text[at : at + 1] == ",":
            at += 1
    return found, False


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _tip(value: Any) -> str:
    """Empty for what is not a tip."""
    if isinstance(value, dict):
        named = {str(name).casefold(): inner for name, inner in value.items()}
        value = next((named[key] for key in _KEYS if isinstance(named.get(key), str)), "")
    if not isinstance(value, str):
        return ""
    numbered = _NUMBERED.fullmatch(text := _cleaned(value))
    return _cleaned(numbered[2]) if numbered else text


# -- lines ---------------------------------------------------------------------------------------------------------


def _of_lines(text: str) -> tuple[str, ...]:
    """Of the first kind of mark that the text has, and as far to the left as the first one. Other lines continue a tip
    if they are indented; an empty line and other text end it."""
    tips: list[list[str]] = []
    open_ = False
    first: tuple[re.Pattern[str], int] | None = None
    for line in text.splitlines():
        mark, indent, words = next(_marks(line), (None, 0, ""))
        if mark is not None and (first is None or (mark is first[0] and indent <= first[1])):
            if first is None:
                first = (mark, indent)
            if len(tips) == MOST_TIPS:
                break
            tips.append([words])
            open_ = True
        elif open_ and line[:1] in (" ", "\t") and line.strip():
            tips[-1].append(words if mark is not None else line)
        else:
            open_ = False
    return tuple(filter(None, (_cleaned(" ".join(lines)) for lines in tips)))


def _marks(line: str) -> Iterator[tuple[re.Pattern[str], int, str]]:
    for pattern in (_NUMBERED, _BULLET):
        if found := pattern.fullmatch(line):
            yield pattern, len(found[1].expandtabs(4)), found[2]


def _cleaned(text: str) -> str:
    """On one line, without stars for bold text, and without the quotation marks around all of it."""
    text = " ".join(text.replace("**", "").split())[:_MOST_TIP]
    for mark, close in ('""', "“”"):
        inner = text[1:-1]
        if len(text) > 1 and text.startswith(mark) and text.endswith(close) and not {mark, close} & {*inner}:
            text = inner.strip()
    return text
