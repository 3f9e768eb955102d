"""Groups of rows that are stored by their content: equal rows in equal order give equal shards."""

from __future__ import annotations

import hashlib

from services.chat_requests.faults import WrongRowError
from services.results.datasets.frames import Shard
from services.words import refusals
from touchstone.v1.dataset_pb2 import DatasetRow

MOST_ROWS = 1000
MOST_BYTES = 4_000_000
_MOST_ROW_BYTES = 3_000_000
_TAG = b"\x0a"
"""Field 1 of ShardRows, with a length."""


class Sharder:
    """Takes rows, gives shards. `digest` is the SHA-256 of all shards' bytes one after the other."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []
        self._bytes = 0
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def add(self, row: DatasetRow) -> Shard | None:
        """A shard that is full without this row. Raises WrongRowError for a row that is too large for any shard."""
        data = row.SerializeToString(deterministic=True)
        if len(data) > _MOST_ROW_BYTES:
            raise WrongRowError(
                f"{refusals.too_large('The row', len(data), _MOST_ROW_BYTES, 'bytes')} Shorten its texts."
            )
        data = _TAG + _varint(len(data)) + data
        full = len(self._rows) == MOST_ROWS or self._bytes + len(data) > MOST_BYTES
        shard = self.rest() if full else None
        self._digest.update(data)
        self._rows.append(data)
        self._bytes += len(data)
        return shard

    def rest(self) -> Shard | None:
        """The waiting rows, as a shard."""
        if not self._rows:
            return None
        data = b"".join(self._rows)
        shard = Shard(hashlib.sha256(data).digest(), len(self._rows), data)
        self._rows, self._bytes = [], 0
        return shard


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
