"""What others wrote as JSON: metadata and messages of uploaded rows, as they were stored."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def parsed(text: str) -> Any:
    """Numbers that are none, or that a float does not hold, are null, as no file may have them.

    Raises ValueError for what Python cannot read: no JSON, nested beyond its stack, a number of thousands of digits.
    """
    try:
        return json.loads(text, parse_float=_number, parse_constant=_nothing)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read(text: str) -> dict[str, Any]:
    """Of metadata the fields; none where there are no metadata, or none that Python can read."""
    try:
        found = parsed(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _nothing(_: str) -> None:
    return None
