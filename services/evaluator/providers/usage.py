"""Tokens as providers tell them. What one does not tell is unknown, not 0. Pure."""

from __future__ import annotations


def told(values: object, key: str) -> int | None:
    """A count among anything; None where there is none."""
    return whole(values.get(key) if isinstance(values, dict) else None)


def whole(value: object) -> int | None:
    """The value where it is a count."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else None
