"""The fields of a definition one by one, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from services.errors import InvalidFieldsError
from services.words import refusals
from services.words.fields import number_problem

NAME = re.compile(r"(?!\.+\Z)[A-Za-z0-9_.-]{1,64}")
"""Dots alone have a meaning in paths."""
NAME_RULE = "1 to 64 letters, digits, _, . and -, not only dots"
_MOST_PROBLEMS = 20
_LONGEST_NEAR = 64
"""Characters of a name that a similar one is looked for."""


class DefinitionError(InvalidFieldsError):
    """The definition is wrong. The message joins the first problems."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        shown = [sentence for _, sentence in problems[:_MOST_PROBLEMS]]
        if len(problems) > _MOST_PROBLEMS:
            shown.append(f"{refusals.counted(len(problems) - _MOST_PROBLEMS, 'further problem')} not shown.")
        super().__init__(" ".join(shown), problems)


class Fields:
    """The fields that are given, by name, and the problems that are found in them. Null counts as absent."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.value = {name: inner for name, inner in value.items() if inner is not None}
        self.problems: list[tuple[str, str]] = []

    def say(self, path: str, sentence: str) -> None:
        self.problems.append((path, sentence))

    def missing(self, name: str, means: str) -> None:
        self.say(name, f"{name} is required: {means}.")

    def name(self, name: str) -> str:
        """Empty if it is absent or wrong."""
        value = self.value.get(name)
        if value is None:
            self.missing(name, NAME_RULE)
        elif not isinstance(value, str) or not NAME.fullmatch(value):
            self.say(name, f"{name} must be {NAME_RULE}; it is {refusals.shown(value)}.")
        else:
            return value
        return ""

    def number(self, name: str, default: float, low: float, high: float, *, whole: bool = False) -> float:
        """The default if it is wrong."""
        value = self.value.get(name, default)
        if problem := number_problem(value, name, low, high, whole=whole):
            self.say(name, problem)
            return default
        return float(value)

    def switch(self, name: str) -> bool:
        """Off if it is absent or wrong."""
        value = self.value.get(name, False)
        if not isinstance(value, bool):
            self.say(name, f"{name} must be true or false.")
        return value is True

    def entries(self, name: str, most: int, means: str) -> Iterable[tuple[str, Any]]:
        """The entries of a list that is required, each with its path; none if the list is wrong."""
        value = self.value.get(name)
        if value is None:
            self.missing(name, means)
        elif not isinstance(value, list):
            self.say(name, f"{name} must be a list: {means}.")
        elif not 1 <= len(value) <= most:
            self.say(name, f"{name} must hold 1 to {most:,} entries; it has {len(value):,}.")
        else:
            return [(f"{name}[{place}]", one) for place, one in enumerate(value)]
        return []

    def only(self, path: str, value: Mapping[str, Any], names: Collection[str], more: Collection[str] = ()) -> None:
        """Refuses other names than these and `more`, which are not offered."""
        unknown = (name for name in value if name not in names and name not in more)
        for name in islice(unknown, _MOST_PROBLEMS):
            inner = ".".join(filter(None, (path, refusals.shown(name))))
            self.say(inner, f"{inner} is not known. {suggestion(name, names)}Allowed: {', '.join(names)}.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests a similar name, with a space after it; empty if there is none."""
    found = get_close_matches(name[:_LONGEST_NEAR], [*known], n=1, cutoff=0.6)
    return f"Did you mean {found[0]}? " if found else ""
