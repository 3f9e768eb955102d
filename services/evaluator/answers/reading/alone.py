"""An answer that nothing names as such: in a line by itself, at the beginning, or in the last sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import REASON, Kind, taken_back
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
    r"if you (?:need|have|want|'d|would)|anything else|enjoy!|would you like|want me to|shall I)\b",
    re.IGNORECASE,
)
_SUMMED = re.compile(
    r"\b(?:total|overall|final|result|average|sum|sorted|output|score|rating|similarity|"
    r"gesamt|insgesamt|summe|totale|bewertung|nota|note)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\bor rather\b|\bon (?:another|the other)\b|\bboth (?:fit|work|are|\w+ are possible)\b|"
    r"\b(?:can(?:not|['’]t)|could) (?:decide|tell|say)\b|\bnot sure\b|\bunsure\b|\bhard to\b|\bdepends\b|\?\s*or\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!:)\]\"'”’*`$✓][\s]*\Z")
_SET_OFF = re.compile(
    r"=[ ]{0,2}[-−$€£]{0,2}\d[\d.,]*(?:[ ]?[\w%°]{1,12}){0,2}\s*\Z|"
    r"(?::|∴|→|⇒|->|=>)[ ]{0,2}[*_`(\[]{0,3}[\w .-]{1,30}[*_`)\]]{0,3}\s*\Z"
)
_NAMED = re.compile(r"(?<!\bno):[^:]*\Z")
_NUMBERED = re.compile(
    r"\s{0,8}[*_]{0,2}(?:[A-Za-z]{1,12} )?\d{1,2}[*_]{0,2}[ ]?[.):][*_]{0,2}[ ]{1,4}(?P<said>.{1,60})"
)
_EQUALS = re.compile(r"(?:^|[\s:,])[A-Za-z](?:_\w{1,8})?[ ]?=[ ]?(?P<said>[^=]{1,40})\Z")
_IF = re.compile(r"\b(?:if|unless|assuming)\b", re.IGNORECASE)
_LOWER_CAPTION = re.compile(r"[ \t>*_#-]{0,6}[a-z][a-z_ -]{1,20}[*_]{0,2}:[*_]{0,2}[ \t]{1,4}(?=\S)")
_ASIDE = re.compile(r"\([^()]*\)\.?\s*\Z")
_VARIABLE = re.compile(r"(?<![A-Za-z])([A-Za-z])[ ]?=[ ]?-?\d")
_CLOSING = re.compile(r"\s*(?:\\\]|\$\$|\\end\{[a-z*]{1,20}\})\s*")
_CONTRAST = re.compile(r",? (?:while|whereas|although|though) ")
_ENDS_WITH = re.compile(r"[=≈][ ]*(?P<said>[^=≈\n]{1,40})\Z")
_STEP = re.compile(r"\W{0,4}(?:step|first|then|next|\d{1,2}[.)])", re.IGNORECASE)
_RESULT = re.compile(r"[=≈]\s*")
_CHECK = re.compile(r"\W{0,4}(?:check|checking|verification|verify|proof)\b[ *_]{0,4}:", re.IGNORECASE)
_NO_NUMBER = re.compile(
    r"\b(?:no (?:real |valid |such |single )?(?:solutions?|answer|value|number)|undefined|impossible|"
    r"not enough information|"
    r"can(?:not|['’]t) be (?:determined|solved|computed|answered))\b",
    re.IGNORECASE,
)
_MOST_AFTER_RESULT = 300
_VARIABLES = re.compile(r"[A-Za-z][ ]?=.*(?:,| and| or)[ ]?[A-Za-z][ ]?=")
_FIGURE = re.compile(r"^[^:\n]{1,40}:[ *]{0,4}[-−]?[$€£]?\d|=")
_LENIENT_CHARACTERS = 16_384


def read_alone(part: str, kind: Kind) -> Extraction:
    """An answer that nothing names as such. What the text says in one of these ways must be one answer."""
    kept = [line for each in lines(part[-_LENIENT_CHARACTERS:]) if (line := _without_chatter(each))]
    while len(kept) > 1 and _CLOSING.fullmatch(kept[-1]):
        kept.pop()
    if len(kept) > 2 and (caption := CAPTION.match(kept[0])) is not None and "\n\n" in part:
        # The same caption again belongs to an invented next item.
        kept = kept[:1] if any(line.startswith(caption[0]) for line in kept[2:]) else kept
    checked = next((number for number, line in enumerate(kept) if number and _CHECK.match(line)), len(kept))
    kept = kept[:checked]
    if "✓" not in part and _answers_several(kept, kind):
        return Extraction("", layers.AMBIGUOUS)
    if not kept or (isinstance(kind, NumberKind) and _NO_NUMBER.search(kept[-1])):
        return Extraction("", "")
    ways = [_apart(part, kept, kind)]
    listed = isinstance(kind, LetterKind | LabelKind) and kind.ends_list(part, kept[-1])
    if (
        not listed
        and not _DOUBT.search(kept[-1])
        and (_ENDED.search(kept[-1]) or _SET_OFF.search(kept[-1]) or len(kept[-1].split()) < 12)
    ):
        ways.append(_at_the_end(kept, kind))
    for way in ways:
        found = [(each, how) for each, how in way if each is not None]
        if len({each.answer for each, _ in found}) > 1:
            return Extraction("", layers.AMBIGUOUS)
        if found:
            if isinstance(kind, LetterKind) and kind.denied(part, found[0][0].answer):
                return Extraction("", layers.NEGATED)
            return Extraction(found[0][0].answer, found[0][1], Layer.LENIENT)
    return Extraction("", "")


def _without_chatter(line: str) -> str:
    if not _CHATTER.search(line):
        return line
    return " ".join(each for each in _SENTENCES.split(line) if not _CHATTER.search(each))


def _answers_several(kept: Sequence[str], kind: Kind) -> bool:
    """Whether numbered lines answer different questions, as "1. B" and "2. A" do."""
    numbered = [match["said"] for line in kept if (match := _NUMBERED.fullmatch(line)) is not None]
    if isinstance(kind, NumberKind | TextKind):
        return False
    listed = [line.lstrip()[1:] for line in kept if line.lstrip().startswith(("- ", "* ", "• "))]
    if (
        listed
        and kept[-1].lstrip()[:1] in "-*•"
        and len({found.answer for said in listed if (found := kind.whole(said)) is not None}) > 1
    ):
        return True
    return len({found.answer for said in numbered if (found := kind.whole(said)) is not None}) > 1


def _apart(part: str, kept: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """Answers that stand apart from sentences."""
    if isinstance(kind, TextKind):
        yield kind.shown(part), layers.BY_FENCE
    if isinstance(kind, LetterKind):
        yield kind.ticked(part), layers.BY_TICK
        yield kind.cited(part), layers.BY_SENTENCE
        yield kind.right(part), layers.BY_SENTENCE
    if isinstance(kind, LetterKind | LabelKind):
        yield kind.judged(part), layers.BY_LIST
    if isinstance(kind, LetterKind | LabelKind) and kind.ends_list(part, kept[-1]):
        return
    last = kind.whole(kept[-1].lstrip("= ")) if len(kept) > 1 else None
    yield last, layers.BY_LAST_LINE
    if isinstance(kind, LabelKind) and "=" in kept[-1]:
        yield kind.whole(kept[-1].rpartition("=")[2]), layers.BY_LAST_LINE
    first = kind.first(part)
    if first is not None and not taken_back(part.lstrip()[first.end :]):
        yield first, layers.BY_FIRST_LINE
    if isinstance(kind, LetterKind) and not taken_back(part):
        yield kind.subject(part), layers.BY_FIRST_LINE
    for line in {kept[0]: None, kept[-1]: None}:
        caption = CAPTION.match(line) or (_LOWER_CAPTION.match(line) if isinstance(kind, LabelKind) else None)
        if caption is None or taken_back(part) or (last is not None and line == kept[0]):
            continue
        # Numbers and texts stand under many captions.
        alone = not any(_FIGURE.search(other) for other in kept if other is not line)
        if not isinstance(kind, NumberKind | TextKind) or len(kept) == 1 or (alone and _SUMMED.search(caption[0])):
            yield kind.whole(line[caption.end() :]), layers.BY_CAPTION
    if kept[-1].strip().startswith("|"):
        yield kind.whole(kept[-1].strip(" |").rpartition("|")[2]), layers.BY_LAST_LINE


def _at_the_end(kept: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """Answers in sentences of the last line."""
    last = kept[-1]
    yield _concluded(last, kind), layers.BY_CONCLUSION
    bold = {
        found.answer: found for match in _BOLD.finditer(last) if (found := _in_bold(match["said"], kind)) is not None
    }
    if len(bold) == 1:
        yield next(iter(bold.values())), layers.BY_BOLD
        if isinstance(kind, LabelKind):
            return
    sentences = [each for each in _SENTENCES.split(last) if each.strip()]
    if len(sentences) > 1 and not isinstance(kind, TextKind) and _ASIDE.fullmatch(" ".join(sentences[1:])):
        sentences, last = sentences[:1], sentences[0]
    if len(sentences) > 1 and not sentences[-1].strip(" ✓*"):
        sentences.pop()
    if not sentences:
        return
    if len(sentences) > 1 and not isinstance(kind, TextKind):
        yield kind.whole(sentences[-1]), layers.BY_LAST_SENTENCE
        if (caption := CAPTION.match(sentences[-1])) is not None:
            yield kind.whole(sentences[-1][caption.end() :]), layers.BY_CAPTION
    if not isinstance(kind, TextKind) and _NAMED.search(sentences[-1]):
        before, _, after = sentences[-1].rpartition(":")
        # Of numbers, "Clarity: 9" may be one of several.
        if not isinstance(kind, NumberKind) or len(before.split()) > 2:
            yield (
                kind.whole(after) or (kind.first(after) if isinstance(kind, LabelKind) else None),
                layers.BY_LAST_SENTENCE,
            )
    if isinstance(kind, NumberKind):
        yield _calculated(kept, kind), layers.BY_CONCLUSION
        result = _ENDS_WITH.search(REASON.split(sentences[-1], maxsplit=1)[0])
        if result is not None and not _STEP.match(last) and " or " not in last and not _VARIABLES.search(sentences[-1]):
            yield _in_bold(result["said"], kind), layers.BY_CONCLUSION
    if (
        isinstance(kind, NumberKind)
        and (equals := _EQUALS.search(sentences[-1])) is not None
        and " or " not in sentences[-1]
        and not _VARIABLES.search(sentences[-1])
    ):
        yield kind.whole(equals["said"]), layers.BY_CONCLUSION
    if _ENDED.search(last) or len(sentences) == 1:
        if isinstance(kind, NumberKind) and len(kept) == len(sentences) == 1:
            yield kind.alone(last), layers.BY_LAST_SENTENCE
        last_is = sentences[-1].rpartition(" is ")
        if isinstance(kind, NumberKind):
            last_is = _CONTRAST.split(sentences[-1], maxsplit=1)[0].rpartition(" is ")
        of_label = isinstance(kind, LabelKind) and kind.only(sentences[-1]) is None
        if last_is[1] and not isinstance(kind, TextKind) and not of_label:
            said = kind.at(last_is[2], closed=False, ends=True)
            yield said if said is not None and said.answer else None, layers.BY_LAST_SENTENCE
        named = kind.only(sentences[-1])
        # A sentence that names one of several options may be about another than the right one.
        if not isinstance(kind, LetterKind) or named is None or kind.mentioned("\n".join(kept)) <= {named.answer}:
            yield named, layers.BY_LAST_SENTENCE


def _in_bold(said: str, kind: Kind) -> Found | None:
    found = kind.whole(said)
    if found is None and isinstance(kind, NumberKind):
        found = kind.at(said, closed=True, ends=True)
    return found if found is not None and found.answer else None


def _concluded(line: str, kind: Kind) -> Found | None:
    for match in reversed(list(CONCLUSION.finditer(line))):
        if _IF.search(_SENTENCES.split(line[: match.start()])[-1]):
            continue
        said = line[match.end() :]
        sentence = _SENTENCES.split(said, maxsplit=1)[0]
        found = kind.at(said, closed=False, ends=True)
        if found is None and said.strip() == sentence.strip():
            found = kind.only(sentence)
        if found is None and isinstance(kind, LetterKind):
            found = kind.concluded(sentence)
        if found is None and " is " in sentence:
            found = kind.at(sentence.rpartition(" is ")[2], closed=False, ends=True)
        if found is None and isinstance(kind, LabelKind):
            found = kind.whole(said)
        # Of numbers only the beginning may have been read: "thus 2^10 = 1024".
        if found is not None and (found.answer or not isinstance(kind, NumberKind)):
            return found
    return None


def _calculated(kept: Sequence[str], kind: NumberKind) -> Found | None:
    """The number of the last sentence that is also the result of the last calculation."""
    text = "\n".join(kept)
    results = list(_RESULT.finditer(text))
    if not results or len(set(_VARIABLE.findall(text))) > 1 or results[-1].end() < len(text) - _MOST_AFTER_RESULT:
        return None
    result = kind.at(text[results[-1].end() :], closed=False, ends=False)
    return kind.again(text[results[-1].end() :], result) if result is not None and result.answer else None
