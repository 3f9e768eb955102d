"""Reads an answer out of a response. Pure: text in, answer and the rule by which it was read out.

A prompt asks for a line `Answer: …`, but models write as they please. What counts is, in this order:

1. Reasoning is removed, and the text is cut into parts where the model goes on to invent a next question. The first
   part counts that has an answer, or one that does not count.
2. A part that is nothing but an answer is that answer.
3. The last place that marks its answer counts: `Answer: …`, and in the layer MARKED `\\boxed{…}`, `#### …` and their
   like. It must begin with an answer, and its line must not name another: "Answer: positive or negative" is no answer.
4. Failing that, the last `answer is …`, and in the layer LENIENT the last sentence that names or concludes it.
5. In the layer LENIENT, an answer alone: in the last line, at the beginning, the only one in bold or in the last
   sentence.

An answer that is denied or taken back ("Answer: B is incorrect", "Answer: A. Wait, no") is none, unless a later place
has another. A label inside any other sentence may be negated, quoted or copied from the prompt, and is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.alone import read_alone
from services.evaluator.answers.reading.kinds import Kind, taken_back
from services.evaluator.answers.reading.layers import Extraction, Found, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.places import Place, places
from services.evaluator.answers.reading.prose.asides import without_asides
from services.evaluator.answers.reading.prose.cleaning import (
    narrow,
    parts_pattern,
    strip_reasoning,
    with_decimal_points,
)
from services.evaluator.answers.reading.text import TextKind

_ANY_MARKER = re.compile(r"(?<![A-Za-z0-9])answer[\s\u00a0*_`\"']{0,6}(?:is\b|[:：])", re.IGNORECASE | re.ASCII)
_OR = re.compile(r"[\s*_`.,;/|)\]}>$]*(?:or\b)?[\s*_`(\[{<$]*", re.IGNORECASE)
_FENCED = re.compile(r"\s*```[A-Za-z0-9_+-]{0,16}[ \t]*\n(?P<said>[^`]*)```\s*")
_UNDER_CONDITION = re.compile(r"[ ](?:only )?(?:if|unless)\b")
_NEXT_ITEM = re.compile(
    r"\n[ \t]*\n[ \t*#]{0,6}(?!(?:explanation|reason|reasoning|rationale|note|correction|update|edit|check|final|"
    r"corrected|revised|step|conclusion|solution|so|wait|but|actually|my|the|answer|let|verif\w*|now|here|this|that|"
    r"therefore|thus|hence|to|we|if|since|because|double|recheck\w*|hmm|oh|sorry|I|however|result|in)\b)"
    r"[A-Z][a-z]{0,20}(?:[ ]?[A-Za-z0-9]{1,12}){0,2}[ *]{0,3}:"
    r"|\n[ \t]*\n[^\n]{1,400}\?[ \t]*\n[ \t]*\(?A[).:]",
    re.IGNORECASE,
)
"""A paragraph with a caption, as prompts have them, or a question with options."""
_ANSWERED = re.compile(
    r"\s{0,8}(?:(?:label|answer|sentiment|output|score|similarity|class|category)[ ]?:[ ])?(?P<said>[^\n]{1,200})\n"
    r"\s{0,8}(?:premise|hypothesis|text|input|sentence(?: ?[12])?|review|tweet|context|passage|s[12]|statement|claim|"
    r"title|headline|message|utterance|comment|article|paragraph):",
    re.IGNORECASE,
)
"""A line after which the next item of a prompt begins."""
_OPENING = re.compile(r"\W*(?:sure|ok|okay|of course|certainly|here|hello|hi|yes|no|answer)\b", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_RULED_OUT = re.compile(r"\b(?:rul(?:e|ed|es) out|right away|eliminate\w*|exclude\w*)\b", re.IGNORECASE)
_AT_FIRST = re.compile(
    r"\b(?:initially|at first|originally|my first (?:thought|guess|instinct|impression))\b", re.IGNORECASE
)
_UNDECIDED = re.compile(
    r"\b(?:both (?:\w+ )?(?:are|can be|could be|remain) (?:possible|defended|correct|valid|right|plausible)|"
    r"could be any|any of (?:these|them|the above)|depending on|hard to say|"
    r"can(?:not|['’]t) (?:decide|tell|choose|be (?:said|told|decided|determined)))\b",
    re.IGNORECASE,
)
_DEPENDS = re.compile(r"[^.!?\n]{0,160}\bdepends (?:\w+ )?(?:on|upon)\b", re.IGNORECASE)
"""With this a reply begins that gives an answer for each case."""
_ON_BALANCE = re.compile(
    r"\b(?:overall|so|therefore|thus|hence|conclusion|final(?:ly)?|on balance|all in all|answer)\b", re.IGNORECASE
)
_ANSWERS = re.compile(r"answer|result|total|final|overall|\bsum\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"(?:\b(?:not|no|without|insufficient|lack\w*)|n['’]t) (?:\w+ ){0,3}(?:information|context|details?|data)\b|"
    r"\bplease (?:provide|share|specify|give me|send)\b|"
    r"\b(?:can(?:not|['’]t)|unable to|impossible to|not possible to) (?:be )?(?:determine|tell|answer|say|know|solve)",
    re.IGNORECASE,
)
"""With this a reply says that it has no answer."""
_NOT_RIGHT = re.compile(r"\b(?:(?:not|n['’]t) (?:right|correct)|wrong|mistaken?|misread)\b", re.IGNORECASE)
_NOT_BUT = re.compile(r"[\s*_`(]{0,4}not\b[^.;\n]{1,80}?(?:\bbut[ ](?:rather[ ]|instead[ ])?|;[ ]it(?:['’]s|[ ]is)[ ])")
_IF = re.compile(r"\b(?:if|unless|assuming|supposing|depending)\b", re.IGNORECASE)


class AnswerReader:
    """Reads responses to one prompt. By `captions`, which begin the prompt's lines ("Sentence"), a next question shows.
    `most` is the most lenient layer that it takes."""

    def __init__(self, captions: Sequence[str] = (), most: Layer = Layer.LENIENT) -> None:
        self._parts = parts_pattern(captions)
        self._most = most

    def __call__(self, text: str, kind: Kind) -> Extraction:
        bare = strip_reasoning(text)
        if not isinstance(kind, TextKind):
            bare = narrow(bare)
        if isinstance(kind, NumberKind):
            bare = with_decimal_points(bare)
        if isinstance(kind, LetterKind):
            bare = kind.with_capitals(bare)
        parts = self._parts.split(bare)
        found = self._in(parts, kind, self._most)
        if found.answer and found.layer > Layer.STRICT:
            # Marks may overlap, as in "Answer: \boxed{B}". The stricter rule names itself.
            for layer in range(Layer.STRICT, found.layer):
                stricter = self._in(parts, kind, Layer(layer))
                # Of a text, marks around all of it are marks and not the text.
                if stricter.answer == found.answer and stricter.how != layers.WHOLE_RESPONSE:
                    return stricter
        return found if found.answer else replace(found, would_read=self._would_read(parts, kind))

    def _would_read(self, parts: Sequence[str], kind: Kind) -> Layer | None:
        further = (layer for layer in Layer if layer > self._most)
        return next((layer for layer in further if self._in(parts, kind, layer).answer), None)

    def _in(self, parts: Sequence[str], kind: Kind, most: Layer) -> Extraction:
        # Any line may be a text's answer, so none is looked for beside a marker.
        alone = not isinstance(kind, TextKind) or not any(_ANY_MARKER.search(part) for part in parts)
        if not alone and len(parts) > 1 and not _ANY_MARKER.search(parts[0]) and not _OPENING.match(parts[0]):
            # What the model invents after its answer has a marker.
            alone = kind.whole(parts[0]) is not None
        for number, part in enumerate(_until_next_item(part, kind) for part in parts):
            # What follows a line of the prompt may be the prompt itself.
            found = _read(part, kind, most, alone and number == 0)
            if found.answer or found.how:
                return found
        if any(_ANY_MARKER.search(part) for part in parts):
            right = kind.right(parts[0]) if isinstance(kind, LetterKind) and most == Layer.LENIENT else None
            # "The answer is 70, which is option D."
            return _extraction(right, layers.BY_SENTENCE, most) if right else Extraction("", layers.NO_LABEL)
        return Extraction("", layers.NO_MARKER if most == Layer.STRICT else layers.NOTHING)


def _until_next_item(part: str, kind: Kind) -> str:
    """The part up to where, right after an answer, another item with an answer of its own begins."""
    answered = _ANSWERED.match(part)
    if answered is not None and kind.whole(answered["said"]) is not None:
        return part[: answered.end("said")]
    first = _ANY_MARKER.search(part)
    following = _NEXT_ITEM.search(part, first.end()) if first is not None else None
    if first is None or following is None or _BLANK_LINE.search(part, first.end(), following.start()):
        # A caption further down, as "Total cost: $694", is part of the reply.
        return part
    return part[: following.start()] if _ANY_MARKER.search(part, following.end()) else part


def _read(part: str, kind: Kind, most: Layer, alone: bool) -> Extraction:
    """`how` is empty where nothing is said of an answer. `alone`: an answer that nothing
    names as such counts."""
    if not part.strip():
        return Extraction("", "")
    is_text = isinstance(kind, TextKind)
    marked = _last(part, kind, most, weak=False)
    if marked is None and alone and not is_text and (found := kind.whole(part)) is not None:
        return _extraction(found, layers.WHOLE_RESPONSE, Layer.STRICT)
    if marked is not None:
        return _marked(part, *marked, kind, most)
    if most >= Layer.MARKED and part.rstrip()[-3:].endswith(("}", "```")) and (field := _field(part, kind)).answer:
        return field
    said = part if is_text else without_asides(part)
    extraction = _unmarked(said, kind, most, alone)
    if extraction.answer or extraction.how or said == part or _UNKNOWN.search(said):
        return extraction
    return _unmarked(without_asides(part, own_case=True), kind, most, alone)


def _unmarked(part: str, kind: Kind, most: Layer, alone: bool) -> Extraction:
    """What is read where nothing marks an answer."""
    if (
        not isinstance(kind, TextKind)
        and _DEPENDS.match(part)
        and (_UNDECIDED.search(part) or not _ON_BALANCE.search(part))
    ):
        return Extraction("", layers.AMBIGUOUS)
    if (said := _last(part, kind, most, weak=True)) is not None:
        right = kind.right(part) if said[0].rule.ends and isinstance(kind, LetterKind) else None
        # "The highest point is zero" may be a step; "C is correct" is not.
        return _extraction(right, layers.BY_SENTENCE, Layer.LENIENT) if right else _said(part, *said, kind, most)
    if alone and isinstance(kind, TextKind) and (found := kind.whole(part)) is not None:
        return _extraction(found, layers.WHOLE_RESPONSE, Layer.STRICT)
    if not alone or most < Layer.LENIENT or _ANY_MARKER.search(part.rstrip().rpartition("\n")[2]):
        return Extraction("", "")
    return read_alone(part, kind)


def _marked(part: str, place: Place, found: Found, kind: Kind, most: Layer) -> Extraction:
    """What is read where a marker has an answer, or one that does not count."""
    if _side_by_side(part, place, found, kind, most):
        return Extraction("", layers.AMBIGUOUS)
    after = part[_end(place, found) :]
    withdrawn = taken_back(after)
    if found.answer and not withdrawn:
        return _extraction(found, place.rule.how, place.rule.layer)
    corrected = _corrected(after, found.answer, kind, most) if withdrawn or found.why == layers.NEGATED else None
    return corrected or Extraction("", found.why or layers.NEGATED)


def _said(part: str, place: Place, found: Found, kind: Kind, most: Layer) -> Extraction:
    """What is read where a sentence names the answer, or one that does not count."""
    if _depends(part, place, found, kind, most):
        return Extraction("", layers.AMBIGUOUS)
    end = _end(place, found)
    if found.answer and taken_back(part[end:]):
        return _corrected(part[end:], found.answer, kind, most) or Extraction("", layers.NEGATED)
    if _UNDECIDED.search(part, end) or _starts_again(part, place, found, kind):
        return Extraction("", layers.AMBIGUOUS)
    return _extraction(found, place.rule.how, place.rule.layer)


def _last(part: str, kind: Kind, most: Layer, *, weak: bool) -> tuple[Place, Found] | None:
    """The last place that begins with an answer, or with one that does not count."""
    for place in places(part, most, weak=weak):
        if weak and (_is_about_another(part, place) or _is_one_of_many_ticks(part, place, kind)):
            continue
        found = _at_place(place, kind, weak)
        if found is not None and weak and place.rule.ends and not found.answer:
            # "The largest is 994 = 7 × 142" is a step.
            continue
        if found is not None and weak and place.rule.ends and isinstance(kind, NumberKind) and not kind.rates:
            later = kind.numbers(part[_end(place, found) :])
            if any(number not in ("", found.answer) for number in later):
                # So is "The largest is 994", where the reply goes on to calculate.
                continue
        if found is not None and not (weak and _UNDER_CONDITION.match(place.said, found.end)):
            return place, found
    return None


def _is_about_another(part: str, place: Place) -> bool:
    """Whether a place tells what the answer would be, was thought to be at first, or is not."""
    before = _sentence_before(part, place)
    return bool((place.supposed and _IF.search(before)) or _RULED_OUT.search(place.stated) or _AT_FIRST.search(before))


def _is_one_of_many_ticks(part: str, place: Place, kind: Kind) -> bool:
    """Whether ticks go through numbers or texts: "2 ✓ 3 ✓"."""
    return place.rule.how == layers.BY_TICK and isinstance(kind, NumberKind | TextKind) and part.count("✓") > 1


def _at_place(place: Place, kind: Kind, weak: bool) -> Found | None:
    """The answer with which a place begins: after "not A, but" the one that is not denied."""
    if isinstance(kind, TextKind):
        if weak and not place.rule.ends:
            return kind.sentence(place.said)
    elif (denied := _NOT_BUT.match(place.said)) is not None:
        found = kind.at(place.said[denied.end() :], closed=place.closed, ends=True)
        return found and Found(found.answer, denied.end() + found.end, found.why)
    return kind.at(place.said, closed=place.closed, ends=place.rule.ends)


def _corrected(after: str, withdrawn: str, kind: Kind, most: Layer) -> Extraction | None:
    """The answer in what follows one that was taken back: another one, or the same if nothing calls it wrong."""
    said = _last(after, kind, most, weak=True)
    if said is not None and said[1].answer:
        return _extraction(said[1], said[0].rule.how, said[0].rule.layer)
    alone = read_alone(after, kind) if most == Layer.LENIENT else Extraction("", "")
    again = alone.answer == withdrawn and _NOT_RIGHT.search(after) is not None
    return alone if alone.answer and not again else None


def _starts_again(part: str, place: Place, found: Found, kind: Kind) -> bool:
    """Whether an earlier paragraph ended with another answer, stated alike: then the model went on to another
    problem."""
    if "\n\n" not in part[: place.start] or place.rule.ends or taken_back(part[: place.start]):
        return False
    for paragraph in part[: place.start].split("\n\n")[:-1]:
        before = _last(paragraph, kind, Layer.STRICT, weak=True)
        if before is not None and before[1].answer not in ("", found.answer) and len(paragraph) - _end(*before) < 8:
            return True
    return False


def _side_by_side(part: str, place: Place, found: Found, kind: Kind, most: Layer) -> bool:
    """Whether another answer is marked right before this one, with no more than "or" between them."""
    before = _last(part[: place.start], kind, most, weak=False)
    if before is None or not found.answer or before[1].answer in ("", found.answer):
        return False
    end = _end(*before)
    between = part[end : place.start]
    return (
        end < place.start
        and len(between) < 40
        and not taken_back(part[before[0].start : place.start])
        and _OR.fullmatch(between) is not None
    )


def _field(part: str, kind: Kind) -> Extraction:
    """The only value of a JSON object that is an answer."""
    fenced = _FENCED.fullmatch(part)
    try:
        value = json.loads(fenced["said"] if fenced is not None else part)
    except (ValueError, RecursionError):
        return Extraction("", "")
    if not isinstance(value, dict):
        return Extraction("", "")
    texts = {
        key: str(each).lower() if isinstance(each, bool) else str(each)
        for key, each in value.items()
        if isinstance(each, str | int | float)
    }
    if isinstance(kind, TextKind) and len(texts) > 1:
        return Extraction("", "")
    answers = {key: found for key, text in texts.items() if (found := kind.whole(text)) is not None}
    if len({each.answer for each in answers.values()}) > 1:
        answers = {key: found for key, found in answers.items() if _ANSWERS.search(key)}
    return (
        _extraction(next(iter(answers.values())), layers.BY_FIELD, Layer.MARKED)
        if len({each.answer for each in answers.values()}) == 1
        else Extraction("", "")
    )


def _depends(part: str, place: Place, found: Found, kind: Kind, most: Layer) -> bool:
    """Whether the answer stands under a condition, and another one under another."""
    if not _IF.search(_sentence_before(part, place)):
        return False
    if re.search(r"[;.,]\s+(?:but )?(?:if|otherwise|else|unless)\b", part[_end(place, found) :], re.IGNORECASE):
        return True
    before = _last(part[: place.start], kind, most, weak=True)
    return before is not None and before[1].answer != found.answer and "if" in part[: before[0].start].lower()


def _sentence_before(part: str, place: Place) -> str:
    return re.split(r"[.;\n]", part[max(0, place.start - 300) : place.start])[-1]


def _end(place: Place, found: Found) -> int:
    return place.end if place.closed else place.end + found.end


def _extraction(found: Found, how: str, layer: Layer) -> Extraction:
    return Extraction(found.answer, how, layer) if found.answer else Extraction("", found.why)
