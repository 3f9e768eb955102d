"""Errors that keep a message out of RESULTS."""

from __future__ import annotations

from dataclasses import dataclass


class StreamFullError(Exception):
    """RESULTS has no room until the results service has caught up."""


class OvertakenError(Exception):
    """Another sender has published about the unit since."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that may be stored only right after the unit's message at position `after` of RESULTS (0: none).

    `name` is unique to the message and the same each time it is sent.
    """

    after: int
    name: str
