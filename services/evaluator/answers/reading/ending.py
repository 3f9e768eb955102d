"""An answer in the sentences with which a reply ends. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.closing import is_remark, rated, repeats_result, stated
from services.evaluator.answers.reading.kinds import Kind, main_clause, taken_back
from services.evaluator.answers.reading.label import LabelKind
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.places import CONCLUSION
from services.evaluator.answers.reading.prose.asides import SENTENCES
from services.evaluator.answers.reading.text import CAPTION, TextKind

_BOLD = re.compile(r"\*\*(?P<said>[^*\n]{1,200})\*\*")
SUMMED = re.compile(
    r"\b(?:total|overall|altogether|remaining|left|change|balance|difference|net|profit|final|result|average|sum|"
    r"sorted|output|score|rating|similarity|"
    r"gesamt|insgesamt|summe|totale|bewertung|nota|note)\b",
    re.IGNORECASE,
)
ENDED = re.compile(r"[.!:)>\]\"'”’*`$✓][\s]*\Z")
_ENDS_IN_BOLD = re.compile(r"(?<=\w )\*\*(?P<said>[A-Za-z]{2,12} [\d.,]{1,12})\*\*[.!]?\s*\Z")
_ENTRY = re.compile(r"\s*(?:\||[-*•]\s|\d{1,2}[.)]\s)[^\n]*\d")
"""A line of a list or table that has a number."""
_NAMED = re.compile(r"(?<!\bno)(?<!\d):[^:]*\Z")
_IF = re.compile(r"\b(?:if|unless|assuming)\b", re.IGNORECASE)
_REMARK = re.compile(r"[ \t*_]{0,4}\([^()\n]{1,400}\)[ \t*_.]{0,4}|[ \t]*\*(?=\S)[^*\n]{40,400}\*[ \t]*")
CHOSEN = re.compile(
    r"\b(?:best|[a-z]{3,}(?:est|most)|better|more|most|confident|sure|certain|right|correct|fits?|wins|stands out|"
    r"makes (?:the )?(?:most )?sense|what the|asks? for|asked|looking for|"
    r"only(?= one\b| (?:\w+ )?\(?[A-Z]\b| option| answer| choice)|left|remain(?:s|ing|ed)?|it is|choose|pick|"
    r"prefer|lean\w*|"
    r"points? to|select|opt|vote|answer|go|looks like|call|overall|on balance|in the end|I['’]d|I would|must be|"
    r"has to be|definitely|clearly|so|therefore|thus|hence)\b",
    re.IGNORECASE,
)
"""By which a sentence is about the right one of several options."""
_AMONG = re.compile(
    r"\W*(?:among|of|from) (?:the|these|those)\b[^,;]{0,30}\b(?:options|choices|answers), ", re.IGNORECASE
)
_IDENTIFIES = re.compile(
    r"\A\W*(?:So |Thus |Hence )?(?:the|its|his|her|it|this|that|he|she)\b(?! other)[^,;]{0,60}? (?:is|was) "
    r"(?!not\b|also\b)(?P<said>[^,;]{1,60})\Z",
    re.IGNORECASE,
)
"""A sentence that ends with what its subject is: "The author is Immanuel Kant"."""
FIGURE = re.compile(r"^[^:\n]{1,40}:[ *]{0,4}[-−]?[$€£]?\d|=")
_DRAWS = re.compile(r"(?:therefore|thus|hence|so|consequently|accordingly)\b", re.IGNORECASE)
_NEAR, _MOST_SAID = 300, 2000
"""Characters before and after a conclusion that are looked at, so that time stays linear in the text."""


def is_comment(said: str, before: Sequence[str], kind: Kind) -> bool:
    """Whether a line or sentence is about the answer before it."""
    if isinstance(kind, NumberKind) and is_remark(said) and (not kind.names(said) or any(map(kind.names, before))):
        return True
    return _REMARK.fullmatch(said) is not None and kind.whole(said) is None


def at_the_end(kept: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """Answers in sentences of the last line."""
    if not isinstance(kind, NumberKind):
        concluded = _concluded(kept[-1], kind)
        yield concluded and concluded[0], layers.BY_CONCLUSION
        if concluded is not None and concluded[1] and not isinstance(kind, TextKind):
            # What follows "so B." is about B, or about others.
            return
    bold = only_bold(kept[-1], kind) or _numbered_in_bold(kept[-1], kind)
    if bold is not None and not _in_bold_list(kept, bold, kind):
        yield bold, layers.BY_BOLD
        if isinstance(kind, LabelKind | NumberKind):
            return
    sentences = _sentences_of(kept[-1], kind)
    if not sentences:
        return
    if not isinstance(kind, TextKind):
        yield from _set_off(sentences, kind)
    if isinstance(kind, NumberKind):
        if not _lists_numbers(kept):
            yield _stated(kept, sentences, kind), layers.BY_LAST_SENTENCE
    elif ENDED.search(kept[-1]) or len(sentences) == 1:
        yield from _in_sentence(kept, sentences, kind)


def _lists_numbers(kept: Sequence[str]) -> bool:
    """Whether a reply ends with a list or table of numbers, of which the last is no result."""
    entries = [_ENTRY.match(line) for line in kept[-2:]]
    return len(entries) == 2 and all(entries) and SUMMED.search(kept[-1]) is None


def only_bold(text: str, kind: Kind, *, phrases: bool = False) -> Found | None:
    """The only answer that a text has in bold; with `phrases` also one that begins what is in bold, as in "**passive**
    voice" and "**passive voice**"."""
    bold = {
        found.answer: found
        for match in _BOLD.finditer(text)
        if (found := _in_bold(match["said"], kind, phrases=phrases)) is not None
    }
    return next(iter(bold.values())) if len(bold) == 1 else None


def _numbered_in_bold(line: str, kind: Kind) -> Found | None:
    """The number of a phrase in bold with which a sentence ends, as "on **day 16**."."""
    if not isinstance(kind, NumberKind) or (phrase := _ENDS_IN_BOLD.search(line)) is None:
        return None
    numbers = kind.numbers(phrase["said"])
    return Found(numbers[0], len(line)) if len(numbers) == 1 and numbers[0] else None


def _in_bold_list(kept: Sequence[str], bold: Found, kind: Kind) -> bool:
    """Whether the line before has another option or label in bold."""
    other = only_bold(kept[-2], kind) if len(kept) > 1 and isinstance(kind, LetterKind | LabelKind) else None
    return other is not None and other.answer != bold.answer


def _sentences_of(line: str, kind: Kind) -> list[str]:
    """The sentences of a line up to the last one that is more than a remark or a tick."""
    sentences = [each for each in SENTENCES.split(line) if each.strip()]
    while len(sentences) > 1 and not isinstance(kind, TextKind) and is_comment(sentences[-1], sentences[:-1], kind):
        sentences.pop()
    if len(sentences) > 1 and not sentences[-1].strip(" ✓*"):
        sentences.pop()
    return sentences


def _set_off(sentences: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """An answer that is all of the last sentence, or all that follows its colon."""
    last = sentences[-1]
    if len(sentences) > 1:
        yield kind.whole(last), layers.BY_LAST_SENTENCE
        if (caption := CAPTION.match(last)) is not None:
            yield kind.whole(last[caption.end() :]), layers.BY_CAPTION
    if _NAMED.search(last):
        before, _, after = last.rpartition(":")
        # Of numbers, "Clarity: 9" may be one of several.
        if not isinstance(kind, NumberKind) or len(before.split()) > 2:
            found = kind.whole(after) or (kind.first(after) if isinstance(kind, LabelKind) else None)
            yield found, layers.BY_LAST_SENTENCE


def _in_sentence(kept: Sequence[str], sentences: Sequence[str], kind: Kind) -> Iterator[tuple[Found | None, str]]:
    """The answer that the last sentence says, or the only one that it names."""
    last = sentences[-1]
    named = kind.only(last)
    is_said = last.rpartition(" is ")
    if is_said[1] and not isinstance(kind, TextKind) and not (isinstance(kind, LabelKind) and named is None):
        said = kind.at(is_said[2], closed=False, ends=True)
        yield said if said is not None and said.answer else None, layers.BY_LAST_SENTENCE
    # A sentence that names one of several options may be about another than the right one.
    if (
        not isinstance(kind, LetterKind | LabelKind)
        or named is None
        or _settles(last, kind)
        or kind.named("\n".join([*kept[:-1], *sentences[:-1]])) <= {named.answer}
    ):
        yield named, layers.BY_LAST_SENTENCE


def _settles(sentence: str, kind: LetterKind | LabelKind) -> bool:
    """Whether the clause of a sentence that names an answer chooses it."""
    if isinstance(kind, LetterKind) and _AMONG.match(sentence) and len(kind.named(sentence)) == 1:
        return True
    if isinstance(kind, LetterKind) and (said := _IDENTIFIES.search(sentence)) is not None:
        return len(kind.mentioned(said["said"])) == 1
    clause = main_clause(sentence, kind.named)
    return CHOSEN.search(clause) is not None or (isinstance(kind, LabelKind) and kind.states(clause))


def _stated(kept: Sequence[str], sentences: list[str], kind: NumberKind) -> Found | None:
    """The number of the last sentence that is not about the answer."""
    every = [each for line in kept[:-1] for each in SENTENCES.split(line) if each.strip()] + sentences
    while len(every) > 1 and is_remark(every[-1]):
        every.pop()
    if kind.rates:
        if kind.names(every[-1]):
            return rated(every, kind) if not _one_of_several(every[-1], kept) else None
        # What follows a rating gives its reasons.
        return rated(every, kind) if ENDED.search(kept[-1]) and not taken_back("\n".join(kept)) else None
    found = stated(every, kind)
    if found is None or not _one_of_several(every[-1], kept):
        return found
    return found if ENDED.search(kept[-1]) and repeats_result(every, found.answer, kind) else None


def _one_of_several(sentence: str, kept: Sequence[str]) -> bool:
    """Whether a caption names one number among others, as "Clarity: 9" does, and not what they come to."""
    caption = CAPTION.match(sentence)
    if caption is None:
        return False
    others = [other[0] for line in kept[:-1] if FIGURE.search(line) and (other := CAPTION.match(line)) is not None]
    name = caption[0].split()[-1]
    return bool(others) and (SUMMED.search(caption[0]) is None or any(other.split()[-1] == name for other in others))


def _in_bold(said: str, kind: Kind, *, phrases: bool = False) -> Found | None:
    found = kind.whole(said)
    if found is None and phrases and isinstance(kind, LetterKind | LabelKind) and len(said.split()) < 5:
        found = kind.at(said.partition(": ")[2] or said, closed=True, ends=False)
    if found is None and isinstance(kind, NumberKind):
        found = kind.at(said, closed=True, ends=True)
    return found if found is not None and found.answer else None


def _concluded(line: str, kind: Kind) -> tuple[Found, bool] | None:
    """The last conclusion of a line that is an answer, and whether more sentences follow one that says so."""
    for match in reversed(list(CONCLUSION.finditer(line))):
        if _IF.search(SENTENCES.split(line[max(0, match.start() - _NEAR) : match.start()])[-1]):
            continue
        said = line[match.end() : match.end() + _MOST_SAID]
        sentence = SENTENCES.split(said, maxsplit=1)[0]
        found = kind.at(said, closed=False, ends=True)
        if found is None and said.strip() == sentence.strip():
            found = kind.only(sentence)
        if found is None and " is " in sentence:
            found = kind.at(sentence.rpartition(" is ")[2], closed=False, ends=True)
        if found is None and isinstance(kind, LabelKind):
            found = kind.whole(said)
        if found is not None:
            draws = _DRAWS.match(match[0]) is not None and found.answer != ""
            return found, draws and said[len(sentence) :].strip() != "" and not taken_back(said)
    return None
