"""JSON as other readers of the row accept it: UTF-8, finite numbers, no repeated names, no NUL, no half characters."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain
from typing import Any, NoReturn

from services.chat_requests.faults import WrongRowError, quoted

MOST_DEPTH = 32
MOST_LINE_BYTES = 2 * 1024 * 1024
"""Of a line of a file, and of the messages that a template makes of one."""
_SHORT = 64 * 1024
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(each for each in range(256) if each not in _STEP)
_BOM = b"\xef\xbb\xbf"
_NAMED = b'"tools":'
_SPACE = " \t\r\n"
_MOST_MISSES = 8


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
        lines = "\n" in text.strip()
        where = f"line {error.lineno:,}, character {error.colno:,}" if lines else f"character {error.pos + 1:,}"
        raise WrongRowError(f"The {called} is not JSON: {error.msg} at {where}.") from error
    except ValueError as error:  # Python reads no number of over 4,300 digits
        raise WrongRowError(f"The {called} contains a number with too many digits. Write it as a string.") from error
    # Few lines have suspicious content, and checking every value takes longer than parsing.
    nests = text.count("{") + text.count("[") > MOST_DEPTH
    if "\\u0000" in text or "\\ud" in text or "\\uD" in text or (nests and len(text) > _SHORT):
        _look_through(value, called)
    elif nests and _depth(text) > MOST_DEPTH:
        raise _too_deep(called)
    return value


class Repeated(list[Any]):
    """Tools that several lines share, so nothing may change them. `text` is what `dump` makes of them."""

    def __init__(self, tools: list[Any], raw: bytes) -> None:
        super().__init__(tools)
        self.raw = raw
        self.text = _encode(tools)
        self.depth = _depth(self.text)
        # Random, so that no line can contain it.
        self.mark = secrets.token_hex(16)
        self.marked = _NAMED + b'"%s"' % self.mark.encode()


class LineParser:
    """`parse` for the lines of one file, which reads tools that line after line repeats only once: they are most of the
    work on such a line."""

    def __init__(self) -> None:
        self._known: Repeated | None = None
        self._met = 0
        self._misses = 0
        self._decoder = json.JSONDecoder(object_pairs_hook=self._made, parse_float=finite, parse_constant=_constant)

    def parse(self, line: bytes) -> Any:
        """As `parse` does."""
        if self._known is not None and line.count(self._known.raw) == 1:
            value = self._around(line, self._known)
            if value is not None:
                self._misses = 0
                return value
        value = parse(line)
        if self._misses < _MOST_MISSES:
            self._learn(line, value)
        return value

    def _around(self, line: bytes, known: Repeated) -> Any:
        """The line's value, read with a mark in place of the tools; None where that may differ from the line's value.

        The known bytes begin with a quote. In a string of the line, that ends the string, and no JSON follows; or a
        backslash before it makes it part of a longer name. Neither is an object with the mark as "tools".
        """
        text = line.replace(known.raw, known.marked).decode("utf-8-sig", "replace")
        nests = text.count("{") + text.count("[") + known.depth > MOST_DEPTH
        if nests or "\\u0000" in text or "\\ud" in text or "\\uD" in text or "\ufffd" in text:
            return None
        self._met = 0
        try:
            value = self._decoder.decode(text)
        except (ValueError, WrongRowError):
            return None
        return value if self._met == 1 else None

    def _made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = _object(pairs)
        if self._known is not None and made.get("tools") == self._known.mark:
            made["tools"] = self._known
            self._met += 1
        return made

    def _learn(self, line: bytes, value: Any) -> None:
        """Remembers the tools at the line's top or in its request."""
        body = value.get("body", value) if isinstance(value, dict) else None
        tools = body.get("tools") if isinstance(body, dict) else None
        if not isinstance(tools, list) or line.count(_NAMED) != 1:
            return
        self._misses += 1
        begun = line.index(_NAMED)
        text = line[begun + len(_NAMED) :].decode()
        try:
            again, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_SPACE)))
        except (ValueError, WrongRowError):
            return
        if again == tools:
            self._known = Repeated(again, line[begun : begun + len(_NAMED) + len(text[:end].encode())])


def dump(value: Any) -> str:
    """The value as JSON without needless space; always possible for a result of `parse`."""
    return _encode(value)


def dump_fields(fields: Mapping[str, Any]) -> str:
    """As `dump`, sooner where a value is Repeated."""
    written = (
        f"{_encode(name)}:{value.text if isinstance(value, Repeated) else _encode(value)}"
        for name, value in fields.items()
    )
    return f"{{{','.join(written)}}}"


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


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=finite, parse_constant=_constant)
_decode = _DECODER.decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _too_deep(called: str) -> WrongRowError:
    return WrongRowError(f"The {called} nests more than {MOST_DEPTH} objects and arrays. Make it flatter.")


def _depth(text: str) -> int:
    """How deep valid JSON nests, without a look at its values: several times faster, but it takes more memory than
    them."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    # Without escaped quotes, every second piece is a string.
    brackets = "".join(text.split('"')[::2]).encode().translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


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
