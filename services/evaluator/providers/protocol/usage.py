"""JSON of a provider, whatever it holds: the parts that every wire reads, each checked. Pure.

An impossible number counts as unknown (services/numbers.py). `Told` remembers those of one answer, for the job's log.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from services import numbers

Number = TypeVar("Number", int, float)
T = TypeVar("T")

_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SHOWN_CHARACTERS = 24
_KINDS = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}


class MalformedError(ValueError):
    """Something else is in the place of the answer's text or calls: the provider failed, and there is nothing to
    score. The message continues after "sent an answer"."""


class Told:
    """The numbers in one answer. `doubtful` names impossible ones, with their values."""

    def __init__(self) -> None:
        self._doubtful: list[str] = []

    @property
    def doubtful(self) -> tuple[str, ...]:
        return tuple(self._doubtful)

    def tokens(self, values: object, key: str, *, absent: int | None = None) -> int | None:
        """A count of tokens; `absent` where the field is not there."""
        value = values.get(key) if isinstance(values, dict) else None
        return absent if value is None else self.checked(key, value, numbers.whole(value, numbers.MOST_TOKENS))

    def usd(self, values: object, key: str, *, per_usd: float = 1.0) -> float | None:
        """What the provider says it billed, in units of which `per_usd` make a US dollar."""
        value = values.get(key) if isinstance(values, dict) else None
        billed = numbers.real(value, 0.0, numbers.MOST_USD * per_usd)
        self.checked(key, value, billed)
        return None if billed is None else billed / per_usd

    def checked(self, name: str, value: object, found: Number | None) -> Number | None:
        """`found`, which was read from `value`. A number that was rejected is doubtful; other values are ignored."""
        if found is None and isinstance(value, int | float) and not isinstance(value, bool):
            self._doubtful.append(f"{name} is {str(value)[:_SHOWN_CHARACTERS]}")
        return found


def parsed(text: str) -> Any:
    """JSON as a server wrote it; None for what is not JSON or nested too deeply.

    Numbers with thousands of digits become infinite; half characters, which no message may hold, become question marks.
    """
    try:
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            return None
        except ValueError:  # Python limits the digits of a number that it reads.
            value = json.loads(text, parse_int=float)
        return _clean(value) if _LONE_SURROGATE.search(text) else value
    except (ValueError, RecursionError):
        return None


def part(values: object, key: str, kind: type[T]) -> T | None:
    """A member that leads to the answer's text; None where it is not there or null. Raises MalformedError for another
    kind of value."""
    if not isinstance(values, dict):
        raise MalformedError(f"without an object that has {key}")
    value = values.get(key)
    if value is not None and not isinstance(value, kind):
        raise MalformedError(f"whose {key} is {_KINDS.get(type(value), 'a number')}, not {_KINDS[kind]}")
    return value


def parts(values: object, key: str) -> list[dict[str, Any]]:
    """The objects of a list that leads to the answer's text; empty without the list. Raises MalformedError."""
    found = part(values, key, list) or []
    if not all(isinstance(entry, dict) for entry in found):
        raise MalformedError(f"whose {key} is not a list of objects")
    return found


def inner(values: object, key: str) -> dict[str, Any]:
    """An object within anything; empty where there is none."""
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, dict) else {}


def entries(values: object, key: str) -> list[dict[str, Any]]:
    """The objects of a list within anything; empty without one."""
    value = values.get(key) if isinstance(values, dict) else None
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def string(values: object, key: str) -> str:
    """A text within anything; empty where there is none."""
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else ""


def count(values: object, key: str, most: int = numbers.MOST_COUNT) -> int:
    """A count where 0 means unknown, as in a listing."""
    value = values.get(key) if isinstance(values, dict) else None
    return numbers.whole(value, most) or 0


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(held) for key, held in value.items()}
    return [_clean(held) for held in value] if isinstance(value, list) else value
