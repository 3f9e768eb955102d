"""Reads a JSON object whose one long array does not fit into memory."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

_CHUNK = 1024 * 1024
_SPACE = " \t\r\n"


class _Text:
    """The file's text from the position read so far."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self._decode = json.JSONDecoder().raw_decode
        self._text = ""
        self._place = 0
        self._bytes = codecs.getincrementaldecoder("utf-8")()
        self._ended = False

    def next(self) -> str:
        """The next character other than white space, not consumed; "" at the end."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in _SPACE:
                    return self._text[self._place]
                self._place += 1
            if self._ended:
                return ""
            self._more(_CHUNK)

    def expect(self, character: str) -> None:
        if self.next() != character:
            raise ValueError(f"{character!r} is missing")
        self._place += 1

    def value(self) -> Any:
        """The next value, read with twice as much text each time it is cut."""
        self.next()
        while True:
            try:
                value, end = self._decode(self._text, self._place)
                # A number at the very end may continue.
                if end < len(self._text) or self._ended:
                    self._place = end
                    return value
            except ValueError:
                if self._ended:
                    raise
            if len(self._text) - self._place > self._most:
                raise ValueError(f"a value is longer than {self._most // 1024**2} MB")
            self._more(max(_CHUNK, len(self._text) - self._place))

    def _more(self, size: int) -> None:
        raw = self._file.read(size)
        self._ended = not raw
        text = self._bytes.decode(raw, final=self._ended)
        self._text = self._text[self._place :] + text
        self._place = 0


def members(file: BinaryIO, array: str, most: int) -> Iterator[tuple[str, Any]]:
    """The object's members in order; the elements of `array` one by one, each under that name.

    One value may have `most` characters. Raises ValueError for any other JSON.
    """
    text = _Text(file, most)
    text.expect("{")
    while text.next() != "}":
        name = text.value()
        if not isinstance(name, str):
            raise ValueError("a name is not a string")
        text.expect(":")
        if name == array and text.next() == "[":
            text.expect("[")
            while text.next() != "]":
                yield name, text.value()
                if text.next() != "]":
                    text.expect(",")
            text.expect("]")
        else:
            yield name, text.value()
        if text.next() != "}":
            text.expect(",")
