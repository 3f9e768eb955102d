"""Query parameters with their bounds."""

from __future__ import annotations

from starlette.datastructures import QueryParams

from services.gateway.responses import FieldErrors


def count(query: QueryParams, name: str, default: int, most: int = 1000) -> int:
    """A whole number from 1 to `most`. Raises FieldErrors."""
    value = query.get(name, "")
    if not value:
        return default
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value[:20]) <= most:
        raise FieldErrors([(name, f"{name} must be a whole number from 1 to {most}.")])
    return int(value)


def choice(query: QueryParams, name: str, choices: tuple[str, ...]) -> str:
    """One of the choices, or empty when absent. Raises FieldErrors naming them."""
    value = query.get(name, "")
    if value and value not in choices:
        raise FieldErrors([(name, f"{name} must be one of {', '.join(choices)}.")])
    return value
