"""Whole numbers in English words: "eighteen", "twenty-five", "one hundred and two". Pure."""

from __future__ import annotations

import re
from fractions import Fraction

from services.evaluator.answers.reading.numerals.forms import written

_UNITS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
NAMES = "|".join(sorted((*_UNITS, *_TENS, *_SCALES, "hundred"), key=len, reverse=True))
_WRITTEN = re.compile(
    rf"(?:(?P<minus>minus|negative)\s{{1,3}})?(?P<words>(?:{NAMES})(?:(?:\s{{1,2}}|-|"
    rf"\s{{1,2}}and\s{{1,2}})(?:{NAMES})\b){{0,12}})\b",
    re.IGNORECASE,
)
_PARTS_OF = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
_PARTS = re.compile(
    rf"(?P<count>{'|'.join([*_UNITS][1:10])})[\s-](?P<of>{'|'.join(_PARTS_OF)})\b(?![\s-](?:of|and|or|to|a|an|the)\b)",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(r"[ ]and[ ]a[ ]half\b", re.IGNORECASE)
_GOES_ON = re.compile(r"[\s-]*(?:or|to|and(?! a half)|point|half|halves|thirds?|quarters?|fifths?|of)\b", re.IGNORECASE)


def in_words(text: str) -> tuple[str, int] | None:
    """The number that a text begins with, as digits, and where it ends."""
    if (part := _PARTS.match(text)) is not None:
        return written(Fraction(_UNITS[part["count"].lower()], _PARTS_OF[part["of"].lower()])), part.end()
    match = _WRITTEN.match(text)
    if match is None or _GOES_ON.match(text, match.end()):
        return None
    words = [word for word in re.split(r"[\s-]+", match["words"].lower()) if word != "and"]
    total = group = 0
    least = 10**12
    for word in words:
        if word in _SCALES:
            if _SCALES[word] >= least or not group:
                return None
            least = _SCALES[word]
            total, group = total + group * least, 0
        elif word == "hundred":
            if not 0 < group < 10:
                return None
            group *= 100
        elif word in _TENS:
            if group % 100:
                return None
            group += _TENS[word]
        else:
            if group % 10 or (group % 100 and _UNITS[word] > 9) or (group and not _UNITS[word]):
                return None
            group += _UNITS[word]
    value = Fraction(total + group)
    end = match.end()
    if (half := _AND_A_HALF.match(text, end)) is not None:
        value, end = value + Fraction(1, 2), half.end()
    return written(-value if match["minus"] else value), end
