"""Reads a number or a text that stands for itself out of a response, by the rules of `scoring`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from services.evaluator.answers import scoring
from services.evaluator.answers.scoring import Extraction

# LaTeX writes 1{,}234 or 1\,234.
THOUSANDS = r"(?:,|\{,\}|\\,|[\u00a0\u2009\u202f])\d{3}"
_WHOLE = rf"(?:\d{{1,3}}(?:{THOUSANDS}){{1,8}}|\d{{1,24}})"
_NUMBER = rf"[-+−]?[$€£]?\s{{0,2}}(?:{_WHOLE}(?:\.\d{{1,24}})?|\.\d{{1,24}})"
# What goes on as a range, a calculation, a time or a mixed number is not one number: "9 * 2 = 18", "2 1/2".
_BLANKS = r"[ \t\u00a0\u2009\u202f]{0,3}"
_SIGN = r"(?:[-–—+−*×·/^=~]|\\times|\\cdot|or\b|and\b|to\b|x\b)"
_GOES_ON = rf"(?:{_BLANKS}{_SIGN}{_BLANKS}[-+−$]?\.?\d|:\d|[ \u00a0]\.?\d)"
_VALUE = re.compile(rf"(?P<value>{_NUMBER})(?!(?:[\d,.]|\{{,\}}|\\,)*\d|[eE][-+]?\d)(?P<more>{_GOES_ON})?")
_LATEX = re.compile(
    r"(?:\$|\\\(|\\\[)?\s{0,3}\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\{(?P<said>[^\n]{0,2000})\}\s{0,3}(?:\$|\\\)|\\\])?"
)
_PLACEHOLDER = re.compile(r"<(?:text|number|answer)>\.?", re.IGNORECASE)
_AROUND = " \t\r\f\v\u00a0*`_"
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "<": ">"}


class FinalNumberExtractor:
    """Finds the number after the last “answer: …”: "1,234.50", "$18", ".5", "18 apples". A comma parts thousands."""

    def __init__(self, captions: Sequence[str] = ()) -> None:
        self._anchored = scoring.anchored(rf"(?={_NUMBER})")
        self._parts = scoring.parts_pattern(captions)

    def __call__(self, text: str, *, cut: bool = False) -> Extraction:
        """`cut`: the token limit ended the text, so a number at its very end may lack digits and does not count."""
        parts = self._parts.split(scoring.strip_reasoning(text))
        if (found := scoring.find_last(self._anchored, parts)) is not None:
            part, match = found
            return _read(part, match.end(), scoring.BY_MARKER, cut and part is parts[-1])
        if any(scoring.ANY_MARKER.search(part) for part in parts):
            return Extraction("", scoring.NO_LABEL)
        # A full stop may end the number; before it, it is the decimal point.
        whole = parts[0].lstrip(" \n*`$").rstrip(" \n*`$.")
        if len(whole) <= 40 and _VALUE.fullmatch(whole):
            return _read(whole, 0, scoring.WHOLE_RESPONSE, cut)
        return Extraction("", scoring.NO_MARKER)


class TextExtractor:
    """Takes the rest of the line after the last “answer: …”, without the marks around it."""

    def __init__(self, captions: Sequence[str] = ()) -> None:
        self._anchored = scoring.anchored("", decorated=False)
        self._parts = scoring.parts_pattern(captions)

    def __call__(self, text: str, *, cut: bool = False) -> Extraction:
        """`cut`: the token limit ended the text, so a line at its very end may lack words and does not count."""
        parts = self._parts.split(scoring.strip_reasoning(text))
        if (found := scoring.find_last(self._anchored, parts)) is None:
            return Extraction("", scoring.NO_MARKER)
        part, match = found
        said = part[match.end() :].lstrip(_AROUND + "\n").partition("\n")
        if cut and part is parts[-1] and not said[1]:
            return Extraction("", scoring.NO_LABEL)
        answer = "" if _PLACEHOLDER.fullmatch(said[0].strip(_AROUND)) else _without_marks(said[0])
        return Extraction(answer, scoring.BY_MARKER) if answer else Extraction("", scoring.NO_LABEL)


def canonical_number(text: str) -> str:
    """A number without thousands separators, currency signs and needless digits, empty where it is none."""
    bare = re.sub(r"[\s,$€£{}\\]", "", text).replace("−", "-")
    try:
        value = Decimal(bare)
    except InvalidOperation:
        return ""
    return f"{value.normalize() + 0:f}" if value.is_finite() else ""


def _read(part: str, start: int, how: str, cut: bool) -> Extraction:
    match = _VALUE.match(part, start)
    if match is None or (cut and not part[match.end() :].strip()):
        return Extraction("", scoring.NO_LABEL)
    if match["more"]:
        return Extraction("", scoring.AMBIGUOUS)
    return Extraction(canonical_number(match["value"]), how)


def _without_marks(text: str) -> str:
    bare = text.strip(_AROUND)
    while (wrapped := _LATEX.fullmatch(bare.rstrip("."))) is not None:
        bare = wrapped["said"].strip(_AROUND)
    ended = bare.rstrip(".")
    if len(ended) > 1 and _QUOTES.get(ended[0]) == ended[-1]:
        bare = ended[1:-1]
    return bare.strip(_AROUND)
