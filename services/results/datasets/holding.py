"""Shards of uploads that are under way: they have no dataset yet, and must not be taken for left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Holding:
    """Which shards are held, by how many uploads."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    @contextmanager
    def upload(self) -> Iterator[Upload]:
        """What one upload holds, until it ends."""
        held = Upload(self._count)
        try:
            yield held
        finally:
            held.release()

    def not_held(self, digests: Collection[str]) -> list[str]:
        return [digest for digest in digests if digest not in self._count]


class Upload:
    """One upload's shards. Each is held before it is looked for in the store, until the dataset is listed."""

    def __init__(self, count: Counter[str]) -> None:
        self._count = count
        self._digests: list[str] = []

    def hold(self, digest: str) -> None:
        self._digests.append(digest)
        self._count[digest] += 1

    def release(self) -> None:
        for digest in self._digests:
            self._count[digest] -= 1
            if not self._count[digest]:
                del self._count[digest]
        self._digests.clear()
