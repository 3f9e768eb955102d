"""Reads an answer out of a response. Pure: text in, answer and the way it was read out.

A prompt asks for a line `Answer: …`. What counts is, in this order:

1. Reasoning is removed, and the text is cut into parts where the model goes on to invent a next question.
2. In the first part that has an answer, the last match of `answer: …` counts; failing that, of `answer is …`. It must
   begin with a label (or number), and its line must not name another one: "Answer: positive or negative" is no answer.
3. Without any `answer: …`, a response that is nothing but a label (or number) counts.

Nothing else is an answer: a label inside a sentence may be negated, quoted or copied from the prompt.
Every pattern has bounded repetition, so that time is linear in the response whatever it holds.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from services.evaluator.tasks.base import Response, Scored
from touchstone.v1 import item_result_pb2

VERSION = "2"
NUMBER_VERSION = "3"
"""Of the tasks whose answer is a number: since 3, ".5" is a half."""

BY_MARKER = "last match of “answer: …”"
WHOLE_RESPONSE = "whole response is the answer"
NO_MARKER = "none: no “answer: …” line"
NO_LABEL = "none: “answer: …” does not begin with an answer"
AMBIGUOUS = "none: “answer: …” names several answers"
OUT_OF_RANGE = "none: the number is outside the scale"

_TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "continuation"}
)
"""Finish reasons, in lower case, by which providers say that a token limit ended the text."""

_REASONING = re.compile(
    r"<(?P<xml>/?)(?:think|thinking|thought|reasoning|seed:think)>|\[(?P<square>/?)think\]|◁(?P<arrow>/?)think▷",
    re.IGNORECASE,
)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_NEXT_QUESTION = (
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end|end_of_text|endoftext)\|>|</s>|<(?:start|end)_of_turn>"
    r"|^[ \t#*]{0,8}(?:question|q|user|human|example(?:[ \t]\d{1,4})?)[ \t*]{0,4}:"
)

# ASCII, or "posıtive" with a Turkish ı would match without being any label.
_FLAGS = re.IGNORECASE | re.ASCII
_DECORATION = (
    r"(?:[\s\u00a0*_`\"'“”‘’«»<(\[{$]|\\[(\[$]){0,12}"
    r"(?:\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\{[\s*_`\"'(\[]{0,4}){0,3}"
)
_MARKERS = (
    r"(?<![A-Za-z0-9])answer[\s\u00a0*_`\"']{0,6}(?:is\b[\s\u00a0*_`\"']{0,6})?[:：]",
    r"(?<![A-Za-z0-9])answer[\s\u00a0*_`\"']{0,6}is\b",
)
ANY_MARKER = re.compile("|".join(_MARKERS), _FLAGS)
_WRAPPING = " \t\r\n\f\v\0\u00a0*_`\"'“”‘’«»<>()[]{}$#"
_STRIPPED = _WRAPPING + ".,;:!?…-–—"
_WORDS = re.compile(r"[\s_-]+|(?<=[A-Za-z])(?=\d)")

_DECIMAL = r"[-+−]?(?:\d{1,9}(?:[.,]\d{1,9})?|\.\d{1,9})"
_OF_MOST = r"(?:\s{0,3}(?:/|out of|of)\s{0,3}(?P<most>\d{1,3}(?:\.0)?))?"
_SECOND_NUMBER = r"(?P<more>\s{0,3}(?:[-–—/~,;]|to\b|or\b|and\b)\s{0,3}\.?\d)?"
_VALUE = re.compile(rf"(?P<value>{_DECIMAL})(?![\d%]|[.,]\d){_OF_MOST}{_SECOND_NUMBER}", _FLAGS)


@dataclass(frozen=True, slots=True)
class Extraction:
    """`answer` is a label, a number as text, or empty; `how` says in words how it was read or why not."""

    answer: str
    how: str


class LabelExtractor:
    """Finds one of `labels`. By `captions`, which begin the prompt's lines ("Sentence"), a next question shows. Another
    label is looked for in so much of the answer's line, None being all: with hundreds of long ones that takes long."""

    def __init__(self, labels: Sequence[str], captions: Sequence[str] = (), looked_at: int | None = None) -> None:
        self._looked_at = looked_at
        self._labels = {plain_label(label): label for label in labels}
        # Longest first: "not_entailment" before "entailment". A separator in a label may be written as any or none, an
        # underscore as Markdown escapes it; a number at its end may stand apart: "choice 1".
        ordered = sorted(labels, key=len, reverse=True)
        names = "|".join(r"(?:[\s-]|\\?_)?".join(map(re.escape, _WORDS.split(name))) for name in ordered)
        self._label = re.compile(rf"(?<![A-Za-z0-9])(?:{names})(?!_?[A-Za-z0-9])", _FLAGS)
        self._anchored = anchored(rf"(?P<answer>{self._label.pattern})")
        self._parts = parts_pattern(captions)

    def __call__(self, text: str) -> Extraction:
        parts = self._parts.split(strip_reasoning(text))
        if (found := find_last(self._anchored, parts)) is not None:
            return self._unless_ambiguous(*found)
        if any(ANY_MARKER.search(part) for part in parts):
            return Extraction("", NO_LABEL)
        whole = self._labels.get(plain_label(parts[0]))
        return Extraction(whole, WHOLE_RESPONSE) if whole else Extraction("", NO_MARKER)

    def _unless_ambiguous(self, part: str, match: re.Match[str]) -> Extraction:
        label = self._labels[plain_label(match["answer"])]
        rest = line_after(part, match.end())[: self._looked_at]
        if any(self._labels[plain_label(other)] != label for other in self._label.findall(rest)):
            return Extraction("", AMBIGUOUS)
        return Extraction(label, BY_MARKER)


class NumberExtractor:
    """Finds a number within `low`–`high`. "4.5", "4,5" (a decimal comma), "4.5/5" and "4.5 out of 5" are all 4.5; ".5"
    is a half."""

    def __init__(self, low: float, high: float, captions: Sequence[str] = ()) -> None:
        self._low, self._high = low, high
        self._anchored = anchored(rf"(?={_DECIMAL})")
        self._parts = parts_pattern(captions)

    def __call__(self, text: str, *, cut: bool = False) -> Extraction:
        """`cut`: the token limit ended the text, so a number at its very end may lack digits and does not count."""
        parts = self._parts.split(strip_reasoning(text))
        if (found := find_last(self._anchored, parts)) is not None:
            part, match = found
            return self._read(part, match.end(), BY_MARKER, cut and part is parts[-1])
        if any(ANY_MARKER.search(part) for part in parts):
            return Extraction("", NO_LABEL)
        whole = parts[0].strip(_WRAPPING).rstrip(_STRIPPED)
        if len(whole) <= 40 and _VALUE.fullmatch(whole):
            return self._read(whole, 0, WHOLE_RESPONSE, cut)
        return Extraction("", NO_MARKER)

    def _read(self, part: str, start: int, how: str, cut: bool) -> Extraction:
        match = _VALUE.match(part, start)
        if match is None or (cut and not part[match.end() :].strip()):
            return Extraction("", NO_LABEL)
        if match["more"] or (match["most"] and float(match["most"]) != self._high):
            return Extraction("", AMBIGUOUS)
        value = float(match["value"].replace(",", ".").replace("−", "-"))
        if not self._low <= value <= self._high:
            return Extraction("", OUT_OF_RANGE)
        return Extraction(format_number(value), how)


def strip_reasoning(text: str) -> str:
    """The text without <think>…</think> and its like. An unopened closing tag ends reasoning, an unclosed one hides
    all that follows it."""
    final = text.rfind(_FINAL_CHANNEL)
    if final >= 0:
        text = text[final + len(_FINAL_CHANNEL) :]
    kept: list[str] = []
    start, inside = 0, False
    for tag in _REASONING.finditer(text):
        closing = "/" in (tag["xml"], tag["square"], tag["arrow"])
        if closing:
            # A closing tag without its opening: the chat template put that into the prompt.
            if not inside:
                kept.clear()
            start, inside = tag.end(), False
        elif not inside:
            kept.append(text[start : tag.start()])
            inside = True
    if not inside:
        kept.append(text[start:])
    return "".join(kept)


def format_number(value: float) -> str:
    """A decimal without needless digits; the Hub keeps STS-B's 3.8 as a 32-bit 3.7999999523."""
    return f"{value + 0.0:.6g}"


def unanswered(response: Response, statistics: Mapping[str, float]) -> Scored | None:
    """The end that the provider's answer settles before its text is read, or None."""
    if response.refused:
        return Scored(item_result_pb2.OUTCOME_REFUSED, "", statistics, "none: the provider refused")
    if response.input_truncated:
        return Scored(item_result_pb2.OUTCOME_INPUT_TRUNCATED, "", statistics, "none: the prompt was cut")
    return None


def first_said(text: str) -> str:
    """The text up to where a second “answer: …” begins: what counting the first one would read. Empty where there are
    fewer than two.
    """
    # Nearly every response has one, and this runs for each.
    if text.lower().count("answer") < 2:
        return ""
    bare = strip_reasoning(text)
    second = next(islice(ANY_MARKER.finditer(bare), 1, None), None)
    return bare[: second.start()] if second is not None else ""


def is_cut(response: Response) -> bool:
    """Whether the token limit ended the response."""
    return response.finish_reason.lower() in _TRUNCATED


def scored(response: Response, extraction: Extraction, statistics: Mapping[str, float]) -> Scored:
    """The item's end: answered where something was extracted, else cut or unparsed."""
    if extraction.answer:
        outcome = item_result_pb2.OUTCOME_ANSWERED
    elif is_cut(response):
        outcome = item_result_pb2.OUTCOME_OUTPUT_TRUNCATED
    else:
        outcome = item_result_pb2.OUTCOME_UNPARSED
    return Scored(outcome, extraction.answer, statistics, extraction.how)


def parts_pattern(captions: Sequence[str]) -> re.Pattern[str]:
    """Where a model goes on to invent a next question, or repeats the prompt's lines with these captions."""
    lines = "".join(rf"|^[ \t#*]{{0,8}}{re.escape(caption)}[ \t*]{{0,4}}:" for caption in captions)
    return re.compile(_NEXT_QUESTION + lines, re.IGNORECASE | re.MULTILINE)


def anchored(answer: str, *, decorated: bool = True) -> tuple[re.Pattern[str], ...]:
    """Patterns for `answer` after a marker, the stated form first. `decorated`: quotes, brackets and the like may stand
    between."""
    between = _DECORATION if decorated else ""
    return tuple(re.compile(f"{marker}{between}{answer}", _FLAGS) for marker in _MARKERS)


def find_last(patterns: Sequence[re.Pattern[str]], parts: Sequence[str]) -> tuple[str, re.Match[str]] | None:
    """The last match in the first part that has one, by the first pattern that any part matches."""
    for pattern in patterns:
        for part in parts:
            last = deque(pattern.finditer(part), maxlen=1)
            if last:
                return part, last[0]
    return None


def line_after(text: str, position: int) -> str:
    """The rest of the line."""
    end = text.find("\n", position)
    return text[position:] if end < 0 else text[position:end]


def plain_label(text: str) -> str:
    """Lower case, without decoration and separators; empty for a text too long to be a label."""
    bare = text.strip(_STRIPPED)
    return re.sub(r"[\s_\\-]", "", bare).lower() if len(bare) <= 80 else ""
