"""What a field of a job may hold, in every interface: its values, its names and its words. Pure.

A field is declared by the annotation of its member in a `TypedDict`, as in `services.words.sampling`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from services.words import refusals

DOLLARS = "US dollars"
EXPIRY_S = (3600, 30 * 24 * 3600)
"""Seconds from an upload until its dataset is deleted, least and most: those of OpenAI's files."""
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_SAFE = 1_000_000_000
"""An upper end from here on is only a safeguard."""


@dataclass(frozen=True)
class Field:
    """`about` says in sentences what the field is; the first one is for the command line, too. `label` names the field
    in forms. `name` comes from the member, and is the field's name in Python and in the protos."""

    about: str
    label: str
    _: KW_ONLY
    name: str = ""
    rest: str = ""
    """The name in REST and in forms; the member's unless another one is given."""
    flag: str = ""
    """The name on the command line, without its hyphens; the member's unless another one is given."""
    place: str = ""
    """The part of `touchstone.v1.JobSpec` that holds it: sampling, reuse, suite, dataset, or work for the last two.
    Empty for the specification itself."""
    scorers: tuple[str, ...] = ()
    """Of an option of scoring: the scorers that take it. Empty for all."""

    @property
    def flags(self) -> tuple[str, ...]:
        """The names on the command line."""
        names = (self.flag,) if self.flag else dict.fromkeys((self.name, self.rest))
        return tuple(f"--{name.replace('_', '-')}" for name in names)

    @property
    def help(self) -> str:
        """The help on the command line."""
        first = self.about.partition(". ")[0].removesuffix(".").replace("`", "")
        return f"{first[0].lower()}{first[1:]}"

    def problem(self, value: Any, name: str) -> str:
        """What is wrong with the value of a proto's field, as a sentence about `name`; empty when nothing is."""
        return ""


@dataclass(frozen=True)
class Number(Field):
    """From `low` to `high`, both included. The member's type says whether it is `whole`."""

    low: float
    high: float
    _: KW_ONLY
    above: bool = False
    """`low` itself is too small."""
    whole: bool = False
    unit: str = ""

    @property
    def range(self) -> str:
        """ "0 to 2"; empty if the upper end is only a safeguard."""
        return "" if self.high >= _SAFE else f"{refusals.bound(self.low)} to {refusals.bound(self.high)}"

    @property
    def help(self) -> str:
        """With its range."""
        return f"{super().help} ({self.range})" if self.range else super().help

    @property
    def hint(self) -> str:
        """What an empty field of a form shows."""
        return self.unit or self.range.replace(" to ", "–") or "optional"

    def problem(self, value: Any, name: str) -> str:
        """As `number_problem`."""
        return number_problem(value, name, self.low, self.high, whole=self.whole, above=self.above)


@dataclass(frozen=True)
class Choice(Field):
    """One of a few words, each with the value that it has in the protos."""

    words: Mapping[str, Any]
    _: KW_ONLY
    default: str = ""

    @property
    def help(self) -> str:
        """With its default."""
        return f"{super().help} (default: {self.default})" if self.default else super().help

    def problem(self, value: Any, name: str) -> str:
        return "" if not value or value in self.words.values() else refusals.not_valid(value, name, self.words)


@dataclass(frozen=True)
class OpenChoice(Choice):
    """One of a few words, or a name that a plug-in offers. In the protos, each is a text."""

    pattern = r"[a-z][a-z0-9_-]{0,39}"

    def problem(self, value: Any, name: str) -> str:
        """Of its form: whether there is such a plug-in, only a running evaluator tells."""
        return "" if not value or re.fullmatch(self.pattern, value) else refusals.not_valid(value, name, self.words)


@dataclass(frozen=True)
class Switch(Field):
    """On or off, which is the default."""


@dataclass(frozen=True)
class Text(Field):
    """Up to `longest` characters."""

    longest: int

    def problem(self, value: Any, name: str) -> str:
        return refusals.too_large(name, len(value), self.longest, "characters") if len(value) > self.longest else ""


@dataclass(frozen=True)
class Pattern(Field):
    """A regular expression, as `services.patterns` takes it."""


@dataclass(frozen=True)
class TextList(Field):
    """`least` to `most` texts of up to `longest` characters, or none at all."""

    most: int
    longest: int
    _: KW_ONLY
    least: int = 1

    def problem(self, value: Any, name: str) -> str:
        """Spaces around a text do not count."""
        fits = self.least <= len(value) <= self.most and all(0 < len(text.strip()) <= self.longest for text in value)
        return "" if fits or not value else refusals.entries(name, self.least, self.most, self.longest)


@dataclass(frozen=True)
class TextTable(Field):
    """Texts by name, at most `most` of them. Names have up to `longest_name` characters, and texts `longest_text`."""

    most: int
    longest_name: int
    longest_text: int


F = TypeVar("F", bound=Field)


def declared(options: type, kind: type[F]) -> dict[str, F]:
    """The fields of a kind that the members of a `TypedDict` declare, by name and in order."""
    found: dict[str, F] = {}
    for name, hint in get_type_hints(options, include_extras=True).items():
        if get_origin(hint) is Annotated and isinstance(field := hint.__metadata__[0], kind):
            whole = {"whole": float not in (hint.__origin__, *get_args(hint.__origin__))}
            more: dict[str, Any] = whole if isinstance(field, Number) else {}
            found[name] = replace(field, name=name, rest=field.rest or name, **more)
    return found


def decimal(text: str) -> float | None:
    """The number that a text writes; None for anything else. Python also takes underscores between digits, spaces
    around them, and the digits of other scripts."""
    if not text.isascii() or "_" in text or text != text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def number_problem(value: object, name: str, low: float, high: float, *, whole: bool, above: bool = False) -> str:
    """What is wrong with the value, as a sentence about `name`; empty when nothing is. A bool is not a number. `above`:
    `low` itself is too small."""
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return f"{name} must be a {'whole ' if whole else ''}number."
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name} must be a finite number."
    if above and not low < value <= high:
        return f"{name} must be above {refusals.bound(low)} and at most {refusals.bound(high)}."
    return "" if low <= value <= high else refusals.between(name, low, high)
