"""What every kind of answer has in common: how it is read off the beginning of a text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.places import FLAGS

WRAPPING = " \t\r\n\f\v\0\u00a0*_`\"'“”‘’«»<>()[]{}$#✓"
STRIPPED = WRAPPING + ".,;:!?…-–—"

REASON = re.compile(
    r",? (?:because|since|although|even though|though|despite)\b|, as\b"
    r"| as (?=(?:it|they|there|he|she|we|you|I|this|that|these|those|both|the|its|his|her|their|only|no|none|all)\b)",
    re.IGNORECASE,
)
"""Where a sentence goes on to its grounds."""
_OPENING = re.compile(
    r"\A\W{0,4}(?:if|when|since|because|as|after|before|with|without|given|by|once|from|between|of|out of|in|on|at|for|"
    r"during|while|whereas|although|though|even though|despite|considering|based on|among|unlike)\b[^,\n]{1,160}, "
    r"(?!(?:though|although|since|because|as|which|and|but|while|whereas|even|not|rather)\b)",
    re.IGNORECASE,
)
"""The clause with which a sentence begins before its own."""
_OVER = re.compile(
    r",? (?:rather than|instead of|as opposed to|and not|not|unlike|than|whereas|while|over|compared|versus|"
    r"followed by|ahead of)\b| by [a-z]+ing\b|, (?:against|with|plus|[a-z]+ing)\b|: ",
    re.IGNORECASE,
)
"""Where a sentence goes on to what it compares with."""
_NEGATED = re.compile(
    r"[ ]?[:–—-][ ]*(?:no|wrong|incorrect|false)\b|"
    r"[\s)\]}*_`\"'”’]{0,6}\?|[\s)\]}*_`\"'”’.,:$-]{0,8}(?:(?:is|was|would[ ]be|seems|looks|are)[ ])?(?:also[ ]|"
    r"clearly[ ]|simply[ ]|definitely[ ]|probably[ ])?"
    r"(?:incorrect|wrong|not[ ](?:correct|right|true|supported|possible|valid|quite)|(?:is|was|are)(?:[ ]not|n['’]t)|"
    r"can(?:not|['’]t)[ ]be|invalid[ ]because|ruled[ ]out|eliminated|excluded|out\b[ ]of[ ]the[ ]question)\b",
    FLAGS,
)
_TAKEN_BACK = re.compile(
    r"(?<![A-Za-z])(?:wait\b|actually,?[ ](?:no|it|that|the|I)\b|no,[ ](?:wait|that|it|the|actually|sorry)|hmm|"
    r"scratch[ ]that|correction[ ]?[:;,–—-]|"
    r"on[ ](?:second[ ]thought|reflection|re-?reading)|let[ ]me[ ](?:re|correct|double|fix|check)|I[ ](?:made|"
    r"was[ ]wrong|misread|take[ ]that|mean\b|meant)|"
    r"\.{2,}[ ]{0,2}no\b|my[ ]mistake|oops|sorry,|apologies|but[ ]no\b|strike[ ]that|I[ ]revise\b|not[ ]quite\b|"
    r"hold[ ]on\b|that(?:(?:['’]s|[ ]is|[ ]was)[ ](?:not[ ](?:right|correct)|wrong)|[ ]isn['’]t[ ](?:right|correct))\b|"
    r"(?:need|have|let[ ]me)[ ](?:to[ ])?reconsider\b)",
    FLAGS,
)
_OTHERWISE = re.compile(
    r"\?|\b(?:but|however|instead|different|another|other|except|let|next|first|then)\b", re.IGNORECASE
)
_ALL_OTHERS = re.compile(
    r"\b(?:the|all|these|those|any of the) (?:other|remaining)(?: (?:two|three|four|five|six|nine|options?|choices?|"
    r"answers?|labels?|categories|emotions|ones|statements?))?\b|\bthe others\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|wrong|incorrect|false|cannot|without|eliminate\w*|exclude\w*|"
    r"rul(?:e|es|ed|ing) out)\b|n['’]t\b",
    re.IGNORECASE,
)


def goes_on(sentence: str) -> bool:
    """Whether a sentence does more than explain the one before it."""
    return _OTHERWISE.search(_ALL_OTHERS.sub("", sentence)) is not None


def denies(sentence: str) -> bool:
    """Whether a sentence says what is not so."""
    return _DENIES.search(sentence) is not None


def without_contrast(sentence: str) -> str:
    """A sentence without what it compares with: ", whereas the other is vague"."""
    return _CONTRAST.split(sentence, maxsplit=1)[0]


def settles(sentence: str) -> bool:
    """Whether a sentence has a word of a decision."""
    return _SETTLES.search(sentence) is not None


class Kind(Protocol):
    """How answers of one kind look."""

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        """The answer that a text begins with, or None. `closed`: the text is all that is said. `ends`: nothing of
        weight may follow in the sentence."""
        ...

    def whole(self, text: str) -> Found | None:
        """The answer that a text is, with marks around it at most, or None."""
        ...

    def first(self, text: str) -> Found | None:
        """The answer that a reply begins with before it explains itself, or None."""
        ...

    def claimed(self, sentences: Sequence[str]) -> Found | None:
        """The answer of the first sentence that names one, where those after it explain it, or None."""
        ...

    def only(self, sentence: str) -> Found | None:
        """The answer that a sentence names and no other, or None."""
        ...


_CONCESSION = re.compile(
    r"\A\W{0,4}(?:while|whereas|although|though|even though|despite|unlike)\b[^,\n]{1,160}, ", re.IGNORECASE
)
_BUT = re.compile(r"(?:,? but |; )(?!.*(?:,? but |; ))")
_SET_ASIDE = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|rather than|may|might|could|can|or|seems?|looks?|appears?|used to|almost|"
    r"first|some|hint|touch|traces?|while|although|though|even if|both|either)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What is said of an answer that another one is set against."""
_SETTLES = re.compile(
    r"\b(?:so|therefore|thus|hence|answer|correct|right|best|better|more|most|[a-z]{3,}(?:est|most)|only|clearly|overall|really|itself|"
    r"should|must|actually|it['’]s|it is|must be|dominant|main|prevails?|wins|outweighs?|I)\b",
    re.IGNORECASE,
)

_STATES = re.compile(
    r"(?:\b(?:is|are|was|were|be|as|choose|pick|select|label|therefore|thus|so|hence)\b|['’]s\b|:)", re.IGNORECASE
)
"""After these a clause states what it is about."""


_CONTRAST = re.compile(
    r",? (?:whereas|unlike|rather than|instead of|as opposed to|(?:as )?compared (?:to|with)|in contrast to)\b|"
    r", while\b",
    re.IGNORECASE,
)


def main_clause(sentence: str, names: Callable[[str], Collection[str]]) -> str:
    """A sentence without the clauses about its grounds, and about what it compares with; one that alone `names` an
    answer stays."""
    if (conceded := _CONCESSION.match(sentence)) is not None:
        sentence = sentence[conceded.end() :]
    sentence = without_contrast(sentence)
    if (but := _BUT.search(sentence)) is not None:
        sentence = _one_side(sentence[: but.start()], but[0], sentence[but.end() :], names) or sentence
    if names(clause := _OPENING.sub("", sentence, count=1)):
        sentence = clause
    for goes_on in (REASON, _OVER):
        end = next((place.start() for place in goes_on.finditer(sentence) if names(sentence[: place.start()])), None)
        sentence = sentence[:end]
    return sentence


def _one_side(before: str, joined: str, after: str, names: Callable[[str], Collection[str]]) -> str:
    """The clause before or after "but" or a semicolon that claims an answer; empty where both may."""
    if not (claimed := names(after)):
        return ""
    conceded = set(names(before))
    if conceded & set(claimed) and len(conceded) > 1 and not _SETTLES.search(after):
        # "Both A and B fly, but B is a bird" settles nothing.
        return ""
    if len(conceded) != 1 or set(claimed) == conceded or _SET_ASIDE.search(before):
        return after
    if joined == "; ":
        stated = _STATES.split(before)[1:]
        return before if stated and names(stated[-1]) else ""
    return after


def negated(rest: str) -> bool:
    """Whether what follows an answer denies it: "B is incorrect"."""
    return _NEGATED.match(rest) is not None


def taken_back(rest: str) -> bool:
    """Whether what follows an answer takes it back: "B. Wait, no"."""
    return _TAKEN_BACK.search(rest[:2000]) is not None
