"""A colour and a marker for each configuration: sixteen slots, the same on every page."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SLOTS = 16
"""Eight colours with a filled marker each, then the same with an open marker."""

Key = tuple[str, str]
"""(endpoint, model)"""


def assign(known: Iterable[Key], shown: Iterable[Key] = ()) -> dict[Key, int]:
    """Slots 0–15: a key's own slot comes from its hash, and moves on when another key holds it.

    `known` is what every page knows, and goes first; `shown` adds what only this page shows. More keys than slots
    share them.
    """
    slots: dict[Key, int] = {}
    taken: set[int] = set()
    for group in (known, shown):
        for key in sorted(set(group) - slots.keys(), key=_hash):
            first = _hash(key) % SLOTS
            free = [(first + step) % SLOTS for step in range(SLOTS) if (first + step) % SLOTS not in taken]
            slots[key] = free[0] if free else first
            taken.add(slots[key])
    return slots


def _hash(key: Key) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(key).encode()).digest()[:8], "big")
