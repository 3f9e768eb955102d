"""An answer that nothing names as such: in a line by itself, at the beginning, or in the last sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.closing import disputed
from services.evaluator.answers.reading.ending import CHOSEN, ENDED, FIGURE, SUMMED, at_the_end, is_comment, only_bold
from services.evaluator.answers.reading.kinds import Kind, taken_back
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Extraction, Found, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.places import lines
from services.evaluator.answers.reading.prose.asides import SENTENCES
from services.evaluator.answers.reading.text import CAPTION, TextKind

_CHATTER = re.compile(
    r"\b(?:let me know|hope (?:this|that)|feel free|happy to|any (?:other |more |further )?questions|good luck|"
    r"(?:medical|legal|financial|professional|tax) advice\b(?!.*\bbut\b)|please (?:consult|seek|see an?)|"
    r"general information|if you(?:['’]d| need| have| want| would)|"
    r"(?:is there|if there['’]s|need|know) anything else|enjoy\b|would you like|want me to|"
    r"shall I)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\bor rather\b|\bon (?:another|the other)\b|\bboth (?:\w+ )?(?:fit|work)\b|"
    r"\bboth (?:\w+ )?(?:are|can be|could be|seem) (?:equally |well )?"
    r"(?:possible|defended|defensible|plausible|valid|correct|right|acceptable)\b(?!.*, but\b)|"
    r"\bcan(?:not|['’]t) (?:really )?be (?:assigned|classified|labell?ed)\b|\ba (?:bit|mix) of both\b|"
    r"\b(?:can(?:not|['’]t)|could) (?:decide|tell|say)\b|\bnot sure\b|\bunsure\b|"
    r"\bhard to (?:say|tell|decide|judge|choose|pick)\b|\bdepends\b|"
    r"\bdepending on (?:which|what|how|whether)\b|\bnot (?:entirely |quite |completely )?certain\b|"
    r"\(or maybe\b|\?\s*or\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:[,;(–—-]|\b(?:an?|the|of|in|on|at|to|for|from|by|with|as|and|or|but|which|that|this|is|are|was|were|be|been|it|its|"
    r"not|has|have|had|must|will|would|can|should|than|because|since|so|if|while|one|we|they|then|remainder))\s*\Z",
    re.IGNORECASE,
)
"""With this a text ends that is cut off."""
_ITEM = re.compile(r"\s*(?:[-•]|\*(?!\*)|\d{1,2}[.)])")
_FINISHED = re.compile(rf"\A{_ITEM.pattern}|{ENDED.pattern}")
_SET_OFF = re.compile(
    r"=[ ]{0,2}[-−$€£]{0,2}\d[\d.,]*(?:[ ]?[\w%°/²³]{1,12}){0,2}(?<!remainder)\s*\Z|"
    r"(?::|∴|→|⇒|->|=>)[ ]{0,2}[*_`(\[]{0,3}[\w .-]{1,30}[*_`)\]]{0,3}\s*\Z"
)
_NUMBERED = re.compile(
    r"\s{0,8}[*_]{0,2}(?:[A-Za-z]{1,12} )?\d{1,2}[*_]{0,2}[ ]?[.):][*_]{0,2}[ ]{1,4}(?P<said>.{1,60})"
)
_YES_NO = re.compile(r"[*_]{0,2}(?:yes|no)[*_]{0,2}, ", re.IGNORECASE)
_COUNTED = re.compile(r"\s{0,8}\d{1,2}[.)] ")
_NUMBERED_CAPTION = re.compile(r"[ \t>*_#-]{0,6}(?P<name>[A-Za-z]{2,20}) \d{1,2}[*_]{0,2}:")
_LOWER_CAPTION = re.compile(r"[ \t>*_#-]{0,6}[a-z][a-z_ -]{1,20}[*_]{0,2}:[*_]{0,2}[ \t]{1,4}(?=\S)")
_CLOSING = re.compile(r"\s*(?:\\\]|\$\$|\\end\{[a-z*]{1,20}\})\s*")
_CHECK = re.compile(
    r"\W{0,4}(?:(?:let me|let['’]s|we can|quick|to|now)\b,? )?(?:(?:double|cross)[- ]?)?"
    r"(?:check|checking|verification|verify|proof)\b(?: (?:this|that|it|the (?:answer|result)))?[ *_]{0,4}:",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:please|(?:could|can|would|will) you(?: please)?|you(?:['’]ll| will)? need to|waiting for you to|"
    r"if you(?: can| could)?) (?:also |just )?(?:provide|share|send|re-?send|specify|paste|"
    r"include|give me|post|upload|attach|clarify|tell me|show me|type|supply|state|describe|add|"
    r"check (?:that|whether|if) you)\b",
    re.IGNORECASE,
)
"""With this a reply asks for what its question lacks."""
_NO_NUMBER = re.compile(
    r"\b(?:no (?:real |valid |such |single )?(?:solutions?|answer|value|number)|undefined|impossible|"
    r"not enough information|please (?:provide|share|specify|give me|send)|"
    r"(?:can(?:not|['’]t)|unable to|won['’]t) (?:give|provide|assign|offer) an?y? (?:rating|score|number|answer)|"
    r"can(?:not|['’]t) be (?:determined|solved|computed|answered))\b",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"[*_#\s]{0,6}(?:here(?:['’]s| is) (?:how|why|the|my)|how (?:to|I|we|it)|steps?:|why\b|"
    r"(?:explanation|calculation|reasoning|working|derivation|solution)s?[*_]{0,3}[ ]?(?::|\Z))",
    re.IGNORECASE,
)
_MOST_BEFORE = 2
"""Lines in which an answer is stated before it is explained."""
_MOST_SENTENCES = 40
_LENIENT_CHARACTERS = 16_384


def read_alone(part: str, kind: Kind) -> Extraction:
    """An answer that nothing names as such. What the text says in one of these ways must be one answer."""
    kept = _kept(part, kind)
    if _answers_several(part, kept, kind):
        return Extraction("", layers.AMBIGUOUS)
    if part.lstrip().startswith(("{", "```json")):
        # JSON that is cut off: its texts are no sentences of the reply.
        return Extraction("", "")
    if not kept or (isinstance(kind, NumberKind) and _NO_NUMBER.search(kept[-1])):
        return Extraction("", "")
    for way in _ways(part, kept, kind):
        found = [(each, how) for each, how in way if each is not None]
        if len({each.answer for each, _ in found}) > 1:
            return Extraction("", layers.AMBIGUOUS)
        if found:
            if isinstance(kind, LetterKind) and kind.denied(part, found[0][0].answer):
                return Extraction("", layers.NEGATED)
            if isinstance(kind, NumberKind) and kind.misses(kept[-1], found[0][0].answer):
                return Extraction("", layers.NOT_ASKED)
            if isinstance(kind, NumberKind) and found[0][1] == layers.BY_LAST_SENTENCE and not kind.rates:
                sentences = [each for line in kept for each in SENTENCES.split(line)]
                if disputed(sentences, found[0][0].answer, kind):
                    return Extraction("", layers.AMBIGUOUS)
            return Extraction(found[0][0].answer, found[0][1], Layer.LENIENT)
    return Extraction("", "")


def _kept(part: str, kind: Kind) -> list[str]:
    """The lines in which an answer is looked for: without offers, remarks and checks."""
    kept = [line for each in lines(part[-_LENIENT_CHARACTERS:]) if (line := _without_chatter(each))]
    while len(kept) > 1 and _CLOSING.fullmatch(kept[-1]):
        kept.pop()
    if len(kept) > 2 and kept[-1].strip() == "```" and kept[-3].lstrip().startswith("```"):
        # A block of one line is a line set off.
        kept.pop()
    if len(kept) > 2 and (caption := CAPTION.match(kept[0])) is not None and "\n\n" in part:
        # The same caption again belongs to an invented next item.
        kept = kept[:1] if any(line.startswith(caption[0]) for line in kept[2:]) else kept
    while not isinstance(kind, TextKind) and len(kept) > 1 and is_comment(kept[-1], kept[:-1], kind):
        kept.pop()
    checked = next((number for number, line in enumerate(kept) if number and _CHECK.match(line)), len(kept))
    return _until_explained(kept[:checked], kind)


def _until_explained(kept: list[str], kind: Kind) -> list[str]:
    """The lines before one that begins to explain, if a sentence there may be a number."""
    end = next((place for place, line in enumerate(kept) if place and _EXPLAINS.match(line)), len(kept))
    if not isinstance(kind, NumberKind) or kind.rates or not 0 < end <= _MOST_BEFORE or not ENDED.search(kept[end - 1]):
        return kept
    return kept[:end] if kind.only(SENTENCES.split(kept[end - 1])[-1]) is not None else kept


def _ways(part: str, kept: list[str], kind: Kind) -> Iterator[Iterator[tuple[Found | None, str]]]:
    """The ways in which a text may say an answer, the plainest one first."""
    yield _apart(part, kept, kind)
    if _ASKS.search(kept[-1]):
        return
    if not _ends_list(part, kept, kind) and _closes(kept[-1], kind):
        yield at_the_end(kept, kind)
    if _DOUBT.search(kept[-1]) or taken_back(part):
        return
    if ENDED.search(kept[-1]) or (isinstance(kind, TextKind) and _FINISHED.search(kept[-1])):
        yield iter([(_claimed(kept, kind), layers.BY_FIRST_LINE)])
    if _FINISHED.search(kept[-1]):
        # In a list, numbers in bold are given.
        said = [line for line in kept if not isinstance(kind, NumberKind) or not _ITEM.match(line)]
        yield iter([(only_bold("\n".join(said), kind, phrases=True), layers.BY_BOLD)])


def _closes(line: str, kind: Kind) -> bool:
    """Whether a last line is finished and does not doubt."""
    if _DOUBT.search(line):
        return False
    if ENDED.search(line) or _SET_OFF.search(line):
        return True
    first, *others = SENTENCES.split(line.strip())
    last = others[-1] if others else first
    if _GOES_ON.search(last):
        return False
    # Where others end in a full stop, one without may be cut.
    if others and len(first.split()) > 2 and not CHOSEN.search(last):
        return isinstance(kind, LabelKind) and kind.whole(last) is not None
    return len(last.split()) < 12


def _ends_list(part: str, kept: Sequence[str], kind: Kind) -> bool:
    """Whether the last line is one of several that go through options or labels."""
    return isinstance(kind, LetterKind | LabelKind) and kind.ends_list(part, kept[-1])


def _is_figure(line: str, kind: Kind) -> bool:
    if isinstance(kind, NumberKind) and kind.rates:
        caption = CAPTION.match(line)
        return caption is not None and kind.whole(line[caption.end() :]) is not None
    return FIGURE.search(line) is not None


def _without_chatter(line: str) -> str:
    if not _CHATTER.search(line):
        return line
    kept: list[str] = []
    for each in SENTENCES.split(line):
        if not _CHATTER.search(each):
            kept.append(each)
        elif kept:
            # What follows an offer belongs to it.
            break
    return " ".join(kept)


def _answers_several(part: str, kept: Sequence[str], kind: Kind) -> bool:
    """Whether numbered lines answer different questions, as "1. B" and "2. A" do."""
    if "✓" in part or (isinstance(kind, LetterKind | LabelKind) and kind.judged(part) is not None):
        return False
    numbered = [match["said"] for line in kept if (match := _NUMBERED.fullmatch(line)) is not None]
    if isinstance(kind, NumberKind | TextKind):
        return False
    if numbered and _NUMBERED.fullmatch(kept[-1]) is None:
        # What follows the list draws a conclusion.
        numbered = []
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
        yield kind.right(part), layers.BY_SENTENCE
    if isinstance(kind, LetterKind | LabelKind):
        yield kind.judged(part), layers.BY_LIST
    if _ends_list(part, kept, kind):
        if isinstance(kind, LetterKind):
            yield kind.before_others(part), layers.BY_FIRST_LINE
        return
    is_item = isinstance(kind, TextKind) and (
        kept[-1].lstrip().startswith(("- ", "* ", "• "))
        or (_COUNTED.match(kept[-1]) is not None and any(map(_COUNTED.match, kept[:-1])))
        or _is_numbered_caption(kept)
    )
    last = kind.whole(kept[-1].lstrip("=> ")) if len(kept) > 1 and not is_item else None
    yield last, layers.BY_LAST_LINE
    if isinstance(kind, LabelKind) and "=" in kept[-1]:
        yield kind.whole(kept[-1].rpartition("=")[2]), layers.BY_LAST_LINE
    if isinstance(kind, LabelKind) and len(kept) > 1 and _YES_NO.match(kept[-1]):
        yield kind.first(kept[-1]), layers.BY_LAST_LINE
    first = kind.first(part)
    if first is not None and not taken_back(part.lstrip()[first.end :]):
        yield first, layers.BY_FIRST_LINE
    for line in {kept[0]: None, kept[-1]: None}:
        caption = CAPTION.match(line) or (_LOWER_CAPTION.match(line) if isinstance(kind, LabelKind) else None)
        if caption is None or taken_back(part) or (last is not None and line == kept[0]):
            continue
        if _is_the_caption(caption[0], line, kept, kind):
            said = line[caption.end() :]
            yield kind.whole(said) or (kind.first(said) if isinstance(kind, LabelKind) else None), layers.BY_CAPTION
    if kept[-1].strip().startswith("|"):
        yield kind.whole(kept[-1].strip(" |").rpartition("|")[2]), layers.BY_LAST_LINE


def _is_numbered_caption(kept: Sequence[str]) -> bool:
    """Whether the last line goes on with captions such as "Director 1:" of a line before."""
    last = _NUMBERED_CAPTION.match(kept[-1])
    return last is not None and any(
        before is not None and before["name"] == last["name"] for before in map(_NUMBERED_CAPTION.match, kept[:-1])
    )


def _is_the_caption(caption: str, line: str, kept: Sequence[str], kind: Kind) -> bool:
    """Whether a caption is that of the answer: numbers and texts stand under many."""
    if not isinstance(kind, NumberKind | TextKind) or len(kept) == 1:
        return True
    alone = not any(_is_figure(other, kind) for other in kept if other is not line)
    # What is cut off may go on to other aspects.
    rates = isinstance(kind, NumberKind) and kind.rates and (line == kept[-1] or _FINISHED.search(kept[-1]))
    return alone and (bool(rates) or SUMMED.search(caption) is not None)


def _claimed(kept: Sequence[str], kind: Kind) -> Found | None:
    """The answer of a first sentence that the others explain."""
    sentences = [each for line in kept for each in SENTENCES.split(line) if each.strip()]
    least = 1 if isinstance(kind, TextKind | LetterKind) else 2
    return kind.claimed(sentences) if least <= len(sentences) <= _MOST_SENTENCES else None
