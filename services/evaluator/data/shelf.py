"""Which loaded tables stay in memory: the ones used last, up to a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Protocol

SHELF_BYTES = 32 * 1024 * 1024


class Holder(Protocol):
    """Has a table and can read it again."""

    def unload(self) -> None: ...


class Shelf:
    """Keeps at most `most_bytes` loaded, and always the one used last. Safe to use from several threads."""

    def __init__(self, most_bytes: int = SHELF_BYTES) -> None:
        self._most_bytes = most_bytes
        self._sizes: OrderedDict[int, tuple[Holder, int]] = OrderedDict()
        self._lock = threading.Lock()

    def used(self, holder: Holder, size: int) -> None:
        """Notes that `holder` has its table of `size` bytes loaded and uses it now; unloads what is too much."""
        with self._lock:
            self._sizes[id(holder)] = (holder, size)
            self._sizes.move_to_end(id(holder))
            total = sum(each for _, each in self._sizes.values())
            dropped: list[Holder] = []
            while total > self._most_bytes and len(self._sizes) > 1:
                _, (oldest, freed) = self._sizes.popitem(last=False)
                dropped.append(oldest)
                total -= freed
        for each in dropped:
            each.unload()
