"""Fields of a job in requests: their checks and descriptions, as `services.words.job_options` declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services import patterns
from services.gateway.fields import checks
from services.gateway.fields.checks import Check, Problem
from services.words import sentences
from services.words.fields import Choice, Field, Number, Pattern, Switch, Text, TextList, TextTable
from services.words.job_options import ALL

PILOT_LABEL = "pilot"
"""Tells a pilot from other runs in lists, and holds the limit of the run that it is to estimate: 0 for all."""
URL = checks.text(2000, pattern=r"https?://[^\s/?#]+[^\s]*", means="an http or https address")


def _pattern_problems(value: object, path: str) -> Iterator[Problem]:
    problems = list(_PATTERN_TEXT.judge(value, path))
    yield from problems
    if not problems:
        try:
            patterns.compiled(str(value))
        except ValueError as error:
            yield path, sentences.pattern(error, path)


_PATTERN_TEXT = checks.text(patterns.MOST_CHARACTERS)
_PATTERN = Check(_PATTERN_TEXT.schema, _pattern_problems)
"""A pattern that RE2 takes."""


def check_of(field: Field) -> Check:
    """The check of a field that is declared."""
    match field:
        case Number(whole=True):
            return checks.integer(int(field.low), int(field.high))
        case Number():
            return checks.number(field.low, field.high, above=field.above)
        case Choice():
            return checks.one_of(*field.words)
        case Switch():
            return checks.boolean
        case TextList():
            return checks.list_of(checks.text(field.longest), field.most, least=field.least)
        case TextTable():
            return checks.texts(field.most, field.longest_name, field.longest_text)
        case Text():
            return checks.text(field.longest)
        case Pattern():
            return _PATTERN
    assert field.name == "webhook_url", f"{field.name} has no check"
    return URL


def option(name: str, about: str = "", *, required: bool = False) -> checks.Field:
    """An option of a job as a member of a request. `about` stands in place of its own words."""
    field = ALL[name]
    default = field.default if isinstance(field, Choice) and field.default else None
    return checks.Field(check_of(field), required=required, about=about or field.about, default=default)


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job in a body that is checked, by their names; but `scoring`, which makes a message."""
    return {**body, "any_job": (body.get("reuse") or {}).get("any_job"), "scoring": None}
