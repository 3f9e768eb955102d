"""JSON as other readers of the row accept it: UTF-8, finite numbers, no repeated names, no NUL, no half characters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any, NoReturn

from services.chat_requests.faults import WrongRowError, quoted

MOST_DEPTH = 32
_SHORT = 64 * 1024
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(each for each in range(256) if each not in _STEP)
_BOM = b"\xef\xbb\xbf"


def utf8(line: bytes) -> str:
    """Raises WrongRowError."""
    try:
        return line.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise WrongRowError(
            f"Byte {error.start + 1:,} of the line, 0x{line[error.start]:02X}, is not UTF-8. Save the file as UTF-8."
        ) from error


def parse(line: bytes, called: str = "line") -> Any:
    """The line's value. Raises WrongRowError, in words that use the name `called`."""
    text = utf8(line)
    try:
        value = _decode(text)
    except RecursionError as error:
        raise _too_deep(called) from error
    except json.JSONDecodeError as error:
        raise WrongRowError(f"The {called} is not JSON: {error.msg} at character {error.pos + 1:,}.") from error
    except ValueError as error:  # Python reads no number of over 4,300 digits
        raise WrongRowError(f"The {called} contains a number with too many digits. Write it as a string.") from error
    # Few lines have suspicious content, and checking every value takes longer than parsing.
    nests = text.count("{") + text.count("[") > MOST_DEPTH
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text or (nests and len(text) > _SHORT):
        _look_through(value, called)
    elif nests and _is_deep(text):
        raise _too_deep(called)
    return value


def dump(value: Any) -> str:
    """The value as JSON without needless space; always possible for a result of `parse`."""
    return _encode(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise WrongRowError(f"The name {quoted(name)} occurs twice in one object. Keep one of them.")
            seen.add(name)
    return made


def finite(text: str) -> float:
    """Raises WrongRowError."""
    value = float(text)
    if not math.isfinite(value):
        raise WrongRowError(f"The number {quoted(text, 20)} is too large. Write it as a string.")
    return value


def _constant(text: str) -> NoReturn:
    raise WrongRowError(f"{text} is not JSON. Write null or leave it out.")


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_float=finite, parse_constant=_constant).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _too_deep(called: str) -> WrongRowError:
    return WrongRowError(f"The {called} nests more than {MOST_DEPTH} objects and arrays. Make it flatter.")


def _is_deep(text: str) -> bool:
    """Whether valid JSON nests too deeply, without a look at its values: several times faster, but it takes more memory
    than them."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    # Without escaped quotes, every second piece is a string.
    brackets = "".join(text.split('"')[::2]).encode().translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > MOST_DEPTH


def _look_through(value: Any, called: str) -> None:
    # Iterators, so that a line of a million values is not held twice.
    inside: list[Iterator[Any]] = [iter((value,))]
    while inside:
        for each in inside[-1]:
            if isinstance(each, str):
                check_text(each)
            elif isinstance(each, dict | list):
                if len(inside) > MOST_DEPTH:
                    raise _too_deep(called)
                inside.append(chain(each, each.values()) if isinstance(each, dict) else iter(each))
                break
        else:
            inside.pop()


def check_text(text: str) -> None:
    """Raises WrongRowError for what no JSON that others accept can hold."""
    if "\0" in text:
        raise WrongRowError("A string contains the NUL character (\\u0000). Remove it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise WrongRowError(f"A string contains half a character (\\u{half:04x}). Remove it.") from error
