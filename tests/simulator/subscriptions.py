"""Who listens to which subjects. Every message asks for this, so what cannot match is not looked at."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulator.network import Connection
from tests.simulator.subjects import matches


class Listener(NamedTuple):
    """One subscription; of a `queue`, only one of all listeners gets a message."""

    connection: Connection
    sid: int
    queue: str


class Subscriptions:
    """All listeners of a server, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._exact: dict[str, list[Listener]] = {}
        self._wild: dict[str, list[tuple[str, Listener]]] = {}
        """By the first two tokens, or by nothing when a wildcard is among these: patterns and who listens to them."""

    def add(self, subject: str, listener: Listener) -> None:
        if "*" not in subject and ">" not in subject:
            self._exact.setdefault(subject, []).append(listener)
            return
        head = _head(subject)
        self._wild.setdefault("" if "*" in head or ">" in head else head, []).append((subject, listener))

    def of(self, subject: str) -> list[Listener]:
        """Those that hear a message of this subject."""
        found = list(self._exact.get(subject, ()))
        for head in (_head(subject), ""):
            found += [listener for pattern, listener in self._wild.get(head, ()) if matches(pattern, subject)]
        return found

    def drop(self, connection: Connection, sid: int | None = None) -> None:
        """Ends one subscription of a connection, or all of them."""

        def stays(listener: Listener) -> bool:
            return listener.connection is not connection or sid not in (None, listener.sid)

        self._exact = {key: kept for key, each in self._exact.items() if (kept := list(filter(stays, each)))}
        self._wild = {key: left for key, each in self._wild.items() if (left := [one for one in each if stays(one[1])])}


def _head(subject: str) -> str:
    first = subject.find(".")
    second = subject.find(".", first + 1) if first >= 0 else -1
    return subject[:second] if second >= 0 else subject
