"""The patterns of an option's letter, for so many options. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from services.evaluator.answers.reading.places import DECORATION, FLAGS

_NAMED = (
    r"(?P<named>(?:the[ ])?(?:(?:correct|right|best)[ ])?"
    r"(?:option|choice|letter|answer|statement)[\s\u00a0(*_`\"':>]{1,6}|[(\[])?"
)
_BEFORE = r"(?:(?i:option|choice|letter|answer)[\s(*_`\"'\[]{1,4})?"
_HEDGE = r"(?:(?:maybe|possibly|perhaps|also|either|even|else|option|choice|answer|letter|both)\W{1,3}){0,2}"
_IS = r"(?:is|seems|looks|appears|must[ ]be|has[ ]to[ ]be)"
_SURELY = r"(?:(?:to[ ]be|clearly|therefore|thus|definitely|most[ ]likely|indeed|by[ ]far)[ ]){0,2}"

_PREDICATE = (
    r"(?:is|best|fits?|works?|makes|matches|seems|describes|follows|remains|wins|has|comes|would|must|stands|and|or)"
)


@dataclass(frozen=True, slots=True)
class Patterns:
    """`alone`: "only B fits". `at`: what an answer begins with. `bare`: a letter in a sentence. `other`: a second
    letter, joined to the first. `whole`: nothing but the letter, its mark and a text. `first`: a letter with which a
    reply begins. `right`: "B is correct". `named`: "option B", "(B)". `small`: the same with a small letter."""

    alone: re.Pattern[str]
    bare: re.Pattern[str]
    at: re.Pattern[str]
    other: re.Pattern[str]
    whole: re.Pattern[str]
    first: re.Pattern[str]
    right: re.Pattern[str]
    named: re.Pattern[str]
    small: re.Pattern[str]


@cache
def patterns(count: int) -> Patterns:
    """Of the first `count` capital letters."""
    last = chr(ord("A") + count - 1)
    letter, any_case = f"[A-{last}]", f"[A-{last}a-{last.lower()}]"
    return Patterns(
        alone=re.compile(
            rf"\b[Oo]nly[ ](?:(?:option|choice|statement|sentence|answer)[ ])?\(?(?P<answer>{letter})\)?[ ]"
            r"(?:is|are|has|can|[a-z]{2,12}s)\b"
        ),
        bare=re.compile(
            rf"(?<![\w'’.&/-])(?<!\d[ ])(?<!itamin )(?<!epatitis )(?<!ype )(?<!oint )(?<!lan )(?<!roup )"
            rf"(?!A[ ](?!{_PREDICATE}\b)[a-z]|I\b)(?P<answer>{letter})(?![\w'’/&-])(?!\.[A-Za-z])(?!\(\d)"
        ),
        at=re.compile(rf"{DECORATION}{_NAMED}(?P<answer>{letter})(?![A-Za-z0-9])(?!['’][a-z])", FLAGS),
        other=re.compile(
            r"[\s)\]>*_`\"'.}$]{0,6}[(,]?[ ]?(?:[/,;&+]|\bor\b|\band\b|\bAND\b|\bOR\b)[\s(*_`\"'\[]{0,6}"
            rf"{_HEDGE}[(\[*]{{0,3}}(?P<other>{letter}|(?<=[(/]){any_case})(?![A-Za-z0-9]|['’][a-z]|[ ][a-z])",
            re.ASCII,
        ),
        whole=re.compile(
            rf"[\s(*_`\"'\[{{$#<]{{0,8}}{_BEFORE}(?P<answer>{any_case})(?P<mark>[\s]?[)\].:,!*_`\"'}}$>–—-])?"
            r"[\s)\]*_`\"'.:}$>–—-]{0,8}(?:(?<=[^A-Za-z0-9])(?P<text>\S.*))?",
            re.DOTALL | re.IGNORECASE,
        ),
        first=re.compile(
            rf"[\s(*_`\"'\[#]{{0,6}}{_BEFORE}(?P<answer>{letter})"
            r"(?:(?P<mark>[)\].:*_`\"']{1,6})(?=\s|$|\*)|[ ]?[,–—-][ ]?(?=\w)|[ ]{0,3}\n|[ ](?=(?:because|since)\b))",
        ),
        right=re.compile(
            r"(?:\b(?:option|choice|answer|letter|statement)[ ]|(?<![A-Za-z0-9]))\(?[*_`\"']{0,3}"
            rf"(?P<answer>{letter})[*_`\"')]{{0,4}}[ ]{_IS}[ ]{_SURELY}"
            r"(?:the[ ])?(?:(?:correct|best|better)(?:[ ][a-z]+)?|"
            r"(?:right|most[ ]\w+|true|accurate|[a-z]{3,15}(?=[ ]one\b))(?:[ ](?:answer|option|choice|one|"
            r"statement|letter))?|answer|one)\b"
            r"(?=[ ]*(?:[.,;:!)*\n]|$|because|since|as|and|here|for|among|of|to|in|that|which|we|I|supported)\b|"
            r"[.,;:!)*\n]|$)"
            rf"|\b(?:it['’]s|is)[ ](?:option|choice|letter|answer)[ ]\(?[*_`\"']{{0,3}}(?P<after>{letter})\b"
            rf"|(?<![A-Za-z0-9])(?P<so>{letter})[ ]it[ ]is\b",
        ),
        small=re.compile(
            rf"(?:(?<![\w\])])\([a-{last.lower()}](?=\))|\b(?:[Oo]ption|[Cc]hoice)[ ][*_`\"']{{0,2}}(?!a[ ][a-z])"
            rf"[a-{last.lower()}](?=[*_`\"')]{{0,2}}(?:[.,;:]|[ ](?:is|was)\b|\s*$)))",
            re.MULTILINE,
        ),
        named=re.compile(
            rf"(?:\b(?:option|choice|letter|Option|Choice|Letter)[ ]\(?|\(|\*\*)(?P<answer>{letter})(?:\*\*|[).:]|\b)"
        ),
    )
