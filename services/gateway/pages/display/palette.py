"""A colour and a marker for each configuration: sixteen slots, the same on every page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

COLOURS, SLOTS = 8, 16
"""Eight colours with a filled marker each, then the same with an open marker."""

Key = tuple[str, str]
"""(endpoint, model)"""


def assign(known: Iterable[Key], shown: Iterable[Key] = ()) -> dict[Key, int]:
    """Slots 0–15: a key's own slot comes from its hash, and moves on when another key holds it.

    `known` is what every page knows in the same order, and goes first; `shown` adds what only this page shows. A colour
    comes again, with an open marker, only when all eight are taken. More keys than slots share them.
    """
    slots: dict[Key, int] = {}
    for key in (*known, *sorted(shown, key=_hash)):
        if key not in slots:
            slots[key] = _slot(_hash(key), set(slots.values()))
    return slots


def _slot(first: int, taken: set[int]) -> int:
    for markers in (0, COLOURS):
        ring = [markers + (first + step) % COLOURS for step in range(COLOURS)]
        free = [slot for slot in ring if slot not in taken]
        if free:
            return free[0]
    return first % SLOTS


def _hash(key: Key) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(key).encode()).digest()[:8], "big")
