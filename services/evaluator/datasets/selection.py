"""Which rows of a dataset a job runs, and the hash that identifies runs of the same rows with the same scoring.
Pure."""

from __future__ import annotations

import hashlib
import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from touchstone.v1.dataset_pb2 import DatasetManifest, Shard


def sample(name: str, size: int, limit: int, seed: int) -> Sequence[int]:
    """Numbers below `size` in increasing order: all where `limit` is 0, else a sample of at most `limit`.

    The sample is fixed by seed, name and number, and nested: 100 are among the 200 of the same seed.
    """
    if not 0 < limit < size:
        return range(size)
    begun = hashlib.sha256(f"{seed}:{name}:".encode())

    def rank(number: int) -> bytes:
        digest = begun.copy()
        digest.update(b"%d" % number)
        return digest.digest()

    return sorted(heapq.nsmallest(limit, range(size), rank))


def item_set(digest: str, size: int, chosen: Sequence[int], scoring: str) -> str:
    """SHA-256 over Dataset.digest, the numbers of the chosen rows unless all are, and the scoring as one text: runs
    with another scoring get another hash."""
    numbers = "" if len(chosen) == size else ",".join(map(str, chosen))
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in (digest, numbers, scoring)).encode()).hexdigest()


class Places:
    """Where rows are among a manifest's shards."""

    def __init__(self, manifest: DatasetManifest) -> None:
        self._shards = list(manifest.shards)
        self._starts = [0, *accumulate(shard.rows for shard in self._shards)]

    @property
    def rows(self) -> int:
        return self._starts[-1]

    def of(self, numbers: Sequence[int]) -> Iterator[tuple[Shard, int, list[int]]]:
        """Shards, each with the number of its first row and with those of `numbers`, which increase, that lie in it."""
        for place, run in groupby(numbers, lambda number: bisect_right(self._starts, number) - 1):
            yield self._shards[place], self._starts[place], list(run)
