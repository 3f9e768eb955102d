"""Values of a definition as JSON can hold them, whatever they were read from. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from services.chat_requests.strict_json import MOST_DEPTH
from services.words.fields import INT64_MAX

MOST_VALUES = 1_000_000
MOST_CHARACTERS = 16 * 1024 * 1024
"""Of all texts and names."""
_SHOWN = 80
"""Characters of a path in a sentence."""


def faults(value: Any) -> Iterator[tuple[str, str]]:
    """Why a value is not plain: (path, sentence) for everything that is not. Values that are in several places, as
    YAML's aliases make them, count in each; a list that holds itself is too deep. Ends where the whole is too large."""
    left, room = MOST_VALUES, MOST_CHARACTERS
    # Iterators, so that a long list is not held twice.
    waiting: list[Iterator[tuple[str, Any]]] = [iter([("", value)])]
    while waiting:
        for path, one in waiting[-1]:
            left -= 1
            if left < 0:
                yield "", f"The definition has more than {MOST_VALUES:,} values. Use fewer scenarios."
                return
            if isinstance(one, str):
                room -= len(one)
                sentence = _text(path, one)
            elif isinstance(one, dict | list):
                sentence = _deep(path) if len(waiting) > MOST_DEPTH else ""
                if isinstance(one, dict) and not sentence:
                    room -= sum(len(name) for name in one if isinstance(name, str))
                    sentence = next(filter(None, (_name(path, name) for name in one)), "")
            else:
                sentence = _scalar(path, one)
            if room < 0:
                yield "", f"The definition has more than {MOST_CHARACTERS:,} characters. Shorten it."
                return
            if sentence:
                yield path, sentence
                continue
            if isinstance(one, dict):
                waiting.append(_members(path, one))
                break
            if isinstance(one, list):
                waiting.append(_entries(path, one))
                break
        else:
            waiting.pop()


def _members(path: str, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        yield (f"{path}.{name[:_SHOWN]}" if path else name[:_SHOWN]), inner


def _entries(path: str, value: list[Any]) -> Iterator[tuple[str, Any]]:
    for place, inner in enumerate(value):
        yield f"{path}[{place}]", inner


def _text(path: str, text: str) -> str:
    if "\0" in text:
        return f"{_called(path)} contains the NUL character. Remove it."
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{_called(path)} contains half a character. Remove it."
    return ""


def _name(path: str, name: Any) -> str:
    if not isinstance(name, str):
        return f"{_called(path)} has a name that is not a string. Put it in quotation marks."
    return _text(f"A name in {_called(path)}", name)


def _scalar(path: str, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= INT64_MAX + 1 else f"{_called(path)} is too large a number."
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{_called(path)} must be a finite number."
    return f"{_called(path)} must be a string, a number, true, false, a list or an object."


def _deep(path: str) -> str:
    return f"{_called(path)} nests more than {MOST_DEPTH} lists and objects. Make it flatter."


def _called(path: str) -> str:
    """A path that may be long."""
    return f"…{path[-_SHOWN:]}" if len(path) > _SHOWN else path or "The definition"
