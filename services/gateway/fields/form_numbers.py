"""Numbers that people type into the fields of a form: commas only separate thousands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from services.words.fields import DOLLARS, Number, decimal

_THOUSANDS = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9]{1,19})"
_WHOLE = re.compile("-?" + _THOUSANDS)
_AMOUNT = re.compile(rf"\$? ?({_THOUSANDS}(?:\.[0-9]{{0,18}})?|\.[0-9]{{1,18}})")


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
