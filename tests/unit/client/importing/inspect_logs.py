"""Logs of Inspect, packed and read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import pyarrow

from tests.unit.client.logs import inspected
from touchstone_client.importing import inspect
from touchstone_client.importing.log import Sample

SAMPLES = [inspected(1, "Say yes.", "Answer: yes"), inspected(2, "Say no.", "Answer: no")]


def read(file: Path, first_id: int | None = None) -> list[Sample]:
    return list(inspect.read(file, None, first_id).samples())


def zstandard(file: Path, members_: dict[str, bytes], size: int | None = None) -> Path:
    """An archive as Inspect packs it, which Python's zipfile of this version cannot write."""
    stored = BytesIO()
    with zipfile.ZipFile(stored, "w") as made:
        for name, data in members_.items():
            made.writestr(name, bytes(pyarrow.Codec("zstd").compress(data)))
    raw = bytearray(stored.getvalue())
    for signature, method, checksum, length in ((b"PK\x03\x04", 8, 14, 22), (b"PK\x01\x02", 10, 16, 24)):
        place = -1
        for data in members_.values():
            place = raw.index(signature, place + 1)
            struct.pack_into("<H", raw, place + method, 93)
            struct.pack_into("<I", raw, place + checksum, zlib.crc32(data))
            struct.pack_into("<I", raw, place + length, len(data) if size is None else size)
    file.write_bytes(raw)
    return file
