"""Which ids a file has had, and on which lines: some 40 bytes for each, however long they are."""

from __future__ import annotations

import hashlib
import os
from array import array

_FIRST_SLOTS = 1 << 10


class CustomIds:
    """A hash table in arrays: a Python dictionary takes five times as much, and an upload may have a million ids.

    Two ids of a file are taken for one by chance once in 10^25 files.
    """

    def __init__(self) -> None:
        # A key of its own, so that nobody can choose ids that fall into the same places.
        self._key = os.urandom(16)
        self._slots = array("i", [-1]) * _FIRST_SLOTS
        self._high = array("Q")
        self._low = array("Q")
        self._lines = array("I")

    def add(self, custom_id: str, line: int) -> int:
        """The line that has the id already, 0 when it is new."""
        digest = hashlib.blake2b(custom_id.encode(), digest_size=16, key=self._key).digest()
        high, low = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
        slot = self._slot(high, low)
        if (entry := self._slots[slot]) >= 0:
            return self._lines[entry]
        self._slots[slot] = len(self._lines)
        self._high.append(high)
        self._low.append(low)
        self._lines.append(line)
        if 2 * len(self._lines) > len(self._slots):
            self._grow()
        return 0

    def _slot(self, high: int, low: int) -> int:
        """Where the id is, or the free place where it goes."""
        mask = len(self._slots) - 1
        slot = low & mask
        while (entry := self._slots[slot]) >= 0 and (self._low[entry] != low or self._high[entry] != high):
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        self._slots = array("i", [-1]) * (2 * len(self._slots))
        mask = len(self._slots) - 1
        slots = self._slots
        for entry, low in enumerate(self._low):
            slot = low & mask
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = entry
