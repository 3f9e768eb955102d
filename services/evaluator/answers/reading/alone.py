"""An answer that nothing names as such: in a line by itself, at the beginning, or in the last sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import Kind, taken_back
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Extraction, Found, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.places import CONCLUSION, lines
from services.evaluator.answers.reading.text import CAPTION, TextKind

_BOLD = re.compile(r"\*\*(?P<said>[^*\n]{1,200})\*\*")
_SENTENCES = re.compile(r"(?<=[.!?])(?:\*\*)?\s+|\n+")
_CHATTER = re.compile(
    r"\b(?:let me know|hope (?:this|that)|feel free|happy to|any (?:other |more |further )?questions|good luck|"
    r"if you (?:need|have|want|'d|would)|would you like|want me to|shall I)\b",
    re.IGNORECASE,
)
_SUMMED = re.compile(r"\b(?:total|overall|final|result|average|sum|sorted|output)\b", re.IGNORECASE)
_DOUBT = re.compile(
    r"\bor rather\b|\bon (?:another|the other)\b|\bboth (?:fit|work|are)\b|\b(?:can(?:not|['’]t)|could) (?:decide|"
    r"tell|say)\b|\bnot sure\b|"
    r"\bunsure\b|\bhard to\b|\bdepends\b|\?\s*or\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!:)\]\"'”’*`$][\s]*\Z")
_LENIENT_CHARACTERS = 16_384


def read_alone(part: str, kind: Kind) -> Extraction:
    """An answer that nothing names as such. What the text says in one of these ways must be one answer."""
    kept = [line for line in lines(part[-_LENIENT_CHARACTERS:]) if not _CHATTER.search(line)]
    if not kept:
        return Extraction("", "")
    ways = [_apart(part, kept, kind)]
    listed = isinstance(kind, LetterKind | LabelKind) and kind.ends_list(part, kept[-1])
    if not listed and not _DOUBT.search(kept[-1]) and (_ENDED.search(kept[-1]) or len(kept[-1].split()) < 12):
        ways.append(_at_the_end(kept, kind))
    for way in ways:
        found = [(each, how) for each, how in way if each is not None]
        if len({each.answer for each, _ in found}) > 1:
            return Extraction("", layers.AMBIGUOUS)
        if found:
            return Extraction(found[0][0].answer, found[0][1], Layer.LENIENT)
    return Extraction("", "")


def _apart(part: str, kept: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """Answers that stand apart from sentences."""
    if isinstance(kind, TextKind):
        yield kind.shown(part), layers.BY_FENCE
    if isinstance(kind, LetterKind):
        yield kind.ticked(part), layers.BY_TICK
        yield kind.right(part), layers.BY_SENTENCE
    if isinstance(kind, LetterKind | LabelKind) and kind.ends_list(part, kept[-1]):
        return
    if len(kept) > 1:
        yield kind.whole(kept[-1].lstrip("= ")), layers.BY_LAST_LINE
    if not taken_back(part):
        yield kind.first(part), layers.BY_FIRST_LINE
    for line in {kept[0]: None, kept[-1]: None}:
        if (caption := CAPTION.match(line)) is None or taken_back(part):
            continue
        # Numbers and texts stand under many captions.
        if len(kept) == 1 or not isinstance(kind, NumberKind | TextKind) or _SUMMED.search(caption[0]):
            yield kind.whole(line[caption.end() :]), layers.BY_CAPTION
    if kept[-1].strip().startswith("|"):
        yield kind.whole(kept[-1].strip(" |").rpartition("|")[2]), layers.BY_LAST_LINE


def _at_the_end(kept: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """Answers in sentences of the last line."""
    last = kept[-1]
    yield _concluded(last, kind), layers.BY_CONCLUSION
    bold = {found.answer: found for match in _BOLD.finditer(last) if (found := kind.whole(match["said"])) is not None}
    if len(bold) == 1:
        yield next(iter(bold.values())), layers.BY_BOLD
    sentences = [each for each in _SENTENCES.split(last) if each.strip()]
    if not sentences:
        return
    if len(sentences) > 1 and not isinstance(kind, TextKind):
        yield kind.whole(sentences[-1]), layers.BY_LAST_SENTENCE
        if (caption := CAPTION.match(sentences[-1])) is not None:
            yield kind.whole(sentences[-1][caption.end() :]), layers.BY_CAPTION
    if _ENDED.search(last) or len(sentences) == 1:
        if isinstance(kind, NumberKind) and len(kept) == len(sentences) == 1:
            yield kind.alone(last), layers.BY_LAST_SENTENCE
        last_is = sentences[-1].rpartition(" is ")
        if last_is[1] and isinstance(kind, LetterKind):
            yield kind.at(last_is[2], closed=False, ends=True), layers.BY_LAST_SENTENCE
        named = kind.only(sentences[-1])
        # A sentence that names one of several options may be about another than the right one.
        if not isinstance(kind, LetterKind) or named is None or kind.mentioned("\n".join(kept)) <= {named.answer}:
            yield named, layers.BY_LAST_SENTENCE


def _concluded(line: str, kind: Kind) -> Found | None:
    for match in reversed(list(CONCLUSION.finditer(line))):
        said = line[match.end() :]
        sentence = _SENTENCES.split(said, maxsplit=1)[0]
        found = kind.at(said, closed=False, ends=True) or kind.only(sentence)
        if found is None and " is " in sentence:
            found = kind.at(sentence.rpartition(" is ")[2], closed=False, ends=True)
        if found is not None:
            return found
    return None
