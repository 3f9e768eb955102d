"""The allowed content of requests. A check tests a value, and gives the same rule in JSON Schema for the OpenAPI
document."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.errors import InvalidRequestError
from services.gateway.fields.schema import BOOLEAN, Schema, null
from services.gateway.http.responses import FieldErrors
from services.words import refusals
from services.words.fields import DOLLARS, Number, decimal, number_problem

Problem = tuple[str, str]
"""A path, and a sentence that says what is wrong and what is allowed there."""

# Tabs and line ends are allowed in text; other control characters break logs, terminals and files.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NO_CONTROL = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"
_THOUSANDS = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9]{1,19})"
_WHOLE = re.compile("-?" + _THOUSANDS)
_AMOUNT = re.compile(rf"\$? ?({_THOUSANDS}(?:\.[0-9]{{0,18}})?|\.[0-9]{{1,18}})")


@dataclass(frozen=True, slots=True)
class Check:
    """`judge` yields what is wrong with the value at a path."""

    schema: Schema
    judge: Callable[[object, str], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a JSON object."""

    check: Check
    required: bool = False
    about: str = ""
    default: object = None

    @property
    def schema(self) -> Schema:
        schema = self.check.schema if self.required else null(self.check.schema)
        words = {"description": self.about} if self.about else {}
        return schema | words | ({"default": self.default} if self.default is not None else {})


def integer(low: int, high: int) -> Check:
    def judge(value: object, path: str) -> Iterator[Problem]:
        if problem := number_problem(value, path, low, high, whole=True):
            yield path, problem

    return Check({"type": "integer", "minimum": low, "maximum": high}, judge)


def number(low: float, high: float, *, above: bool = False) -> Check:
    """`above`: larger than `low`, not equal to it."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if problem := number_problem(value, path, low, high, whole=False, above=above):
            yield path, problem

    least = {"exclusiveMinimum": low} if above else {"minimum": low}
    return Check({"type": "number", **least, "maximum": high}, judge)


def _truth(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield path, f"{path} must be true or false."


boolean = Check(BOOLEAN, _truth)


def text(most: int, *, least: int = 1, pattern: str = "", means: str = "") -> Check:
    """A string of `least` to `most` characters; `pattern` matches all of it, and `means` describes it in words."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, str):
            yield path, f"{path} must be a string."
        elif least and not value.strip():
            yield path, f"{path} must not be empty."
        elif len(value) > most:
            yield path, f"{path} has {len(value):,} characters; at most {most} are allowed."
        elif _CONTROL.search(value):
            yield path, f"{path} contains a control character. Leave it out."
        elif pattern and value and not re.fullmatch(pattern, value):
            yield path, f"{path} must be {means}."

    schema: Schema = {"type": "string", "minLength": least, "maxLength": most}
    return Check(schema | {"pattern": f"^(?:{pattern})$" if pattern else _NO_CONTROL}, judge)


_JOB_ID = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|bm_[0-9A-Fa-f]{32}"
JOB_ID_PATTERN = f"^(?:{_JOB_ID})$"
JOB_ID = text(36, pattern=_JOB_ID, means="a job's id, a UUID or bm_ and 32 digits")


def one_of(*choices: str) -> Check:
    def judge(value: object, path: str) -> Iterator[Problem]:
        if value not in choices:
            yield path, refusals.not_valid(value, path, choices)

    return Check({"type": "string", "enum": list(choices)}, judge)


def one_of_or_named(pattern: str, *choices: str) -> Check:
    """One of the choices, or the name of something that a plug-in offers, which a service looks up."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            yield path, refusals.not_valid(value, path, choices)

    return Check({"type": "string", "pattern": f"^(?:{pattern})$", "examples": list(choices)}, judge)


def list_of(item: Check, most: int, *, least: int = 1) -> Check:
    def judge(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, f"{path} must be a list."
        elif not least <= len(value) <= most:
            yield path, f"{path} must hold {least} to {most} entries."
        else:
            for place, entry in enumerate(value):
                yield from item.judge(entry, f"{path}[{place}]")

    return Check({"type": "array", "items": item.schema, "minItems": least, "maxItems": most}, judge)


def texts(most: int, name: int, value: int) -> Check:
    """An object of at most `most` texts: names of 1 to `name` characters, values of up to `value`."""
    key, held = text(name), text(value, least=0)

    def judge(given: object, path: str) -> Iterator[Problem]:
        if not isinstance(given, dict):
            yield path, f"{path} must be an object."
            return
        if len(given) > most:
            yield path, f"{path} has {len(given)} entries; at most {most} are allowed."
        for member, words in given.items():
            yield from key.judge(member, f"{path}: a name")
            yield from held.judge(words, f"{path}.{member[:80]}")

    schema = {"type": "object", "maxProperties": most, "propertyNames": key.schema, "additionalProperties": held.schema}
    return Check(schema, judge)


def members(rule: Callable[[Mapping[str, object], str], list[Problem]], schema: Schema) -> Check:
    """An object whose members a rule checks together; `schema` gives the same rule."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if isinstance(value, dict):
            yield from rule(value, path)
        else:
            yield path, f"{path} must be an object."

    return Check(schema, judge)


def record(fields: Mapping[str, Field], name: str = "") -> Check:
    """An object with these members and no others. A named one appears once in the document, under its name."""

    def judge(value: object, path: str) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, f"{path or 'The body'} must be an object."
            return
        for member, field in fields.items():
            inner = f"{path}.{member}" if path else member
            # null is how many clients write "not given".
            if value.get(member) is not None:
                yield from field.check.judge(value[member], inner)
            elif field.required:
                yield inner, f"{inner} is required."
        for member in value:
            if member not in fields:
                inner = f"{path}.{member}" if path else str(member)
                yield inner, f"{inner[:80]} is not known. Allowed: {', '.join(fields)}."

    schema: Schema = {
        "type": "object",
        "properties": {member: field.schema for member, field in fields.items()},
        "required": [member for member, field in fields.items() if field.required],
        "additionalProperties": False,
    }
    return Check(({"title": name} if name else {}) | schema, judge)


def parse(body: bytes, check: Check) -> dict[str, object]:
    """The checked object. Raises InvalidRequestError for invalid JSON, FieldErrors for errors in it."""
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
        json.dumps(value, ensure_ascii=False).encode()  # lone surrogates are legal in JSON text but not in Unicode
    except json.JSONDecodeError as error:
        raise InvalidRequestError(
            f"The body is not valid JSON: {error.msg} at character {error.pos + 1:,}. Send an object."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"The body is not valid JSON: byte {error.start + 1:,} is not UTF-8. Send it as UTF-8."
        ) from error
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise InvalidRequestError(
            f"The body is not valid JSON: a string contains half a character (\\u{half:04x}). Remove it."
        ) from error
    except RecursionError as error:
        raise InvalidRequestError("The body nests too many objects and arrays. Make it flatter.") from error
    problems = list(check.judge(value, ""))
    if problems:
        raise FieldErrors(problems)
    return {name: member for name, member in value.items() if member is not None}


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise InvalidRequestError(f"{number[:40]} is too large. Send a smaller number.")
    return value


def _whole(number: str) -> int:
    _finite(number)
    return int(number)


def _refuse(constant: str) -> float:
    raise InvalidRequestError(f"The body is not valid JSON: it contains {constant}. Send a number or null.")


def whole(text: str) -> int | None:
    """A form field's whole number, with or without commas between thousands; None for anything else."""
    return int(text.replace(",", "")) if _WHOLE.fullmatch(text) else None


def amount(text: str) -> float | None:
    """A form field's US dollars as 1250.5, 1,250.50 or $5; None for anything else. Otherwise 5,5 would be read as
    55."""
    known = _AMOUNT.fullmatch(text)
    return float(known[1].replace(",", "")) if known else None


def read(texts: Mapping[str, str], fields: Iterable[Number]) -> tuple[dict[str, Any], dict[str, str]]:
    """The typed numbers by the fields' names in forms, and a sentence for each invalid one. Empty texts are in
    neither."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field in fields:
        if text := texts[field.rest]:
            value = _value(text, field)
            if problem := field.problem(value, field.label):
                problems[field.rest] = problem if field.unit != DOLLARS else f"{problem} Write it as 5.50 or 1,250."
            else:
                values[field.rest] = value
    return values, problems


def _value(text: str, field: Number) -> float | None:
    """None for a text that is not a number of the field's kind."""
    if field.whole:
        return whole(text)
    if field.unit == DOLLARS:
        return amount(text)
    return decimal(text)
