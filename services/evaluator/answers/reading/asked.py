"""What a prompt says about its answer: the texts of the options, and the unit of a number. Pure.

A reply is read with the question in view, as a person reads it: "8,849 metres (29,032 feet)" answers in which unit the
question asks, and "carbon dioxide" is the option that the prompt calls B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from services.evaluator.answers.reading.numerals.units import Unit, unit_named
from services.evaluator.answers.reading.prose.options import stem

_MOST = 16_384
"""Characters at the end of a prompt that are looked at."""
_OPTION = re.compile(
    r"^[ \t>*-]{0,6}[(\[]?(?P<letter>[A-Z])(?:[).\]]|[ \t]?:)[)*]{0,2}[ \t]+(?P<text>\S[^\n]*)$", re.MULTILINE
)
_FEWEST = 2
_QUESTION = 600
"""Characters at the end of a question that name its unit."""
_FORM = re.compile(
    r"\n[^\n]*(?:Answer: <|Answer with|End your|Reply with|####|\\boxed)[^\n]*(?:\n[^\n]*<[^\n]*)*\s*\Z", re.IGNORECASE
)
_PER = re.compile(r"[ ](?:per|an?(?=[ ](?:second|minute|hour|day|week|month|year)))\b")
_IN_UNIT = re.compile(
    r"\b(?:in|to|as an?|into)[ ](?:whole |full |square |total |units of )?(?:the )?"
    r"(?P<in>degrees? (?:celsius|fahrenheit)|°[CF]|km/h|m/s|%|[a-z]{1,12})\b"
    r"(?![ ](?:a|an|the|of|which|these|this|total|all)\b)"
    r"|\bhow many (?:more |fewer |whole |full |total |additional |extra )?(?P<many>[a-z]{2,12})\b"
    r"|\b(?P<share>percent(?:age)?)\b|(?P<sign>%)(?=[ ]|\?|$)"
    r"|\bdecimal\b",
    re.IGNORECASE,
)
_TOO_SHORT = frozenset(["in", "s", "h", "t", "l", "g", "m", "min", "sec", "second", "t", "ton", "a"])
_COUNTS = re.compile(r"\bhow many\b", re.IGNORECASE)
_HOW = r"how (?:many|much|long|far|old|tall|wide|high|big|heavy|fast)"
_TWO = re.compile(
    rf"\b(?:{_HOW}|what|which)\b[^.?\n]{{1,120}}\band (?:{_HOW}|(?:what|which)(?! (?:if|remains|is left)\b))\b",
    re.IGNORECASE,
)
_THING = re.compile(
    r"\bhow many (?:more |fewer |whole |full |total |additional |extra |different |such )?(?P<thing>[a-z]{3,20})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question says of the number that answers it. `unit` is None where it names none. `counts`: it asks how
    many. `thing` is what is counted, in the singular; empty if that is not clear. `several`: it asks for two. `text` is
    the question, whose own numbers are given."""

    unit: Unit | None = None
    counts: bool = False
    thing: str = ""
    several: bool = False
    text: str = ""


NOTHING = Asked()


def number_asked(prompt: str) -> Asked:
    """What the last question of a prompt says of its number."""
    question = _FORM.sub("", prompt[-_MOST:])[-_QUESTION:]
    units = []
    for match in _IN_UNIT.finditer(question):
        name = (match["in"] or match["many"] or match["share"] or match["sign"] or "decimal").lower()
        if name == "decimal":
            units.append(Unit("share", Fraction(1)))
            continue
        unit = None if name in _TOO_SHORT or _PER.match(question, match.end()) else unit_named(name)
        if unit is not None:
            units.append(unit)
    things = list(_THING.finditer(question))
    thing = stem(things[-1]["thing"].lower()) if len(things) == 1 else ""
    return Asked(
        units[-1] if len(set(units)) == 1 else None,
        _COUNTS.search(question) is not None,
        thing,
        _TWO.search(question) is not None,
        question,
    )


def options_in(prompt: str) -> Mapping[str, str]:
    """The texts of the last options that a prompt lists by letters from A on, a line each; empty if it lists none."""
    last: dict[str, str] = {}
    run: dict[str, str] = {}
    for match in _OPTION.finditer(prompt[-_MOST:]):
        letter = match["letter"]
        if letter == "A":
            run = {}
        elif ord(letter) != ord("A") + len(run):
            run = {}
            continue
        run[letter] = match["text"].strip()
        if len(run) >= _FEWEST:
            last = run
    return last
