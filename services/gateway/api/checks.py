"""Declarative checks of a JSON body. A check yields (path, sentence) for each thing that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from services.errors import InvalidRequestError
from services.gateway.responses import FieldErrors

Problem = tuple[str, str]
Check = Callable[[object, str], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a JSON object."""

    check: Check
    required: bool = False


def integer(low: int, high: int) -> Check:
    def check(value: object, path: str) -> Iterator[Problem]:
        if isinstance(value, bool) or not isinstance(value, int):
            yield path, f"{path} must be an integer."
        elif not low <= value <= high:
            yield path, f"{path} must be from {low} to {high}."

    return check


def boolean(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield path, f"{path} must be true or false."


def text(most: int) -> Check:
    def check(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield path, f"{path} must be a string."
        elif not value.strip():
            yield path, f"{path} must not be empty."
        elif len(value) > most:
            yield path, f"{path} has {len(value):,} characters; at most {most} are allowed."

    return check


def one_of(*choices: str) -> Check:
    def check(value: object, path: str) -> Iterator[Problem]:
        if value not in choices:
            yield path, f"{path} must be one of {', '.join(choices)}."

    return check


def list_of(item: Check, most: int) -> Check:
    def check(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, f"{path} must be a list."
        elif not 1 <= len(value) <= most:
            yield path, f"{path} must hold 1 to {most} entries."
        else:
            for place, entry in enumerate(value):
                yield from item(entry, f"{path}[{place}]")

    return check


def members(rule: Callable[[Mapping[str, object], str], list[Problem]]) -> Check:
    """An object whose members a rule judges together."""

    def check(value: object, path: str) -> Iterator[Problem]:
        if isinstance(value, dict):
            yield from rule(value, path)
        else:
            yield path, f"{path} must be an object."

    return check


def record(fields: Mapping[str, Field]) -> Check:
    """An object with these members and no others."""

    def check(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, f"{path or 'The body'} must be an object."
            return
        for name, field in fields.items():
            inner = f"{path}.{name}" if path else name
            # null is how many clients write "not given".
            if value.get(name) is not None:
                yield from field.check(value[name], inner)
            elif field.required:
                yield inner, f"{inner} is required."
        for name in value:
            if name not in fields:
                inner = f"{path}.{name}" if path else str(name)
                yield inner, f"{inner[:80]} is not known. Allowed: {', '.join(fields)}."

    return check


def parse(body: bytes, check: Check) -> dict[str, object]:
    """The checked object. Raises InvalidRequestError for what is no JSON, FieldErrors for what is wrong in it."""
    try:
        value = json.loads(body, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()  # lone surrogates are legal in JSON text but are no Unicode
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError("The body is not valid JSON. Send an object.") from error
    problems = list(check(value, ""))
    if problems:
        raise FieldErrors(problems)
    return {name: member for name, member in value.items() if member is not None}


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
