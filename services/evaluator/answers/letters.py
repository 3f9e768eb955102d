"""Reads the letter of an option out of a response, by the rules of `scoring` and three of its own.

1. A letter before a word is that option, but "A" and "I" are words themselves: there only a reason may follow
   ("Answer: A because …") or the option's own text, else the line is read as text.
2. A second letter after "or", "and", a comma or a slash makes the answer ambiguous; other text after the letter does
   not ("Answer: B. A lesion of the nerve").
3. The text of one option, whole and in place of its letter, counts as that option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from services.evaluator.answers import scoring
from services.evaluator.answers.scoring import Extraction

BY_OPTION = "last “answer: …” is the text of an option"
WHOLE_IS_OPTION = "whole response is the text of an option"

_ALSO_A_WORD = frozenset("AI")
_REASON = re.compile(r"[\s\u00a0]+(?:because|since|as|for|is|due)\b", re.IGNORECASE)
_WORD_FOLLOWS = re.compile(r"[\s\u00a0]+\w")
_TRIMMED = " \t\r\n\u00a0*_`\"'“”‘’«»<>()[]{}$.,;:!?…"


class LetterExtractor:
    """Finds one of `letters`, which are capital letters from "A" on."""

    def __init__(self, letters: Sequence[str], captions: Sequence[str] = ()) -> None:
        one_of = f"[{letters[0]}-{letters[-1]}]"
        named = r"(?:(?:option|choice|letter)[\s\u00a0(*_`\"']{1,6})?"
        self._anchored = scoring.anchored(rf"{named}(?P<answer>{one_of})(?![A-Za-z0-9])(?!['’][a-z])")
        self._lines = scoring.anchored(r"(?P<answer>[^\n]{1,2000})")
        self._other = re.compile(
            rf"[\s)\]>*_`\"'.]{{0,6}}(?:[/,;&+]|\bor\b|\band\b)[\s(*_`\"']{{0,6}}(?:(?:option|choice)\s)?"
            rf"(?P<other>{one_of})(?![A-Za-z0-9])",
            re.IGNORECASE | re.ASCII,
        )
        self._whole = re.compile(
            rf"[\s(*_`\"']{{0,6}}(?P<answer>{one_of})(?:[\s)\]*_`\"'.:]{{1,6}}(?P<text>.*))?", re.DOTALL
        )
        self._parts = scoring.parts_pattern(captions)

    def __call__(self, text: str, options: Mapping[str, str]) -> Extraction:
        """`options` are the texts by letter."""
        parts = self._parts.split(scoring.strip_reasoning(text))
        if (found := scoring.find_last(self._anchored, parts)) is not None:
            part, match = found
            letter = match["answer"].upper()
            rest = scoring.line_after(part, match.end())
            is_letter = letter not in _ALSO_A_WORD or not _WORD_FOLLOWS.match(rest) or _REASON.match(rest)
            if is_letter or _bare(rest) == _bare(options.get(letter, "")):
                return self._unless_ambiguous(letter, rest)
        if (found := scoring.find_last(self._lines, parts)) is not None and (
            letter := _option(found[1]["answer"], options)
        ):
            return Extraction(letter, BY_OPTION)
        if any(scoring.ANY_MARKER.search(part) for part in parts):
            return Extraction("", scoring.NO_LABEL)
        return self._read_whole(parts[0], options)

    def _unless_ambiguous(self, letter: str, rest: str) -> Extraction:
        other = self._other.match(rest)
        if other is not None and other["other"].upper() != letter:
            return Extraction("", scoring.AMBIGUOUS)
        return Extraction(letter, scoring.BY_MARKER)

    def _read_whole(self, text: str, options: Mapping[str, str]) -> Extraction:
        if len(text) > 4000:
            return Extraction("", scoring.NO_MARKER)
        if letter := _option(text, options):
            return Extraction(letter, WHOLE_IS_OPTION)
        match = self._whole.fullmatch(text.strip())
        if match is None:
            return Extraction("", scoring.NO_MARKER)
        said = _bare(match["text"] or "")
        letter = match["answer"]
        if said and said != _bare(options.get(letter, "")):
            return Extraction("", scoring.NO_MARKER)
        return Extraction(letter, scoring.WHOLE_RESPONSE)


def _option(text: str, options: Mapping[str, str]) -> str:
    """The letter of the only option with this text, or an empty string."""
    said = _bare(text)
    same = [letter for letter, option in options.items() if _bare(option) == said] if said else []
    return same[0] if len(same) == 1 else ""


def _bare(text: str) -> str:
    return " ".join(text.strip(_TRIMMED).split()).casefold()
