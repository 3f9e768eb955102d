"""The child's process: frame OPTIONS and the file on its input, frames on its output. It ends with its input, or when
nobody reads its output."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from io import BufferedReader, BufferedWriter

from services.results.datasets.frames import HEADER, Kind, Refusal, parse_options
from services.results.datasets.reading.previewing import preview
from services.results.datasets.reading.reader import read

_PIECE_BYTES = 256 * 1024
_MEMORY_BYTES = 512 * 1024 * 1024
"""Bytes of address space, of which a file of any size takes a fifth."""
_NICE = 10
_CPU_GRACE_S = 60


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICE)
    # Not sys.stdin and sys.stdout, which are texts first.
    with open(0, "rb", closefd=False) as source, open(1, "wb", closefd=False) as sink:
        return _serve(source, sink)


def _serve(source: BufferedReader, sink: BufferedWriter) -> int:
    def emit(data: bytes) -> None:
        sink.write(data)

    try:
        kind, length = HEADER.unpack(_exactly(source, HEADER.size))
        if kind != Kind.OPTIONS:
            raise EOFError
        limits, options, previewed = parse_options(_exactly(source, length))
        # If no row ends, the reader itself cannot report that it takes too long.
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s + _CPU_GRACE_S, limits.cpu_s + _CPU_GRACE_S))
    except EOFError:
        return 2
    try:
        try:
            (preview if previewed else read)(_pieces(source), options, limits, emit)
        except MemoryError:
            reason = "The file needs more memory than is allowed. Upload it in parts, or make its texts shorter."
            emit(Refusal(reason).frame())
        sink.flush()
    except BrokenPipeError:
        # Nobody reads the output any more. Closing it at exit would raise another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
    return 0


def _exactly(source: BufferedReader, length: int) -> bytes:
    found = source.read(length)
    if len(found) < length:
        raise EOFError
    return found


def _pieces(source: BufferedReader) -> Iterator[bytes]:
    # Takes what is there: waiting for whole pieces would delay a slow upload's lines.
    while piece := source.read1(_PIECE_BYTES):
        yield piece


if __name__ == "__main__":
    sys.exit(main())
