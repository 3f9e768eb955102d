"""What every kind of answer has in common: how it is read off the beginning of a text. Pure."""

from __future__ import annotations

import re
from typing import Protocol

from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.places import FLAGS

WRAPPING = " \t\r\n\f\v\0\u00a0*_`\"'“”‘’«»<>()[]{}$#✓"
STRIPPED = WRAPPING + ".,;:!?…-–—"

REASON = re.compile(r",? (?:as|because|since|although|even though|though|despite)\b", re.IGNORECASE)
"""Where a sentence goes on to its grounds."""
_NEGATED = re.compile(
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
    r"\.{2,}[ ]{0,2}no\b|my[ ]mistake|oops|sorry,|apologies|but[ ]no\b|strike[ ]that|I[ ]revise\b|not[ ]quite\b)",
    FLAGS,
)


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

    def only(self, sentence: str) -> Found | None:
        """The answer that a sentence names and no other, or None."""
        ...


def negated(rest: str) -> bool:
    """Whether what follows an answer denies it: "B is incorrect"."""
    return _NEGATED.match(rest) is not None


def taken_back(rest: str) -> bool:
    """Whether what follows an answer takes it back: "B. Wait, no"."""
    return _TAKEN_BACK.search(rest[:2000]) is not None
