"""What a row's reference may be where the scorer compares texts. Pure."""

from __future__ import annotations

from typing import Any

MOST_ANSWERS = 100


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
