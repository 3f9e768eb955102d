"""What a row's reference may be where the scorer compares texts, and which rows are a group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from services import json_values

MOST_ANSWERS = 100
_LONGEST, _BEGINNING = 120, 60
"""Characters of a group's name, and of what a shortened one has of it."""


def is_none(value: Any) -> bool:
    """Null and a blank text count as no reference."""
    return value is None or (isinstance(value, str) and not value.strip())


def count_fault(count: int) -> str:
    """Why a reference cannot have this number of answers; empty if it can."""
    if 0 < count <= MOST_ANSWERS:
        return ""
    return f"The reference must have between 1 and {MOST_ANSWERS} answers; it has {count:,}."


def answer_fault(answer: Any) -> str:
    """Why a text cannot be compared with one of the answers; empty if it can."""
    if not isinstance(answer, str | int | float):
        may = "must be a string, a number, true or false. Only the scorers json and tool_calls take objects."
        return f"The reference {may}"
    return "" if str(answer).strip() else "One of the reference's answers is empty. Leave it out."


def fault(value: Any) -> str:
    """Why a reference cannot be compared with; empty if it can, or is none."""
    if is_none(value):
        return ""
    answers = value if isinstance(value, list) else [value]
    return count_fault(len(answers)) or next(filter(None, map(answer_fault, answers)), "")


# -- groups --------------------------------------------------------------------------------------------------------


def group(value: Any) -> str:
    """What the rows with this value are called together, where a number equals the text that writes it. At most 120
    characters, as each answer keeps it. Empty for no value, which is also null and a blank text."""
    if value is json_values.NOTHING or is_none(value):
        return ""
    text = value if isinstance(value, str) else json_values.written(value)
    # A passage itself may be the value.
    return text if len(text) <= _LONGEST else f"{text[:_BEGINNING]}… {sha256(text.encode()).hexdigest()[:32]}"


def numbered(groups: Iterable[str]) -> Sequence[int]:
    """By item, the number of its group, where "" is an item by itself; empty if each item is by itself."""
    numbers: dict[str | int, int] = {}
    found = [numbers.setdefault(name or place, len(numbers)) for place, name in enumerate(groups)]
    return found if len(numbers) < len(found) else ()
