"""The elements of a JSON array, of which only one is held at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from services.chat_requests import strict_json
from services.chat_requests.faults import RefusedError, WrongRowError
from services.results.datasets.files.lines import MOST_BYTES, Values

_OUTSIDE = re.compile(rb'["{}\[\],]')
_INSIDE = re.compile(rb'["\\]')
_QUOTE, _COMMA = b'",'
_OPENING = b"{["


def array_objects(pieces: Iterable[bytes]) -> Values:
    """The object of every element, with its number from 1. Raises RefusedError for an array that does not end, and for
    text after it."""
    for number, element in enumerate(_elements(pieces), start=1):
        yield number, _object(element)


def _object(element: bytes | None) -> dict[str, Any] | WrongRowError:
    if element is None:
        return WrongRowError(f"The row has more than {MOST_BYTES:,} bytes. Shorten it or leave it out.")
    if not element:
        return WrongRowError("A comma is not followed by a row. Remove the comma.")
    try:
        value = strict_json.parse(element, "row")
    except WrongRowError as wrong:
        return wrong
    return value if isinstance(value, dict) else WrongRowError("The row is not a JSON object. Write it as {…}.")


class _Element:
    """The bytes of the present element; of one that is too long only that it is."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MOST_BYTES:
            self._held = []
        elif data:
            self._held.append(data)

    def taken(self) -> bytes | None:
        """Without space around it; None if it is too long."""
        found = None if self._size > MOST_BYTES else b"".join(self._held).strip()
        self._held, self._size = [], 0
        return found


def _elements(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    element = _Element()
    depth = done = 0
    inside = escaped = ended = False
    for piece in pieces:
        begun = place = 0
        if escaped and piece:
            place, escaped = 1, False
        while not ended and (found := (_INSIDE if inside else _OUTSIDE).search(piece, place)):
            place, mark = found.end(), piece[found.start()]
            if inside:
                inside = mark != _QUOTE
                if inside:
                    # The byte after a backslash does not end the string. It may come with the next piece.
                    escaped = place == len(piece)
                    place += not escaped
            elif mark == _QUOTE:
                inside = True
            elif mark in _OPENING:
                depth += 1
                begun = place if depth == 1 else begun
            elif mark != _COMMA:
                depth -= 1
                ended = depth == 0
            if ended or (mark == _COMMA and depth == 1 and not inside):
                element.add(piece[begun : found.start()])
                last, begun = element.taken(), place
                if last or last is None or done or not ended:
                    done += 1
                    yield last
        if ended and piece[place:].strip():
            raise RefusedError(f"Something follows the JSON array after row {done:,}. Upload one array.")
        if not ended:
            element.add(piece[begun:] if depth else b"")
            place = 0
    if not ended:
        raise RefusedError(f"The JSON array ends too early, after row {done:,}. Upload all of it.")
