"""JSON values as answers and references are compared by. Pure."""

from __future__ import annotations

import json
import sys
from math import isfinite
from typing import Any, NoReturn

NOTHING = object()
"""No value; JSON's null is a value."""
_DEEPEST = 100


def parsed(text: str) -> Any:
    """The value of a JSON text, as `whole`. Raises ValueError, with a clause that continues after what the text is, for
    a text that is not JSON, that has a number which no float can hold, or that is nested too deeply."""
    try:
        value = _decode(text.strip())
        # Few texts have that many brackets, and looking into every value takes as long as reading it.
        return whole(value) if text.count("[") + text.count("{") > _DEEPEST else value
    except json.JSONDecodeError as error:
        raise ValueError("is not JSON") from error
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise ValueError(f"has a number of more than {sys.get_int_max_str_digits():,} digits") from error
        raise
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def written(value: Any) -> str:
    """One text for equal values: whole numbers as such, names in order. Raises ValueError for nesting deeper than
    anything compared here."""
    return text_of(whole(value))


def text_of(value: Any) -> str:
    """`written`, for what `parsed` or `whole` has given."""
    return _encode(value)


def whole(value: Any, deepest: int = _DEEPEST) -> Any:
    """With whole numbers as integers. Raises ValueError, as `written`."""
    if deepest < 0:
        raise ValueError("is nested too deeply")
    if isinstance(value, dict):
        return {name: whole(inner, deepest - 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner, deepest - 1) for inner in value]
    return _number(value) if isinstance(value, float) else value


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def equal(given: Any, right: Any) -> bool:
    """Numbers by value, texts exactly, lists in order, names of objects in any order. `NOTHING` equals nothing."""
    if isinstance(given, bool) or isinstance(right, bool):
        return given is right
    if isinstance(given, dict) and isinstance(right, dict):
        return given.keys() == right.keys() and all(equal(given[name], right[name]) for name in right)
    if isinstance(given, list) and isinstance(right, list):
        return len(given) == len(right) and all(map(equal, given, right))
    return given is not NOTHING and bool(given == right)


def _finite(text: str) -> float | int:
    value = float(text)
    return _number(value) if isfinite(value) else refuse(text)


def refuse(name: str) -> NoReturn:
    """For NaN, infinity and numbers beyond them."""
    raise ValueError(f"has {name[:20]}, which is not a JSON number")


_decode = json.JSONDecoder(parse_constant=refuse, parse_float=_finite).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
"""Made once: it costs more than writing the arguments of a call."""
