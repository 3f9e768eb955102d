"""Events of a streamed answer: server-sent events ("data:" lines) or one JSON text per line (Ollama), and what is kept
of them. Events are folded as they come: each carries some 300 bytes around a token of 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from services.evaluator.providers.protocol.provider import ProviderError

MAX_LINE_BYTES = 8 * 1024 * 1024
_MOST_MEMBERS = 100
_MOST_CHARACTERS = 4000
_DEEPEST = 8


class Fold(Protocol):
    """One streamed answer, as far as it has come."""

    size: int
    """Bytes that are kept of it."""

    def add(self, event: Any) -> bool:
        """Takes the next event, whatever it is; True when it has a token of the reasoning or the answer."""
        ...

    def whole(self) -> Any:
        """The body as if the answer had not been streamed; for an error its body; None when the stream broke off."""
        ...


class Texts:
    """Texts by their names, each of which grows by pieces, as UTF-8: a text object for each token would take more than
    ten times as much."""

    def __init__(self) -> None:
        self._raw: dict[str, bytearray] = {}

    def add(self, name: str, piece: str) -> int:
        """Returns the bytes that it adds."""
        if not piece:
            return 0
        raw = piece.encode("utf-8", "replace")
        self._raw.setdefault(name, bytearray()).extend(raw)
        return len(raw)

    def get(self, name: str) -> str:
        return self._raw.get(name, b"").decode()


def kept(value: Any, depth: int = 0) -> Any:
    """The most that is kept of an event's JSON apart from its texts: an answer's usage and an error's text are no
    longer."""
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    if not isinstance(value, dict | list):
        return value
    if depth == _DEEPEST:
        return None
    if isinstance(value, list):
        return [kept(held, depth + 1) for held in value[:_MOST_MEMBERS]]
    return members(value, list(value)[:_MOST_MEMBERS], depth)


def members(values: Mapping[str, Any], names: Any, depth: int = 0) -> dict[str, Any]:
    """The present members of an object, as `kept` keeps them."""
    return {name: kept(values[name], depth + 1) for name in names if name in values}


class EventLines:
    """Takes bytes as they arrive and returns the texts of whole events. Names, ids and comments are left out.

    Server-sent events as in the HTML standard: several data lines of one event are joined, an empty line ends it.
    `size` counts the bytes of what has not ended.
    """

    def __init__(self, name: str, *, lines: bool) -> None:
        self._name = name
        self._lines = lines
        self._rest: list[bytes] = []
        self._data: list[str] = []
        self.size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Raises ProviderError when an event does not end."""
        first, *others = chunk.split(b"\n")
        self.size += len(first)
        self._check()
        if not others:
            self._rest.append(first)
            return []
        *whole, rest = others
        found = [self._line(b"".join((*self._rest, first))), *map(self._line, whole)]
        self._rest = [rest]
        self.size = len(rest) + sum(map(len, self._data))
        self._check()
        return [event for event in found if event]

    def end(self) -> list[str]:
        """The text of a last line without a line end."""
        return [event for event in (*self.feed(b"\n"), "" if self._lines else self._line(b"")) if event]

    def _check(self) -> None:
        if self.size > MAX_LINE_BYTES:
            raise ProviderError(f"{self._name} sent an answer that does not end. Lower max_tokens.")

    def _line(self, raw: bytes) -> str:
        line = raw.decode("utf-8", "replace").rstrip("\r")
        if self._lines:
            return line.strip()
        if not line:
            event, self._data = "\n".join(self._data), []
            return event
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        return ""
