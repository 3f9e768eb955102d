"""The frames between the results service and the child that reads an upload.

In: one frame OPTIONS, then the file's bytes as they come, until the input ends. Out: frames SHARD in order, and one
last frame: DATASET if every line is right, BAD_LINES or REFUSED otherwise. Shards before one of those two are useless.
Of a preview one frame: PREVIEW or REFUSED. A child that ends without a last frame has failed. A child that has refused
reads no further.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum

from touchstone.v1 import dataset_pb2

HEADER = struct.Struct(">BI")
"""Kind and length of the payload, which follows."""
_SHARD = struct.Struct(">32sI")


class Kind(IntEnum):
    OPTIONS = 1
    """`Limits`, whether only a preview is asked for, and a serialised DatasetOptions."""
    SHARD = 2
    """A `Shard`."""
    DATASET = 3
    """A serialised Dataset with the facts from the rows: everything except id, name, owner, project, time, scoring,
    template and source."""
    BAD_LINES = 4
    """`BadLines`."""
    REFUSED = 5
    """A `Refusal`: the whole file, or its options."""
    PREVIEW = 6
    """A serialised PreviewDatasetResponse, the only frame of a preview that can be given."""


def frame(kind: Kind, payload: bytes) -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an upload. Bytes are counted decompressed."""

    file_bytes: int = 2 * 10**9
    rows: int = 5_000_000
    ratio: int = 300
    """Decompressed bytes for each compressed one, over the whole file."""
    cpu_s: int = 900
    """CPU seconds for reading: some lines and templates are far more work than their bytes suggest."""
    small_cpu_s: int = 5
    cpu_s_per_mb: int = 10
    """The limit for a small file, and the increase for each million bytes received, compressed or not: a few kilobytes
    must not keep a reading place for long."""

    def work_s(self, taken: int) -> float:
        """CPU seconds for reading after this many bytes."""
        return min(self.cpu_s, self.small_cpu_s + self.cpu_s_per_mb * taken / 1e6)


def options(limits: Limits, asked: dataset_pb2.DatasetOptions, preview: bool = False) -> bytes:
    numbers = json.dumps({"limits": asdict(limits), "preview": preview}).encode()
    return frame(Kind.OPTIONS, numbers + b"\n" + asked.SerializeToString())


def parse_options(payload: bytes) -> tuple[Limits, dataset_pb2.DatasetOptions, bool]:
    """The limits, the options, and whether only a preview is asked for."""
    numbers, _, asked = payload.partition(b"\n")
    told = json.loads(numbers)
    return Limits(**told["limits"]), dataset_pb2.DatasetOptions.FromString(asked), told["preview"]


@dataclass(frozen=True, slots=True)
class Shard:
    """`digest` is the SHA-256 of `data`, a serialised ShardRows with `rows` rows."""

    digest: bytes
    rows: int
    data: bytes

    def frame(self) -> bytes:
        return frame(Kind.SHARD, _SHARD.pack(self.digest, self.rows) + self.data)

    @classmethod
    def parse(cls, payload: bytes) -> Shard:
        digest, rows = _SHARD.unpack_from(payload)
        return cls(digest, rows, payload[_SHARD.size :])


@dataclass(frozen=True, slots=True)
class BadLines:
    """The first bad lines, how many there are in all, and how many have which reason."""

    lines: Sequence[dataset_pb2.BadLine]
    total: int
    reasons: Sequence[dataset_pb2.BadLineReason]

    def frame(self) -> bytes:
        told = {
            "total": self.total,
            "lines": [[line.line, line.reason] for line in self.lines],
            "reasons": [[one.reason, one.count, list(one.lines)] for one in self.reasons],
        }
        return frame(Kind.BAD_LINES, json.dumps(told).encode())

    @classmethod
    def parse(cls, payload: bytes) -> BadLines:
        told = json.loads(payload)
        lines = [dataset_pb2.BadLine(line=line, reason=reason) for line, reason in told["lines"]]
        reasons = [dataset_pb2.BadLineReason(reason=one, count=n, lines=of) for one, n, of in told["reasons"]]
        return cls(lines, told["total"], reasons)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the file cannot be used, as whole sentences. `field` is the wrong option, or empty."""

    reason: str
    field: str = ""

    def frame(self) -> bytes:
        return frame(Kind.REFUSED, json.dumps(asdict(self)).encode())

    @classmethod
    def parse(cls, payload: bytes) -> Refusal:
        return cls(**json.loads(payload))
