"""What reading an upload gives, as the results service gets it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from services.results.datasets.frames import HEADER, BadLines, Kind, Limits, Refusal, Shard
from services.results.datasets.reading.reader import read
from touchstone.v1.dataset_pb2 import Dataset, DatasetOptions, DatasetRow, ShardRows
from touchstone.v1.scoring_pb2 import Scoring

URL = "/v1/chat/completions"


@dataclass
class Outcome:
    """Exactly one of `dataset`, `bad` and `refusal` is set."""

    shards: list[Shard] = field(default_factory=list)
    dataset: Dataset | None = None
    bad: BadLines | None = None
    refusal: Refusal | None = None

    @property
    def rows(self) -> list[DatasetRow]:
        assert self.dataset is not None, self.bad or self.refusal
        return [row for shard in self.shards for row in ShardRows.FromString(shard.data).rows]

    @property
    def reasons(self) -> dict[int, str]:
        assert self.bad is not None, self.dataset or self.refusal
        return {line.line: line.reason for line in self.bad.lines}

    @property
    def refused(self) -> str:
        assert self.refusal is not None, self.dataset or self.bad
        return self.refusal.reason


def outcome(frames: bytes) -> Outcome:
    """Of the frames that a reading gave; they must be as the protocol says."""
    made = Outcome()
    place = last = 0
    while place < len(frames):
        assert last in (0, Kind.SHARD), "nothing follows the last frame"
        kind, length = HEADER.unpack_from(frames, place)
        payload = frames[place + HEADER.size : place + HEADER.size + length]
        assert len(payload) == length
        place += HEADER.size + length
        last = kind
        if kind == Kind.SHARD:
            made.shards.append(Shard.parse(payload))
        elif kind == Kind.DATASET:
            made.dataset = Dataset.FromString(payload)
        elif kind == Kind.BAD_LINES:
            made.bad = BadLines.parse(payload)
        else:
            made.refusal = Refusal.parse(payload)
    assert last not in (0, Kind.SHARD), "a last frame ends it"
    return made


def upload(
    data: bytes | Iterable[bytes],
    *,
    name: str = "rows.jsonl",
    limits: Limits | None = None,
    scoring: Scoring | None = None,
    **options: Any,
) -> Outcome:
    frames = bytearray()
    asked = DatasetOptions(name=name, scoring=scoring, **options)
    read([data] if isinstance(data, bytes) else data, asked, limits or Limits(), frames.extend)
    made = outcome(bytes(frames))
    if made.dataset is not None:
        _check_whole(made)
    return made


def _check_whole(made: Outcome) -> None:
    """What holds of every dataset."""
    assert made.dataset is not None
    rows = made.rows
    assert made.dataset.rows == len(rows) == sum(shard.rows for shard in made.shards) > 0
    assert all(0 < shard.rows <= 1000 and len(shard.data) <= 4_000_000 for shard in made.shards)
    assert all(hashlib.sha256(shard.data).digest() == shard.digest for shard in made.shards)
    assert hashlib.sha256(b"".join(shard.data for shard in made.shards)).hexdigest() == made.dataset.digest
    assert len({row.custom_id for row in rows}) == len(rows)
    assert all(row.messages and 0 < len(row.custom_id.encode()) <= 512 for row in rows)
    assert made.dataset.rows_with_reference == sum(bool(row.reference) for row in rows)
    assert made.dataset.prompt_characters == sum(len(m.content) for row in rows for m in row.messages)


def jsonl(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def batch_line(custom_id: str = "a", /, **body: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}]} | body
    return {"custom_id": custom_id, "method": "POST", "url": URL, "body": body}


def packed(data: bytes, level: int = 9) -> bytes:
    """The same bytes at any second: they stand in the names of tests, which all workers must collect alike."""
    return gzip.compress(data, level, mtime=0)


def contents(data: bytes, **options: Any) -> list[str]:
    return [row.messages[0].content for row in upload(data, **options).rows]
