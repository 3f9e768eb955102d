"""What a reading is, the layers that it may take, and the rules by which it names itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from touchstone.v1 import scoring_pb2


class Layer(IntEnum):
    """How freely an answer may be stated. Each layer also takes what the ones before it take."""

    STRICT = 1
    """`Answer: B`, `the answer is B`, or nothing but the answer."""
    MARKED = 2
    """Also marked some other way: `\\boxed{B}`, `#### 18`, `<answer>B</answer>`, a heading, a field of JSON."""
    LENIENT = 3
    """Also said in a sentence, or alone at the end or the beginning."""

    @classmethod
    def asked(cls, reading: scoring_pb2.Reading) -> Layer | None:
        """The most lenient layer that a job asks for; None for the task's own."""
        return cls(reading) if reading else None


_READINGS = {
    Layer.STRICT: scoring_pb2.READING_STRICT,
    Layer.MARKED: scoring_pb2.READING_MARKED,
    Layer.LENIENT: scoring_pb2.READING_LENIENT,
}


def reading_of(layer: Layer | None) -> scoring_pb2.Reading:
    """As messages have it."""
    return scoring_pb2.READING_UNSPECIFIED if layer is None else _READINGS[layer]


@dataclass(frozen=True, slots=True)
class Extraction:
    """`answer` is empty where nothing was read; `how` names the rule that read it, or says why none did. `layer` is the
    strictest one that has the rule. Where nothing was read, `would_read` is the strictest layer that was not asked and
    finds an answer."""

    answer: str
    how: str
    layer: Layer = Layer.STRICT
    would_read: Layer | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a text begins with: an answer that ends at `end`, or an empty one with the reason why it does not count."""

    answer: str
    end: int
    why: str = ""


NOT_ASKED = "none: the number has another unit than the question asks for"
BY_MARKER = "last match of “answer: …”"
BY_SENTENCE_MARKER = "last match of “answer is …”"
WHOLE_RESPONSE = "whole response is the answer"
BY_BOX = "last \\boxed{…}"
BY_HASHES = "last “#### …”"
BY_TAG = "last <answer>…</answer>"
BY_BRACKETS = "last [[…]]"
BY_HEADING = "text under the heading “answer”"
BY_FIELD = "last field “answer” of JSON"
BY_DASH = "last match of “answer - …”"
BY_WORD = "last match of the word for “answer” in another language"
BY_SENTENCE = "last sentence that names the answer"
BY_CONCLUSION = "last conclusion is the answer"
BY_LAST_LINE = "last line is the answer"
BY_FIRST_LINE = "first line begins with the answer"
BY_CAPTION = "line “caption: answer”"
BY_TICK = "line with a tick"
BY_LIST = "only option that a list calls correct"
BY_FENCE = "only fenced code"
BY_BOLD = "only answer in bold"
BY_LAST_SENTENCE = "only answer in the last sentence"

NO_MARKER = "none: no “answer: …” line"
NOTHING = "none: no answer found"
NO_LABEL = "none: “answer: …” does not begin with an answer"
AMBIGUOUS = "none: “answer: …” names several answers"
NEGATED = "none: the answer is taken back"
OUT_OF_RANGE = "none: the number is outside the scale"
