"""Fields of a job in requests: options, as `services.words.job_options` declares them, and sampling parameters.

Their checks, their descriptions, the message that they make, and their names in sentences of the services.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from services import further_fields, patterns
from services.gateway.fields import checks
from services.gateway.fields.checks import Check, Problem
from services.words import refusals
from services.words.fields import Choice, Field, Number, OpenChoice, Pattern, Switch, Text, TextList, TextTable
from services.words.job_options import ALL
from services.words.sampling import BY_REST_NAME, PARAMETERS, RESERVED
from touchstone.v1 import job_pb2

PILOT_LABEL = "pilot"
"""Marks a pilot in lists, and holds the limit of the run that it estimates: 0 for all."""
URL = checks.text(2000, pattern=r"https?://[^\s/?#]+[^\s]*", means="an http or https address")


def _pattern_problems(value: object, path: str) -> Iterator[Problem]:
    problems = list(_PATTERN_TEXT.judge(value, path))
    yield from problems
    if not problems:
        try:
            patterns.compiled(str(value))
        except ValueError as error:
            yield path, refusals.pattern(error, path)


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
        case OpenChoice():
            return checks.one_of_or_named(field.pattern, *field.words)
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
    """An option of a job as a member of a request. `about` replaces its own description."""
    field = ALL[name]
    default = field.default if isinstance(field, Choice) and field.default else None
    return checks.Field(check_of(field), required=required, about=about or field.about, default=default)


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job in a checked body, by their names, except scorings, which become messages."""
    reuse = body.get("reuse") or {}
    return {**body, **{name: reuse.get(name) for name in ("any_job", "without_digest")}, "scoring": None}


ALIASES = [(alias, one.rest) for one in PARAMETERS.values() for alias in one.aliases]
"""Names that other APIs have for a parameter, each with Touchstone's own; either may be given."""


def parameter_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for unknown names, values out of range, and a parameter under two names."""
    problems = []
    for name, value in values.items():
        known = BY_REST_NAME.get(name)
        if known is None:
            problems.append((f"{path}.{name}", f"{path}.{name} is not known. Allowed: {', '.join(BY_REST_NAME)}."))
        elif sentence := known.problem(value, f"{path}.{name}"):
            problems.append((f"{path}.{name}", sentence))
    for alias, name in ALIASES:
        if alias in values and name in values:
            problems.append((f"{path}.{alias}", f"Give {path}.{name} or {path}.{alias}, not both: they are the same."))
    return problems


def custom_problems(values: Mapping[str, object], path: str) -> list[tuple[str, str]]:
    """(path, sentence) for fields that users may not set, and for values that cannot be stored."""
    if why := further_fields.fault(values):
        return [(path, f"{path} {why}.")]
    if name := further_fields.asks_logprobs(values):
        return [(f"{path}.{name}", f"{path}.{name} {further_fields.NO_LOGPROBS}")]
    return [
        (f"{path}.{name}", f"{path}.{name} is set by Touchstone itself. Leave it out.")
        for name in values
        if name in RESERVED
    ]


def parameter_about(name: str, words: str = "") -> str:
    """The description of a parameter, or `words` instead; for another name of it, only a reference to the parameter."""
    one = BY_REST_NAME[name]
    return words or one.about if name == one.rest else f"The same as `{one.rest}`. Give one of the two."


def parameter_schema() -> dict[str, Any]:
    """What `parameter_problems` accepts, in JSON Schema."""
    members = {
        name: check_of(one).schema | {"description": parameter_about(name)} for name, one in BY_REST_NAME.items()
    }
    return {"title": "Sampling", "type": "object", "properties": members, "additionalProperties": False} | {
        "not": {"anyOf": [{"required": [*names]} for names in ALIASES]}
    }


CUSTOM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": (
        "Further fields of the request. `tools`, `tool_choice`, `response_format` and `logprobs` are in OpenAI's form "
        "for every provider. All others are sent as they are."
    ),
    "propertyNames": {"not": {"enum": list(RESERVED)}},
}
"""What `custom_problems` accepts, in JSON Schema."""


def sampling(values: Mapping[str, Any], custom: Mapping[str, Any] | None = None) -> job_pb2.Sampling:
    """Checked values as a message. Absent ones are not sent, so the provider's default applies."""
    message = job_pb2.Sampling(**{BY_REST_NAME[name].name: value for name, value in values.items()})
    if custom:
        further_fields.write(message, custom)
    return message


_RENAMED = {name: one.rest for name, one in PARAMETERS.items() if name not in BY_REST_NAME}
_REST_NAMES = _RENAMED | {"extra_json": "custom_config", "further": ALL["further"].rest}
_PATH = re.compile(r"(?<![\w.])(?:spec\.(?:sampling\.|suite\.|dataset\.)?|sampling\.)([a-z_]+)")
_BARE = re.compile(rf"(?<![\w.])({'|'.join(_RENAMED)})(?!\w)")


def in_rest(sentence: str) -> str:
    """Set sampling.max_tokens → Set max_tokens. spec.suite.limit must be … → limit must be …"""
    for names in (_PATH, _BARE):
        sentence = names.sub(lambda found: _REST_NAMES.get(found[1], found[1]), sentence)
    return sentence
